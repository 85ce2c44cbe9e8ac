"""Every field of every kind: what it may hold."""

import pytest

from inferbus_contracts.admission import admit
from inferbus_contracts.errors import ErrorCode

BACKEND = "spec.backends[0]"
WORKER = f"{BACKEND}.workers[0]"
ROLE = "spec.template.roles[0]"
ROLLOUT = "spec.rolloutStrategy"
ROLLING = f"{ROLLOUT}.rollingUpdateConfiguration"
CONFIGURATION = "spec.scalingConfiguration"
RULE = "spec.rules[0]"
TARGET = f"{RULE}.targetModels[0]"
SELECTOR = "spec.workloadSelector"
HUB = "spec.source.modelHub"
DOWN = "spec.behavior.scaleDown"
STABLE = "spec.behavior.scaleUp.stablePolicy"
PANIC = "spec.behavior.scaleUp.panicPolicy"
MIX = "spec.heterogeneousTarget"
SPLIT = "spec.disaggregatedTarget"
BOUNDS = {"minReplicas": 1, "maxReplicas": 2}

ACCEPTED = [
    ("ModelServing", "spec.replicas", 0),
    ("ModelServing", "spec.replicas", 3.0),
    ("ModelServing", "spec.schedulerName", "default-scheduler"),
    ("ModelServing", "spec.recoveryPolicy", "ServingGroupRecreate"),
    ("ModelServing", "spec.recoveryPolicy", "None"),
    ("ModelServing", f"{ROLLOUT}.type", "RoleRollingUpdate"),
    ("ModelServing", f"{ROLLING}.maxUnavailable", "25%"),
    ("ModelServing", f"{ROLLING}.maxSurge", "150%"),
    ("ModelServing", f"{ROLLING}.partition", "50%"),
    ("ModelServing", "spec.template.networkTopology", {"mode": "soft", "highestTierAllowed": 2}),
    (
        "ModelServing",
        "spec.template.networkTopology",
        {"groupPolicy": {"highestTierName": "rack"}, "rolePolicy": {"mode": "soft"}},
    ),
    ("ModelServing", "spec.template.gangPolicy", {"minRoleReplicas": {"server": 1}}),
    (
        "ModelServing",
        "spec.topologySpreadConstraints",
        [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}],
    ),
    ("ModelServing", f"{ROLE}.name", "405B"),
    ("ModelServing", f"{ROLE}.workerTemplate", {"spec": {"containers": []}}),
    (
        "ModelServing",
        "spec.plugins",
        [{"name": "demo-pod-tweaks", "config": {"env": None}, "scope": {"roles": ["server"]}}],
    ),
    ("ModelBooster", "spec.name", "client-name"),
    ("ModelBooster", "spec.owner", "team"),
    ("ModelBooster", "spec.modelMatch", {"headers": {"x": {"exact": "1"}}, "body": {"model": "m"}}),
    ("ModelBooster", f"{BACKEND}.type", "SGLang"),
    ("ModelBooster", f"{BACKEND}.type", "MindIE"),
    ("ModelBooster", f"{BACKEND}.modelURI", "obs://bucket/m"),
    ("ModelBooster", f"{BACKEND}.modelURI", "ms://org/m"),
    ("ModelBooster", f"{BACKEND}.cacheURI", "hostpath:///tmp"),
    ("ModelBooster", f"{BACKEND}.cacheURI", "pvc://claim"),
    ("ModelBooster", f"{BACKEND}.runtimeClassName", "nvidia"),
    ("ModelBooster", f"{BACKEND}.schedulerName", ""),
    ("ModelBooster", f"{BACKEND}.envFrom", [{"secretRef": {"name": "s"}}]),
    ("ModelBooster", f"{BACKEND}.loraAdapters", [{"name": "sql", "artifactURL": "s3://b/k"}]),
    ("ModelBooster", f"{WORKER}.affinity", {"nodeAffinity": {}}),
    ("ModelBooster", f"{WORKER}.tolerations", [{"operator": "Exists"}]),
    ("ModelBooster", f"{WORKER}.config", {"max-model-len": 32768, "flag": "", "none": None}),
    ("AutoscalingPolicy", "spec.metrics", [{"name": "later", "targetValue": "500m"}]),
    ("AutoscalingPolicy", "spec.tolerancePercent", 0),
    ("AutoscalingPolicy", f"{DOWN}.selectPolicy", "And"),
    ("AutoscalingPolicy", f"{STABLE}.percent", 0),
    ("AutoscalingPolicy", f"{PANIC}.period", "1m"),
    ("AutoscalingPolicyBinding", f"{CONFIGURATION}.minReplicas", 0),
    (
        "AutoscalingPolicyBinding",
        f"{CONFIGURATION}.target.additionalMatchLabels",
        {"role": "leader"},
    ),
    (
        "AutoscalingPolicyBinding",
        f"{CONFIGURATION}.target.subTargets",
        {"kind": "Role", "name": "p"},
    ),
    (
        "AutoscalingPolicyBinding",
        f"{CONFIGURATION}.target.metricEndpoint",
        {"port": 9000, "labelSelector": {"matchExpressions": [{"key": "a", "operator": "Exists"}]}},
    ),
    ("ModelRoute", "spec.loraAdapters", ["a", "b"]),
    ("ModelRoute", "spec.rules", []),
    ("ModelRoute", f"{RULE}.modelMatch.uri", {"prefix": "/v1"}),
    ("ModelRoute", f"{TARGET}.weight", 0),
    (
        "ModelRoute",
        "spec.rateLimit",
        {"unit": "month", "outputTokensPerUnit": 5, "global": {"redis": {"address": "r:6379"}}},
    ),
    *(
        ("ModelServer", "spec.inferenceEngine", engine)
        for engine in (
            "vLLM",
            "SGLang",
            "LlamaCpp",
            "TGI",
            "TensorRTLLM",
            "Ollama",
            "MindIE",
            "OpenAI",
        )
    ),
    ("ModelServer", "spec.model", "m" * 256),
    ("ModelServer", "spec.trafficPolicy.timeout", "1m30s"),
    ("ModelServer", "spec.kvConnector.type", "mooncake"),
    ("ModelServer", "spec.workloadPort.protocol", "https"),
    ("ExternalModelProvider", "spec.providerType", "Anthropic"),
    (
        "ExternalModelProvider",
        "spec.auth",
        {"scheme": "APIKey", "secretRef": {"name": "s", "key": "k"}},
    ),
    ("OpenModel", f"{HUB}.allowPatterns", ["*.safetensors"]),
    (
        "OpenModel",
        "spec.inferenceConfig.flavors",
        [
            {
                "name": "a",
                "limits": {"nvidia.com/gpu": 1},
                "nodeSelector": {"k": "v"},
                "params": {"TP": "2"},
            }
        ],
    ),
    ("OpenModel", "spec.createdAt", "2026-01-31T12:00:00Z"),
    ("BackendRuntime", "spec.command", ["python3"]),
    ("BackendRuntime", "spec.lifecycle", {"preStop": {"exec": {"command": ["x"]}}}),
    (
        "BackendRuntime",
        "spec.recommendedConfigs",
        [
            {
                "name": "default",
                "args": ["--model", "{{ .ModelPath }}"],
                "resources": {"limits": {"cpu": 8}, "requests": {"cpu": "4"}},
                "sharedMemorySize": "2Gi",
                "scaleTrigger": {"hpa": {"metrics": [{"type": "Resource"}], "behavior": {}}},
            }
        ],
    ),
    ("Playground", "spec.replicas", 0),
    ("Playground", "spec.elasticConfig", {"minReplicas": 2, "maxReplicas": 2}),
    ("Playground", "spec.backendRuntimeConfig.envs", [{"name": "A", "value": "b"}]),
    ("Playground", "spec.backendRuntimeConfig.sharedMemorySize", "1Gi"),
    ("Playground", "spec.backendRuntimeConfig.backendName", "unknown"),
    ("Service", "spec.workloadTemplate.subGroupPolicy", {"subGroupSize": 2}),
    (
        "Service",
        "spec.rolloutStrategy.rollingUpdateConfiguration",
        {"maxUnavailable": 2, "partition": 1},
    ),
]


@pytest.mark.parametrize(("token", "path", "value"), ACCEPTED)
def test_what_the_schemas_accept_is_kept_as_written(
    admitted, value_at, token: str, path: str, value
) -> None:
    once = admitted(token, {path: value})
    assert _written_part(value_at(once.object, path), value) == value
    assert admit(once.object).object == once.object


def _written_part(kept, written):
    """`kept` without what defaults added to it."""
    if isinstance(written, dict) and isinstance(kept, dict):
        return {key: _written_part(kept[key], written[key]) for key in written if key in kept}
    if isinstance(written, list) and isinstance(kept, list):
        return [_written_part(item, other) for item, other in zip(kept, written, strict=True)]
    return kept


RANGE, TYPE, MISSING = (
    ErrorCode.VALUE_OUT_OF_RANGE,
    ErrorCode.WRONG_TYPE,
    ErrorCode.MISSING_FIELD,
)

REFUSED = [
    ("ModelServing", "spec.replicas", -1, RANGE),
    ("ModelServing", "spec.replicas", "1", TYPE),
    ("ModelServing", "spec.replicas", True, TYPE),
    ("ModelServing", "spec.replicas", 1.5, TYPE),
    ("ModelServing", "spec.recoveryPolicy", "None ", RANGE),
    ("ModelServing", f"{ROLLOUT}.type", "Recreate", RANGE),
    ("ModelServing", f"{ROLLING}.maxUnavailable", "abc", RANGE),
    ("ModelServing", f"{ROLLING}.maxUnavailable", -1, RANGE),
    ("ModelServing", f"{ROLLING}.maxUnavailable", "3", RANGE),
    ("ModelServing", f"{ROLLING}.partition", 1.5, TYPE),
    ("ModelServing", "spec.template", ..., MISSING),
    ("ModelServing", "spec.template.roles", [], RANGE),
    ("ModelServing", "spec.template.gangPolicy.minRoleReplicas", {"server": -1}, RANGE),
    ("ModelServing", "spec.template.networkTopology.mode", "Hard", RANGE),
    (
        "ModelServing",
        "spec.template.networkTopology.groupPolicy",
        {"highestTierAllowed": -1},
        RANGE,
    ),
    ("ModelServing", f"{ROLE}.name", "thirteen-char", RANGE),
    ("ModelServing", f"{ROLE}.name", "a-", RANGE),
    ("ModelServing", f"{ROLE}.name", "", RANGE),
    ("ModelServing", f"{ROLE}.replicas", -1, RANGE),
    ("ModelServing", f"{ROLE}.workerReplicas", ..., MISSING),
    ("ModelServing", f"{ROLE}.workerReplicas", -1, RANGE),
    ("ModelServing", f"{ROLE}.entryTemplate", ..., MISSING),
    ("ModelServing", f"{ROLE}.entryTemplate.spec", [], TYPE),
    ("ModelServing", "spec.plugins", [{"name": "p", "type": "Webhook"}], RANGE),
    ("ModelBooster", "spec.name", "Upper", RANGE),
    ("ModelBooster", "spec.name", "x" * 65, RANGE),
    ("ModelBooster", "spec.costExpansionRatePercent", 1001, RANGE),
    ("ModelBooster", f"{BACKEND}.name", "a.b", RANGE),
    ("ModelBooster", f"{BACKEND}.type", "vllm", RANGE),
    ("ModelBooster", f"{BACKEND}.type", ..., MISSING),
    ("ModelBooster", f"{BACKEND}.modelURI", "https://huggingface.co/x", RANGE),
    ("ModelBooster", f"{BACKEND}.modelURI", "hf://", RANGE),
    ("ModelBooster", f"{BACKEND}.modelURI", ..., MISSING),
    ("ModelBooster", f"{BACKEND}.cacheURI", "s3://x", RANGE),
    ("ModelBooster", f"{BACKEND}.minReplicas", 1_000_001, RANGE),
    ("ModelBooster", f"{BACKEND}.maxReplicas", 0, RANGE),
    ("ModelBooster", f"{BACKEND}.routeWeight", 101, RANGE),
    ("ModelBooster", f"{BACKEND}.scalingCost", -1, RANGE),
    ("ModelBooster", f"{BACKEND}.scaleToZeroGracePeriod", "-1s", RANGE),
    ("ModelBooster", f"{BACKEND}.scaleToZeroGracePeriod", 30, TYPE),
    ("ModelBooster", f"{BACKEND}.workers", [], RANGE),
    ("ModelBooster", f"{BACKEND}.workers", ..., MISSING),
    ("ModelBooster", f"{BACKEND}.loraAdapters", [{"name": "a", "artifactURL": "x"}], RANGE),
    ("ModelBooster", f"{WORKER}.type", "worker", RANGE),
    ("ModelBooster", f"{WORKER}.pods", -1, RANGE),
    ("ModelBooster", f"{WORKER}.config", "text", TYPE),
    ("AutoscalingPolicy", "spec.tolerancePercent", 101, RANGE),
    ("AutoscalingPolicy", "spec.metrics[0].targetValue", ..., MISSING),
    ("AutoscalingPolicy", "spec.metrics[0].targetValue", "ten", RANGE),
    ("AutoscalingPolicy", "spec.metrics[0].targetValue", True, TYPE),
    ("AutoscalingPolicy", f"{DOWN}.instances", -1, RANGE),
    ("AutoscalingPolicy", f"{DOWN}.percent", 1001, RANGE),
    ("AutoscalingPolicy", f"{DOWN}.selectPolicy", "or", RANGE),
    ("AutoscalingPolicy", f"{DOWN}.period", "1 minute", RANGE),
    ("AutoscalingPolicy", f"{DOWN}.period", 60, TYPE),
    ("AutoscalingPolicy", f"{DOWN}.stabilizationWindow", "-1s", RANGE),
    ("AutoscalingPolicy", f"{PANIC}.percent", 1001, RANGE),
    ("AutoscalingPolicy", f"{PANIC}.panicThresholdPercent", 109, RANGE),
    ("AutoscalingPolicy", f"{PANIC}.panicThresholdPercent", 1001, RANGE),
    ("AutoscalingPolicy", f"{SPLIT}", {"targetRef": {"name": "s"}, "roles": {}}, RANGE),
    (
        "AutoscalingPolicy",
        f"{SPLIT}",
        {"targetRef": {"name": "s"}, "roles": dict.fromkeys("abc", BOUNDS)},
        RANGE,
    ),
    ("AutoscalingPolicy", f"{MIX}.params", [], RANGE),
    ("AutoscalingPolicyBinding", "spec.policyRef", ..., MISSING),
    ("AutoscalingPolicyBinding", f"{CONFIGURATION}.target.targetRef", ..., MISSING),
    ("AutoscalingPolicyBinding", f"{CONFIGURATION}.minReplicas", ..., MISSING),
    ("AutoscalingPolicyBinding", f"{CONFIGURATION}.maxReplicas", 0, RANGE),
    ("AutoscalingPolicyBinding", f"{CONFIGURATION}.maxReplicas", 1_000_001, RANGE),
    ("AutoscalingPolicyBinding", f"{CONFIGURATION}.target.metricEndpoint.port", 0, RANGE),
    ("AutoscalingPolicyBinding", f"{CONFIGURATION}.target.metricEndpoint.port", 65536, RANGE),
    ("ModelRoute", "spec", ..., MISSING),
    ("ModelRoute", "spec.rules", ..., MISSING),
    ("ModelRoute", "spec.rules", [{"targetModels": [{"modelServerName": "s"}]}] * 17, RANGE),
    ("ModelRoute", "spec.loraAdapters", [str(number) for number in range(11)], RANGE),
    ("ModelRoute", f"{RULE}.targetModels", ..., MISSING),
    ("ModelRoute", f"{RULE}.targetModels", [{"modelServerName": "s"}] * 17, RANGE),
    ("ModelRoute", f"{TARGET}.weight", 101, RANGE),
    ("ModelRoute", f"{TARGET}.weight", -1, RANGE),
    ("ModelRoute", "spec.rateLimit.inputTokensPerUnit", 0, RANGE),
    ("ModelRoute", "spec.rateLimit.unit", "year", RANGE),
    ("ModelRoute", "spec.parentRefs", [{"name": ""}], RANGE),
    ("ModelServer", "spec.model", "m" * 257, RANGE),
    ("ModelServer", "spec.inferenceEngine", ..., MISSING),
    ("ModelServer", "spec.inferenceEngine", "vllm", RANGE),
    ("ModelServer", SELECTOR, ..., MISSING),
    ("ModelServer", f"{SELECTOR}.pdGroup", {"groupKey": "g", "prefillLabels": {}}, MISSING),
    ("ModelServer", f"{SELECTOR}.matchLabels", {"a": 1}, TYPE),
    ("ModelServer", "spec.workloadPort.port", 65536, RANGE),
    ("ModelServer", "spec.workloadPort.port", ..., MISSING),
    ("ModelServer", "spec.workloadPort.protocol", "grpc", RANGE),
    ("ModelServer", "spec.trafficPolicy.timeout", "soon", RANGE),
    ("ModelServer", "spec.kvConnector.type", "tcp", RANGE),
    ("ExternalModelProvider", "spec.baseURL", "http://x", RANGE),
    ("ExternalModelProvider", "spec.baseURL", ..., MISSING),
    ("ExternalModelProvider", "spec.providerType", "openai", RANGE),
    ("ExternalModelProvider", "spec.insecureSkipVerify", "yes", TYPE),
    ("ExternalModelProvider", "spec.auth", {"secretRef": {"name": "s"}}, MISSING),
    ("OpenModel", "spec.familyName", ..., MISSING),
    ("OpenModel", "spec.source", ..., MISSING),
    ("OpenModel", f"{HUB}.name", "unknown", RANGE),
    (
        "OpenModel",
        "spec.inferenceConfig.flavors",
        [{"name": str(number)} for number in range(9)],
        RANGE,
    ),
    ("OpenModel", "spec.inferenceConfig.flavors", [{"limits": {}}], MISSING),
    ("OpenModel", "spec.inferenceConfig.flavors", [{"name": "a", "limits": {"gpu": "x"}}], RANGE),
    ("BackendRuntime", "spec.image", ..., MISSING),
    ("BackendRuntime", "spec.version", ..., MISSING),
    ("BackendRuntime", "spec.recommendedConfigs", [{"args": []}], MISSING),
    ("Playground", "spec.modelClaims.models", [], RANGE),
    ("Playground", "spec.modelClaims.models", [{"name": "a", "role": "lora"}], RANGE),
    ("Playground", "spec.elasticConfig.maxReplicas", 0, RANGE),
    ("Playground", "spec.replicas", -1, RANGE),
    ("Service", "spec.modelClaims", ..., MISSING),
    ("Service", "spec.modelClaims.models", [], RANGE),
    ("Service", "spec.workloadTemplate", ..., MISSING),
    ("Service", "spec.workloadTemplate.workerTemplate", ..., MISSING),
    ("Service", "spec.workloadTemplate.size", 0, RANGE),
    ("Service", "spec.workloadTemplate.restartPolicy", "Never", RANGE),
    ("Service", "spec.rolloutStrategy.type", "Recreate", RANGE),
    ("Pod", "metadata.name", ..., MISSING),
    ("Pod", "metadata", ..., MISSING),
    ("Pod", "metadata.annotations", {"a": 1}, TYPE),
    ("Pod", "metadata.labels", {"a": True}, TYPE),
    ("Pod", "metadata.ownerReferences", [{"kind": "a", "name": "b", "apiVersion": "v1"}], MISSING),
]


@pytest.mark.parametrize(("token", "path", "value", "code"), REFUSED)
def test_what_no_schema_accepts_is_refused_at_its_place(
    problems, token: str, path: str, value, code: ErrorCode
) -> None:
    told = problems(token, {path: value})
    assert [problem.code for problem in told] == [code]
    assert told[0].field is not None
    assert told[0].field.startswith(path)
    assert told[0].remedy
