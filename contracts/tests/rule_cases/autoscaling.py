"""Rules of policies and bindings: what breaks them, and what comes close."""

SINGLE = "spec.homogeneousTarget"
MIX = "spec.heterogeneousTarget"
SPLIT = "spec.disaggregatedTarget"
CONFIGURATION = "spec.scalingConfiguration"
PARAMS = f"{MIX}.params"
METRIC = "kthena:num_requests_waiting"
SOURCE = {METRIC: {"pod": {}}}


def target(name: str = "s", low: int = 1, high: int = 2, **more: object) -> dict:
    return {
        "target": {"targetRef": {"name": name}, **more},
        "minReplicas": low,
        "maxReplicas": high,
    }


def role(low: int, high: int, **more: object) -> dict:
    return {"minReplicas": low, "maxReplicas": high, "metricSources": SOURCE, **more}


def split(**roles: dict) -> dict:
    return {"targetRef": {"name": "s"}, "roles": roles}


def ratio(low: object, high: object, numerator: dict, denominator: dict, second: str = "d") -> dict:
    return {
        "targetRef": {"name": "s"},
        "roles": {"p": numerator, "d": denominator},
        "ratioConstraint": {
            "numeratorRole": "p",
            "denominatorRole": second,
            "minRatio": low,
            "maxRatio": high,
        },
    }


BROKEN = [
    (
        "AS-1a",
        "AutoscalingPolicy",
        {"spec.metrics[0].targetValue": "-100m"},
        "spec.metrics[0].targetValue",
    ),
    (
        "AS-1a",
        "AutoscalingPolicy",
        {"spec.metrics[0].targetValue": 0},
        "spec.metrics[0].targetValue",
    ),
    (
        "AS-1a",
        "AutoscalingPolicy",
        {SPLIT: split(p=role(1, 2, metrics=[{"name": METRIC, "targetValue": 0}]))},
        f"{SPLIT}.roles.p.metrics[0].targetValue",
    ),
    (
        "AS-1b",
        "AutoscalingPolicy",
        {"spec.metrics[1]": {"name": METRIC, "targetValue": 1}},
        "spec.metrics[1]",
    ),
    (
        "AS-1c",
        "AutoscalingPolicy",
        {"spec.metrics[0].metricName": ""},
        "spec.metrics[0].metricName",
    ),
    ("AS-1d", "AutoscalingPolicy", {"spec.metrics[0].name": "other"}, "spec.metrics[0].name"),
    (
        "AS-2",
        "AutoscalingPolicy",
        {"spec.behavior.scaleDown.stabilizationWindow": "31m"},
        "spec.behavior.scaleDown.stabilizationWindow",
    ),
    (
        "AS-2",
        "AutoscalingPolicy",
        {"spec.behavior.scaleUp.panicPolicy.panicModeHold": "30m1ms"},
        "spec.behavior.scaleUp.panicPolicy.panicModeHold",
    ),
    ("AS-3", "AutoscalingPolicy", {SINGLE: target(), PARAMS: [target()]}, MIX),
    ("AS-3", "AutoscalingPolicy", {SINGLE: target(), SPLIT: split(p=role(1, 2))}, SPLIT),
    ("AS-5", "AutoscalingPolicy", {"spec.metrics": ...}, "spec.metrics"),
    (
        "AS-KEYS",
        "AutoscalingPolicy",
        {SINGLE: target(metricSources={"othr": {"pod": {}}})},
        f"{SINGLE}.target.metricSources.othr",
    ),
    ("AS-4a", "AutoscalingPolicy", {SINGLE: target(name="")}, f"{SINGLE}.target.targetRef.name"),
    (
        "AS-4a",
        "AutoscalingPolicy",
        {SPLIT: split(p=role(1, 2)), f"{SPLIT}.targetRef": {}},
        f"{SPLIT}.targetRef.name",
    ),
    (
        "AS-4b",
        "AutoscalingPolicyBinding",
        {f"{CONFIGURATION}.target.targetRef.kind": "Deployment"},
        f"{CONFIGURATION}.target.targetRef.kind",
    ),
    (
        "AS-4b",
        "AutoscalingPolicy",
        {SINGLE: target(), f"{SINGLE}.target.targetRef.kind": "LeaderWorkerSet"},
        f"{SINGLE}.target.targetRef.kind",
    ),
    (
        "AS-4b",
        "AutoscalingPolicyBinding",
        {f"{CONFIGURATION}.target.targetRef.apiVersion": "apps/v1"},
        f"{CONFIGURATION}.target.targetRef.apiVersion",
    ),
    (
        "AS-RANGE",
        "AutoscalingPolicyBinding",
        {f"{CONFIGURATION}.minReplicas": 4},
        f"{CONFIGURATION}.minReplicas",
    ),
    (
        "AS-RANGE",
        "AutoscalingPolicy",
        {PARAMS: [target(low=9, high=2)]},
        f"{PARAMS}[0].minReplicas",
    ),
    (
        "AS-SUBTARGET",
        "AutoscalingPolicyBinding",
        {f"{CONFIGURATION}.target.subTargets": {"kind": "Pod", "name": "p"}},
        f"{CONFIGURATION}.target.subTargets.kind",
    ),
    (
        "AS-SUBTARGET",
        "AutoscalingPolicyBinding",
        {f"{CONFIGURATION}.target.subTargets": {"kind": "Role"}},
        f"{CONFIGURATION}.target.subTargets.name",
    ),
    (
        "AS-URI",
        "AutoscalingPolicyBinding",
        {f"{CONFIGURATION}.target.metricEndpoint.uri": "metrics"},
        f"{CONFIGURATION}.target.metricEndpoint.uri",
    ),
    (
        "AS-SOURCE",
        "AutoscalingPolicy",
        {SINGLE: target(metricSources={METRIC: {}})},
        f'{SINGLE}.target.metricSources["{METRIC}"]',
    ),
    (
        "AS-SOURCE",
        "AutoscalingPolicy",
        {
            SINGLE: target(
                metricSources={METRIC: {"prometheus": {"serverURL": "ftp://p", "query": "q"}}}
            )
        },
        f'{SINGLE}.target.metricSources["{METRIC}"].prometheus.serverURL',
    ),
    (
        "AS-TWICE",
        "AutoscalingPolicy",
        {PARAMS: [target(), target()]},
        f"{PARAMS}[1].target.targetRef.name",
    ),
    (
        "AS-TWICE",
        "AutoscalingPolicyBinding",
        {CONFIGURATION: ..., "spec.optimizerConfiguration.params": [target(), target()]},
        "spec.optimizerConfiguration.params[1].target.targetRef.name",
    ),
    (
        "AS-6a",
        "AutoscalingPolicy",
        {SPLIT: {"targetRef": {"name": "s"}, "roles": {"": role(1, 2)}}},
        f"{SPLIT}.roles",
    ),
    ("AS-6b", "AutoscalingPolicy", {SPLIT: split(p=role(9, 8))}, f"{SPLIT}.roles.p.minReplicas"),
    (
        "AS-6c",
        "AutoscalingPolicy",
        {"spec.metrics": ..., SPLIT: split(p=role(1, 2))},
        f"{SPLIT}.roles.p.metrics",
    ),
    (
        "AS-6c",
        "AutoscalingPolicy",
        {SPLIT: split(p=role(1, 2, metricSources={}))},
        f"{SPLIT}.roles.p.metricSources",
    ),
    (
        "AS-6d",
        "AutoscalingPolicy",
        {SPLIT: split(p=role(1, 2, metricSources={"x": {"pod": {}}}))},
        f"{SPLIT}.roles.p.metricSources.x",
    ),
    (
        "AS-6e",
        "AutoscalingPolicy",
        {SPLIT: split(p=role(1, 2, metricSources={METRIC: {}}))},
        f'{SPLIT}.roles.p.metricSources["{METRIC}"]',
    ),
    (
        "AS-7a",
        "AutoscalingPolicy",
        {SPLIT: ratio(0, 1, role(1, 2), role(1, 2), "x")},
        f"{SPLIT}.ratioConstraint.denominatorRole",
    ),
    (
        "AS-7a",
        "AutoscalingPolicy",
        {SPLIT: ratio(0, 1, role(1, 2), role(1, 2), "p")},
        f"{SPLIT}.ratioConstraint.denominatorRole",
    ),
    (
        "AS-7b",
        "AutoscalingPolicy",
        {SPLIT: ratio("0.5", "0.4", role(1, 2), role(1, 2))},
        f"{SPLIT}.ratioConstraint",
    ),
    (
        "AS-7b",
        "AutoscalingPolicy",
        {SPLIT: ratio(0, 0, role(1, 2), role(1, 2))},
        f"{SPLIT}.ratioConstraint",
    ),
    (
        "AS-7b",
        "AutoscalingPolicy",
        {SPLIT: ratio(0, 1, role(0, 2), role(1, 2))},
        f"{SPLIT}.ratioConstraint",
    ),
    (
        "AS-7b",
        "AutoscalingPolicy",
        {SPLIT: ratio("0.25", 1, role(9, 10), role(1, 8))},
        f"{SPLIT}.ratioConstraint",
    ),
    (
        "AS-7b",
        "AutoscalingPolicy",
        {SPLIT: ratio(3, 4, role(1, 2), role(1, 1))},
        f"{SPLIT}.ratioConstraint",
    ),
    ("AS-B1", "AutoscalingPolicyBinding", {CONFIGURATION: ...}, "spec"),
    ("AS-B1", "AutoscalingPolicyBinding", {SINGLE: target()}, "spec"),
    ("AS-B1", "AutoscalingPolicyBinding", {PARAMS: [target()]}, "spec"),
    ("AS-B2", "AutoscalingPolicyBinding", {"spec.policyRef": {}}, "spec.policyRef.name"),
]
"""(rule, kind, changes, field that is told)."""

FINE = [
    ("AutoscalingPolicy", {"spec.behavior.scaleDown.stabilizationWindow": "30m"}),
    ("AutoscalingPolicy", {"spec.metrics[0].name": METRIC}),
    ("AutoscalingPolicy", {SINGLE: target(low=2, high=2, metricSources=SOURCE)}),
    ("AutoscalingPolicy", {f"{SINGLE}": target(), f"{SINGLE}.target.targetRef.kind": ""}),
    (
        "AutoscalingPolicy",
        {
            SINGLE: target(),
            f"{SINGLE}.target.targetRef.kind": "LeaderWorkerSet",
            f"{SINGLE}.target.targetRef.apiVersion": "leaderworkerset.x-k8s.io/v1",
        },
    ),
    ("AutoscalingPolicy", {PARAMS: [target("a"), target("b")]}),
    (
        "AutoscalingPolicy",
        {"spec.metrics": ..., SPLIT: split(p={"minReplicas": 2, "maxReplicas": 2})},
    ),
    ("AutoscalingPolicy", {SPLIT: ratio("550m", "0.55", role(1, 2), role(2, 3))}),
    ("AutoscalingPolicy", {SPLIT: ratio("0.25", 1, role(0, 4), role(0, 4))}),
    ("AutoscalingPolicyBinding", {CONFIGURATION: ..., SINGLE: target()}),
    ("AutoscalingPolicyBinding", {f"{CONFIGURATION}.minReplicas": 3}),
    ("AutoscalingPolicyBinding", {f"{CONFIGURATION}.target.targetRef.kind": "ModelServing"}),
    (
        "AutoscalingPolicyBinding",
        {f"{CONFIGURATION}.target.targetRef.apiVersion": "workload.serving.volcano.sh/v1"},
    ),
]
"""(kind, changes)."""
