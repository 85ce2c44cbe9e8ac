"""What the schemas fill in when a field is left out."""

import pytest

BACKEND = "spec.backends[0]"
WORKER = f"{BACKEND}.workers[0]"
ROLE = "spec.template.roles[0]"
ROLLOUT = "spec.rolloutStrategy"
ROLLING = f"{ROLLOUT}.rollingUpdateConfiguration"
CONFIGURATION = "spec.scalingConfiguration"
RULE = "spec.rules[0]"
TARGET = f"{RULE}.targetModels[0]"
HUB = "spec.source.modelHub"
PANIC = "spec.behavior.scaleUp.panicPolicy"
MIX = "spec.heterogeneousTarget"
SINGLE = "spec.homogeneousTarget"
BOUNDS = {"minReplicas": 1, "maxReplicas": 2}
REFERENCE = {"targetRef": {"kind": "ModelServing", "name": "s"}}

FILLED_IN = [
    ("ModelServing", {}, "spec.replicas", 1),
    ("ModelServing", {}, "spec.schedulerName", "volcano"),
    ("ModelServing", {}, "spec.recoveryPolicy", "RoleRecreate"),
    ("ModelServing", {}, "spec.rolloutStrategy", ...),
    ("ModelServing", {ROLLOUT: {}}, f"{ROLLOUT}.type", "ServingGroupRollingUpdate"),
    ("ModelServing", {ROLLOUT: {}}, ROLLING, ...),
    ("ModelServing", {ROLLING: {}}, f"{ROLLING}.maxUnavailable", 1),
    ("ModelServing", {ROLLING: {}}, f"{ROLLING}.maxSurge", 0),
    ("ModelServing", {ROLLING: {}}, f"{ROLLING}.partition", ...),
    ("ModelServing", {}, "spec.template.restartGracePeriodSeconds", 0),
    ("ModelServing", {}, f"{ROLE}.replicas", 1),
    ("ModelServing", {}, f"{ROLE}.maxUnavailable", 1),
    ("ModelServing", {}, f"{ROLE}.partition", ...),
    (
        "ModelServing",
        {"spec.plugins": [{"name": "demo-pod-tweaks"}]},
        "spec.plugins[0].type",
        "BuiltIn",
    ),
    (
        "ModelServing",
        {"spec.template.networkTopology": {"groupPolicy": {}}},
        "spec.template.networkTopology.groupPolicy.mode",
        "hard",
    ),
    ("ModelBooster", {f"{BACKEND}.workers": [{}]}, f"{WORKER}.type", "server"),
    ("ModelBooster", {}, f"{BACKEND}.scalingCost", 0),
    ("ModelBooster", {}, f"{BACKEND}.routeWeight", 100),
    ("ModelBooster", {f"{WORKER}.replicas": ...}, f"{WORKER}.replicas", ...),
    ("AutoscalingPolicy", {}, "spec.tolerancePercent", 10),
    ("AutoscalingPolicy", {PANIC: {}}, f"{PANIC}.percent", 1000),
    ("AutoscalingPolicy", {PANIC: {}}, f"{PANIC}.panicThresholdPercent", 200),
    ("AutoscalingPolicy", {PANIC: {}}, f"{PANIC}.panicModeHold", "60s"),
    ("AutoscalingPolicy", {PANIC: {}}, f"{PANIC}.period", ...),
    (
        "AutoscalingPolicy",
        {f"{MIX}.params": [{"target": REFERENCE, **BOUNDS}]},
        f"{MIX}.params[0].cost",
        0,
    ),
    (
        "AutoscalingPolicy",
        {f"{MIX}.params": [{"target": REFERENCE, **BOUNDS}]},
        f"{MIX}.costExpansionRatePercent",
        200,
    ),
    (
        "AutoscalingPolicy",
        {
            SINGLE: {
                "target": {
                    **REFERENCE,
                    "metricSources": {"kthena:num_requests_waiting": {"pod": {}}},
                },
                **BOUNDS,
            }
        },
        f'{SINGLE}.target.metricSources["kthena:num_requests_waiting"].pod',
        {"uri": "/metrics", "port": 8100},
    ),
    ("AutoscalingPolicyBinding", {}, f"{CONFIGURATION}.target.metricEndpoint", ...),
    (
        "AutoscalingPolicyBinding",
        {f"{CONFIGURATION}.target.metricEndpoint": {}},
        f"{CONFIGURATION}.target.metricEndpoint",
        {"uri": "/metrics", "port": 8100},
    ),
    ("ModelRoute", {}, f"{TARGET}.weight", 100),
    ("ModelRoute", {"spec.rateLimit": {"inputTokensPerUnit": 1}}, "spec.rateLimit.unit", "second"),
    ("ModelRoute", {"spec.parentRefs": [{"name": "g"}]}, "spec.parentRefs[0].kind", "Gateway"),
    (
        "ModelRoute",
        {"spec.parentRefs": [{"name": "g"}]},
        "spec.parentRefs[0].group",
        "gateway.networking.k8s.io",
    ),
    ("ModelServer", {}, "spec.workloadPort.protocol", "http"),
    ("ModelServer", {"spec.trafficPolicy.retry": {}}, "spec.trafficPolicy.retry.attempts", 0),
    (
        "ModelServer",
        {"spec.trafficPolicy.retry": {}},
        "spec.trafficPolicy.retry.retryInterval",
        "100ms",
    ),
    ("ModelServer", {"spec.kvConnector": {}}, "spec.kvConnector.type", "http"),
    ("ModelServer", {}, "spec.kvConnector", ...),
    ("ModelServer", {}, "spec.trafficPolicy", ...),
    ("ExternalModelProvider", {}, "spec.providerType", "OpenAI"),
    ("ExternalModelProvider", {}, "spec.insecureSkipVerify", False),
    ("OpenModel", {}, f"{HUB}.name", "Huggingface"),
    ("OpenModel", {}, f"{HUB}.revision", "main"),
    ("OpenModel", {}, "spec.ownedBy", "llmaz"),
    ("OpenModel", {}, "spec.createdAt", ...),
    ("Playground", {}, "spec.replicas", 1),
    ("Playground", {}, "spec.backendRuntimeConfig", ...),
    (
        "Playground",
        {"spec.backendRuntimeConfig": {}},
        "spec.backendRuntimeConfig.backendName",
        "vllm",
    ),
    ("Playground", {"spec.elasticConfig": {}}, "spec.elasticConfig.minReplicas", 1),
    ("Playground", {"spec.elasticConfig": {}}, "spec.elasticConfig.maxReplicas", ...),
    ("Service", {}, "spec.replicas", 1),
    ("Service", {}, "spec.modelClaims.models[0].role", "main"),
    ("Service", {}, "spec.workloadTemplate.size", 1),
    ("Service", {}, "spec.workloadTemplate.restartPolicy", "RecreateGroupOnPodRestart"),
    (
        "Service",
        {},
        "spec.rolloutStrategy",
        {
            "type": "RollingUpdate",
            "rollingUpdateConfiguration": {"maxUnavailable": 1, "maxSurge": 0},
        },
    ),
]


@pytest.mark.parametrize(("token", "changes", "path", "value"), FILLED_IN)
def test_what_is_left_out_takes_its_default(
    admitted, value_at, token: str, changes: dict, path: str, value
) -> None:
    assert value_at(admitted(token, changes).object, path) == value
