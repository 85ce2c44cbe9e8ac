"""Where ranges of numbers and lengths end: the last value in is accepted, the next one refused."""

import pytest

from inferbus_contracts.errors import ErrorCode

INT32 = 2**31 - 1
MILLION = 1_000_000
BACKEND = "spec.backends[0]"
WORKER = f"{BACKEND}.workers[0]"
ROLE = "spec.template.roles[0]"
DOWN = "spec.behavior.scaleDown"
PANIC = "spec.behavior.scaleUp.panicPolicy"
CONFIGURATION = "spec.scalingConfiguration"
RULE = "spec.rules[0]"
POD = {"spec": {"containers": [{"name": "c", "image": "i"}]}}

NUMBERS = [
    ("ModelServing", "spec.replicas", 0, INT32),
    ("ModelServing", f"{ROLE}.replicas", 0, INT32),
    ("ModelServing", "spec.template.gangPolicy.minRoleReplicas.server", 0, INT32),
    ("ModelServing", "spec.template.networkTopology.highestTierAllowed", 0, INT32),
    ("ModelServing", "spec.template.networkTopology.groupPolicy.highestTierAllowed", 0, INT32),
    ("ModelServing", "spec.rolloutStrategy.rollingUpdateConfiguration.maxSurge", 0, INT32),
    ("ModelBooster", f"{BACKEND}.minReplicas", 0, None),
    ("ModelBooster", f"{BACKEND}.maxReplicas", 1, MILLION),
    ("ModelBooster", f"{BACKEND}.replicas", 0, MILLION),
    ("ModelBooster", f"{BACKEND}.scalingCost", 0, INT32),
    ("ModelBooster", f"{BACKEND}.routeWeight", 0, 100),
    ("ModelBooster", f"{WORKER}.replicas", 0, MILLION),
    ("ModelBooster", f"{WORKER}.pods", 0, MILLION),
    ("ModelBooster", "spec.costExpansionRatePercent", 0, 1000),
    ("AutoscalingPolicy", "spec.tolerancePercent", 0, 100),
    ("AutoscalingPolicy", f"{DOWN}.instances", 0, INT32),
    ("AutoscalingPolicy", f"{DOWN}.percent", 0, 1000),
    ("AutoscalingPolicy", f"{PANIC}.percent", 0, 1000),
    ("AutoscalingPolicy", f"{PANIC}.panicThresholdPercent", 110, 1000),
    ("AutoscalingPolicyBinding", f"{CONFIGURATION}.minReplicas", 0, MILLION),
    ("AutoscalingPolicyBinding", f"{CONFIGURATION}.maxReplicas", 1, MILLION),
    ("AutoscalingPolicyBinding", f"{CONFIGURATION}.target.metricEndpoint.port", 1, 65535),
    ("AutoscalingPolicyBinding", f"{CONFIGURATION}.target.metricSources.m.pod.port", 1, 65535),
    ("ModelRoute", f"{RULE}.targetModels[0].weight", 0, 100),
    ("ModelRoute", "spec.rateLimit.inputTokensPerUnit", 1, 2**32 - 1),
    ("ModelRoute", "spec.rateLimit.outputTokensPerUnit", 1, 2**32 - 1),
    ("ModelServer", "spec.workloadPort.port", 1, 65535),
    ("ModelServer", "spec.trafficPolicy.retry.attempts", 0, INT32),
    ("Playground", "spec.replicas", 0, INT32),
    ("Playground", "spec.elasticConfig.maxReplicas", 1, INT32),
    ("Service", "spec.replicas", 0, INT32),
    ("Service", "spec.workloadTemplate.size", 1, INT32),
    ("Service", "spec.rolloutStrategy.rollingUpdateConfiguration.partition", 0, INT32),
]


@pytest.mark.parametrize(("token", "path", "least", "most"), NUMBERS)
def test_numbers(admitted, problems, token: str, path: str, least: int, most: int | None) -> None:
    for value in (least, most):
        assert value is None or admitted(token, {path: value})
    for value in (least - 1, (most or MILLION) + 1):
        assert [problem.code for problem in problems(token, {path: value})] == [
            ErrorCode.VALUE_OUT_OF_RANGE
        ]


def _roles(count: int) -> list[dict]:
    return [
        {"name": f"r{index}", "entryTemplate": POD, "workerReplicas": 0} for index in range(count)
    ]


def _scaled_roles(count: int) -> dict:
    bounds = {"minReplicas": 1, "maxReplicas": 1}
    return {
        "targetRef": {"name": "s"},
        "roles": {f"r{index}": bounds for index in range(count)},
    }


LENGTHS = [
    ("ModelServing", "spec.template.roles", _roles, 1, 4),
    ("ModelServing", f"{ROLE}.name", lambda length: "x" * length, 1, 12),
    (
        "ModelServing",
        "spec.template.networkTopology.groupPolicy.highestTierName",
        lambda length: "x" * length,
        0,
        253,
    ),
    ("ModelBooster", "spec.name", lambda length: "x" * length, 1, 64),
    ("AutoscalingPolicy", "spec.disaggregatedTarget", _scaled_roles, 1, 2),
    ("ModelRoute", "spec.rules", lambda length: [{"targetModels": []}] * length, 0, 16),
    (
        "ModelRoute",
        f"{RULE}.targetModels",
        lambda length: [{"modelServerName": "s"}] * length,
        0,
        16,
    ),
    ("ModelRoute", "spec.loraAdapters", lambda length: ["a"] * length, 0, 10),
    ("ModelRoute", "spec.parentRefs", lambda length: [{"name": "x" * length}], 1, 253),
    ("ModelServer", "spec.model", lambda length: "x" * length, 0, 256),
    ("ExternalModelProvider", "spec.model", lambda length: "x" * length, 0, 256),
    (
        "OpenModel",
        "spec.inferenceConfig.flavors",
        lambda length: [{"name": str(index)} for index in range(length)],
        0,
        8,
    ),
]


@pytest.mark.parametrize(("token", "path", "make", "least", "most"), LENGTHS)
def test_lengths(admitted, problems, token: str, path: str, make, least: int, most: int) -> None:
    for length in (least, most):
        assert admitted(token, {path: make(length)})
    for length in (least - 1, most + 1):
        assert length < 0 or problems(token, {path: make(length)})


@pytest.mark.parametrize(("count", "accepted"), [(1000, True), (1001, False)])
def test_a_backend_has_at_most_1000_workers(problems, count: int, accepted: bool) -> None:
    worker = {"type": "coordinator", "image": "i"}
    changes = {f"{BACKEND}.type": "MindIEDisaggregated", f"{BACKEND}.workers": [worker] * count}
    assert (problems("ModelBooster", changes) == ()) is accepted
