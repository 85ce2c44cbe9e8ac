"""Manifests as users write them."""

SERVING = """\
apiVersion: workload.serving.volcano.sh/v1alpha1
kind: ModelServing
metadata:
  name: chat
  labels: {app: chat}
spec:
  replicas: 2
  schedulerName: default-scheduler
  template:
    roles:
    - name: main
      workerReplicas: 0
      entryTemplate:
        spec:
          containers: [{name: engine, image: "vllm/vllm-openai:x"}]
"""
ROUTE = """\
apiVersion: networking.serving.volcano.sh/v1alpha1
kind: ModelRoute
metadata:
  name: chat
spec:
  modelName: chat
  rules:
  - targetModels:
    - modelServerName: chat
"""
BINDING = """\
apiVersion: workload.serving.volcano.sh/v1alpha1
kind: AutoscalingPolicyBinding
metadata:
  name: chat
spec:
  policyRef:
    name: chat
  homogeneousTarget:
    target:
      targetRef:
        name: chat
    minReplicas: 1
    maxReplicas: 9
"""
POLICY = """\
apiVersion: workload.serving.volcano.sh/v1alpha1
kind: AutoscalingPolicy
metadata:
  name: chat
spec:
  metrics:
  - metricName: waiting
    targetValue: "2"
"""
SECRET = """\
apiVersion: v1
kind: Secret
metadata:
  name: hub
stringData:
  token: not-for-the-bus
"""
