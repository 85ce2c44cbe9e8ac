"""A manifest of each kind that is accepted without a word: what tests of bad ones start from."""

WORKLOAD = "workload.serving.volcano.sh/v1alpha1"
NETWORKING = "networking.serving.volcano.sh/v1alpha1"
LLMAZ = "llmaz.io/v1alpha1"
LLMAZ_INFERENCE = "inference.llmaz.io/v1alpha1"

GOOD = {
    "ModelServing": f"""\
apiVersion: {WORKLOAD}
kind: ModelServing
metadata:
  name: serving
spec:
  replicas: 0
  schedulerName: volcano
  template:
    roles:
    - name: main
      replicas: 1
      workerReplicas: 0
      entryTemplate:
        spec:
          containers:
          - name: engine
            image: vllm/vllm-openai:v0.9.0
""",
    "ModelBooster": f"""\
apiVersion: {WORKLOAD}
kind: ModelBooster
metadata:
  name: booster
spec:
  backends:
  - name: main
    type: vLLM
    modelURI: hf://org/model
    minReplicas: 1
    maxReplicas: 1
    workers:
    - type: server
      image: vllm/vllm-openai:v0.9.0
      replicas: 1
      pods: 1
""",
    "AutoscalingPolicy": f"""\
apiVersion: {WORKLOAD}
kind: AutoscalingPolicy
metadata:
  name: policy
spec:
  tolerancePercent: 10
  metrics:
  - metricName: kthena:num_requests_waiting
    targetValue: 10
""",
    "AutoscalingPolicyBinding": f"""\
apiVersion: {WORKLOAD}
kind: AutoscalingPolicy
metadata:
  name: bound
spec:
  metrics:
  - metricName: kthena:num_requests_waiting
    targetValue: 10
---
apiVersion: {WORKLOAD}
kind: AutoscalingPolicyBinding
metadata:
  name: binding
spec:
  policyRef:
    name: bound
  homogeneousTarget:
    target:
      targetRef:
        kind: ModelServing
        name: serving
    minReplicas: 1
    maxReplicas: 3
""",
    "ModelServer": f"""\
apiVersion: {NETWORKING}
kind: ModelServer
metadata:
  name: server
spec:
  inferenceEngine: vLLM
  workloadSelector:
    matchLabels:
      app: chat
  workloadPort:
    port: 8000
""",
    "ModelRoute": f"""\
apiVersion: {NETWORKING}
kind: ModelRoute
metadata:
  name: route
spec:
  modelName: chat
  rules:
  - name: all
    targetModels:
    - modelServerName: server
""",
    "OpenModel": f"""\
apiVersion: {LLMAZ}
kind: OpenModel
metadata:
  name: opt-125m
spec:
  familyName: opt
  source:
    modelHub:
      modelID: facebook/opt-125m
""",
    "Playground": f"""\
apiVersion: {LLMAZ_INFERENCE}
kind: Playground
metadata:
  name: playground
spec:
  replicas: 1
  modelClaim:
    modelName: opt-125m
""",
    "Service": f"""\
apiVersion: {LLMAZ_INFERENCE}
kind: Service
metadata:
  name: service
spec:
  modelClaims:
    models:
    - name: opt-125m
  workloadTemplate:
    size: 1
    workerTemplate:
      spec:
        containers:
        - name: model-runner
          image: vllm/vllm-openai:v0.9.0
""",
    "BackendRuntime": f"""\
apiVersion: {LLMAZ_INFERENCE}
kind: BackendRuntime
metadata:
  name: runtime
spec:
  image: vllm/vllm-openai
  version: v0.9.0
  recommendedConfigs:
  - name: default
""",
}
"""By kind; each is a whole file that is accepted."""
