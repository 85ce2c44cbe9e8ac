"""Every row of the tables of rules, broken; and what comes close to breaking one and doesn't."""

import pytest

from inferbus_contracts.admission import admit
from inferbus_contracts.admission.rule import Severity
from inferbus_contracts.admission.rules import rules_for
from inferbus_contracts.resources.kinds import KINDS

BACKEND = "spec.backends[0]"
WORKER = f"{BACKEND}.workers[0]"
ROLE = "spec.template.roles[0]"
ROLLING = "spec.rolloutStrategy.rollingUpdateConfiguration"
BY_ROLE = {"spec.rolloutStrategy.type": "RoleRollingUpdate"}
SINGLE = "spec.homogeneousTarget"
MIX = "spec.heterogeneousTarget"
SPLIT = "spec.disaggregatedTarget"
CONFIGURATION = "spec.scalingConfiguration"
PARAMS = f"{MIX}.params"
HUB = "spec.source.modelHub"
RULE = "spec.rules[0]"
POD = {"spec": {"containers": [{"name": "c", "image": "i"}]}}
METRIC = "kthena:num_requests_waiting"
SOURCE = {METRIC: {"pod": {}}}
BODY = {"metrics": [{"metricName": METRIC, "targetValue": 10}]}


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


def worker(kind: str, **more: object) -> dict:
    return {"type": kind, "image": "i", "replicas": 1, "pods": 1, **more}


def pair(prefill: object = None, decode: object = None) -> dict:
    """A disaggregated backend with these kv-transfer-configs."""
    configs = {"prefill": prefill, "decode": decode}
    return {
        f"{BACKEND}.type": "vLLMDisaggregated",
        f"{BACKEND}.workers": [
            worker(kind, config={"kv-transfer-config": config} if config is not None else {})
            for kind, config in configs.items()
        ],
    }


def connector(name: str, kv_role: str) -> str:
    return f'{{"kv_connector":"{name}","kv_role":"{kv_role}"}}'


PRODUCER = connector("NixlConnector", "kv_producer")
CONSUMER = connector("NixlConnector", "kv_consumer")

BROKEN = [
    ("META-NAME", "Pod", {"metadata.name": "Upper"}, "metadata.name"),
    ("META-NAME", "Pod", {"metadata.namespace": "a.b"}, "metadata.namespace"),
    ("META-LABELS", "Pod", {"metadata.labels": {"a b": "x"}}, 'metadata.labels["a b"]'),
    ("META-LABELS", "Pod", {"metadata.labels": {"a": "x y"}}, "metadata.labels.a"),
    ("META-ANNOTATIONS", "Pod", {"metadata.annotations": {"/": ""}}, 'metadata.annotations["/"]'),
    (
        "OWN-ANNOTATION-VALUE",
        "Playground",
        {"metadata.annotations": {"inferbus.dev/mode": "manual"}},
        'metadata.annotations["inferbus.dev/mode"]',
    ),
    (
        "OWN-ANNOTATION-NAME",
        "Playground",
        {"metadata.annotations": {"inferbus.dev/objectives": "x"}},
        'metadata.annotations["inferbus.dev/objectives"]',
    ),
    # autoscaling
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
    # serving
    ("MS-W1a", "ModelServing", {"metadata.name": "x" * 51}, "metadata.name"),
    (
        "MS-W1b",
        "ModelServing",
        {"metadata.name": "a.b", f"{ROLE}.workerTemplate": POD},
        "metadata.name",
    ),
    ("MS-W1c", "ModelServing", {"metadata.name": "405b"}, "metadata.name"),
    ("MS-W1c", "ModelServing", {"metadata.name": "a.b"}, "metadata.name"),
    (
        "MS-W2",
        "ModelServing",
        {"spec.template.roles[1]": {"name": "Server", "entryTemplate": POD, "workerReplicas": 0}},
        "spec.template.roles[1].name",
    ),
    (
        "MS-W4",
        "ModelServing",
        {f"{ROLE}.entryTemplate.spec.containers[0].image": "a b"},
        f"{ROLE}.entryTemplate.spec.containers[0].image",
    ),
    (
        "MS-W4",
        "ModelServing",
        {f"{ROLE}.workerTemplate": {"spec": {"containers": [{"name": "w", "image": " "}]}}},
        f"{ROLE}.workerTemplate.spec.containers[0].image",
    ),
    (
        "MS-PODS",
        "ModelServing",
        {f"{ROLE}.entryTemplate.spec.containers[1]": {"image": "i"}},
        f"{ROLE}.entryTemplate.spec.containers[1].name",
    ),
    (
        "MS-PODS",
        "ModelServing",
        {f"{ROLE}.entryTemplate.spec.containers[1]": {"name": "engine"}},
        f"{ROLE}.entryTemplate.spec.containers[1].name",
    ),
    (
        "MS-PODS",
        "ModelServing",
        {f"{ROLE}.entryTemplate.spec.containers": {"name": "engine"}},
        f"{ROLE}.entryTemplate.spec.containers",
    ),
    (
        "MS-W13",
        "ModelServing",
        {f"{ROLE}.entryTemplate": {}},
        f"{ROLE}.entryTemplate.spec.containers",
    ),
    ("MS-W13", "ModelServing", {f"{ROLE}.workerReplicas": 2}, f"{ROLE}.workerTemplate"),
    (
        "MS-W13",
        "ModelServing",
        {f"{ROLE}.workerReplicas": 2, f"{ROLE}.workerTemplate": {"spec": {"containers": []}}},
        f"{ROLE}.workerTemplate.spec.containers",
    ),
    (
        "MS-W12a",
        "ModelServing",
        {"spec.template.gangPolicy.minRoleReplicas": {"srver": 1}},
        "spec.template.gangPolicy.minRoleReplicas.srver",
    ),
    (
        "MS-W12b",
        "ModelServing",
        {"spec.template.gangPolicy.minRoleReplicas": {"server": 2}},
        "spec.template.gangPolicy.minRoleReplicas.server",
    ),
    ("MS-W15", "ModelServing", {"spec.plugins": [{"name": "mine"}]}, "spec.plugins[0].name"),
    (
        "MS-W15",
        "ModelServing",
        {"spec.plugins": [{"name": "demo-pod-tweaks", "scope": {"target": "all"}}]},
        "spec.plugins[0].scope.target",
    ),
    (
        "MS-W15",
        "ModelServing",
        {"spec.plugins": [{"name": "demo-pod-tweaks", "scope": {"roles": ["x"]}}]},
        "spec.plugins[0].scope.roles[0]",
    ),
    (
        "MS-GANG",
        "ModelServing",
        {"spec.schedulerName": "default-scheduler", "spec.template.gangPolicy": {}},
        "spec.template.gangPolicy",
    ),
    (
        "MS-GANG",
        "ModelServing",
        {
            "spec.schedulerName": "default-scheduler",
            "spec.template.networkTopology": {"mode": "soft"},
        },
        "spec.template.networkTopology",
    ),
    (
        "MS-TOPOLOGY",
        "ModelServing",
        {"spec.template.networkTopology": {"mode": "soft", "groupPolicy": {}}},
        "spec.template.networkTopology",
    ),
    (
        "MS-LABELS",
        "ModelServing",
        {f"{ROLE}.entryTemplate.metadata.labels": {"modelserving.volcano.sh/role": "x"}},
        f'{ROLE}.entryTemplate.metadata.labels["modelserving.volcano.sh/role"]',
    ),
    (
        "MS-GRACE",
        "ModelServing",
        {"spec.template.restartGracePeriodSeconds": -1},
        "spec.template.restartGracePeriodSeconds",
    ),
    ("MS-W7a", "ModelServing", {f"{ROLLING}.maxUnavailable": "101%"}, f"{ROLLING}.maxUnavailable"),
    ("MS-W7a", "ModelServing", {f"{ROLLING}.partition": "101%"}, f"{ROLLING}.partition"),
    ("MS-W7a", "ModelServing", {f"{ROLE}.maxUnavailable": "101%"}, f"{ROLE}.maxUnavailable"),
    ("MS-W7b", "ModelServing", {f"{ROLLING}.maxUnavailable": 0}, f"{ROLLING}.maxUnavailable"),
    (
        "MS-W7b",
        "ModelServing",
        {f"{ROLLING}.maxUnavailable": "0%", f"{ROLLING}.maxSurge": "0%"},
        f"{ROLLING}.maxUnavailable",
    ),
    ("MS-W11a", "ModelServing", {**BY_ROLE, f"{ROLE}.maxUnavailable": 0}, f"{ROLE}.maxUnavailable"),
    ("MS-W7c", "ModelServing", {f"{ROLLING}.maxUnavailable": "10%"}, f"{ROLLING}.maxUnavailable"),
    (
        "MS-W7c",
        "ModelServing",
        {**BY_ROLE, f"{ROLE}.maxUnavailable": "10%"},
        f"{ROLE}.maxUnavailable",
    ),
    ("MS-W11b", "ModelServing", {**BY_ROLE, f"{ROLE}.maxUnavailable": 2}, f"{ROLE}.maxUnavailable"),
    ("MS-W8", "ModelServing", {f"{ROLLING}.partition": 1}, f"{ROLLING}.partition"),
    ("MS-W8", "ModelServing", {f"{ROLLING}.partition": "100%"}, f"{ROLLING}.partition"),
    ("MS-W9", "ModelServing", {**BY_ROLE, ROLLING: {}}, ROLLING),
    ("MS-W9", "ModelServing", {f"{ROLE}.partition": 1}, f"{ROLE}.partition"),
    (
        "MS-W14",
        "ModelServing",
        {**BY_ROLE, "spec.recoveryPolicy": "ServingGroupRecreate"},
        "spec.recoveryPolicy",
    ),
    # booster
    ("MB-0", "ModelBooster", {"spec.backends": ...}, "spec.backends"),
    ("MB-0", "ModelBooster", {"spec.backends": []}, "spec.backends"),
    (
        "MB-0",
        "ModelBooster",
        {
            "spec.backend": {
                "name": "b",
                "type": "vLLM",
                "modelURI": "hf://m",
                "replicas": 1,
                "workers": [worker("server")],
            }
        },
        "spec.backend",
    ),
    (
        "MB-NAMES",
        "ModelBooster",
        {
            "spec.backends[1]": {
                "name": "main",
                "type": "vLLM",
                "modelURI": "hf://m",
                "replicas": 1,
                "workers": [worker("server")],
            }
        },
        "spec.backends[1].name",
    ),
    (
        "MB-ENV",
        "ModelBooster",
        {f"{BACKEND}.env": [{"name": "A"}, {"name": "A"}]},
        f"{BACKEND}.env[1].name",
    ),
    ("MB-ENV", "ModelBooster", {f"{BACKEND}.env": [{"value": "A"}]}, f"{BACKEND}.env[0].name"),
    ("MB-LENGTH", "ModelBooster", {f"{BACKEND}.name": "x" * 50}, f"{BACKEND}.name"),
    ("MB-REPLICAS", "ModelBooster", {f"{BACKEND}.maxReplicas": ...}, f"{BACKEND}.maxReplicas"),
    (
        "MB-REPLICAS",
        "ModelBooster",
        {f"{BACKEND}.minReplicas": ..., f"{BACKEND}.maxReplicas": ...},
        f"{BACKEND}.minReplicas",
    ),
    (
        "MB-1",
        "ModelBooster",
        {"spec.autoscalingPolicy": BODY, f"{BACKEND}.scaleToZeroGracePeriod": "31m"},
        f"{BACKEND}.scaleToZeroGracePeriod",
    ),
    ("MB-2a", "ModelBooster", {f"{BACKEND}.minReplicas": 2}, f"{BACKEND}.minReplicas"),
    (
        "MB-2b",
        "ModelBooster",
        {
            "spec.autoscalingPolicy": BODY,
            f"{BACKEND}.scalingCost": 1,
            f"{BACKEND}.maxReplicas": 1_000_000,
            "spec.backends[1]": {
                "name": "b",
                "type": "vLLM",
                "modelURI": "hf://m",
                "replicas": 1,
                "scalingCost": 1,
                "workers": [worker("server")],
            },
        },
        "spec.backends",
    ),
    ("MB-2c", "ModelBooster", {f"{BACKEND}.replicas": 2}, f"{BACKEND}.replicas"),
    ("MB-7", "ModelBooster", {f"{BACKEND}.scalingCost": 1}, f"{BACKEND}.scalingCost"),
    (
        "MB-7",
        "ModelBooster",
        {f"{BACKEND}.scaleToZeroGracePeriod": "1s"},
        f"{BACKEND}.scaleToZeroGracePeriod",
    ),
    ("MB-7", "ModelBooster", {"spec.costExpansionRatePercent": 5}, "spec.costExpansionRatePercent"),
    ("MB-8", "ModelBooster", {f"{BACKEND}.maxReplicas": 2}, f"{BACKEND}.maxReplicas"),
    (
        "MB-9",
        "ModelBooster",
        {
            "spec.autoscalingPolicy": BODY,
            f"{BACKEND}.scalingCost": 1,
            "spec.backends[1]": {
                "name": "b",
                "type": "vLLM",
                "modelURI": "hf://m",
                "replicas": 1,
                "workers": [worker("server")],
            },
        },
        "spec.backends[1].scalingCost",
    ),
    (
        "MB-10",
        "ModelBooster",
        {"spec.autoscalingPolicy": BODY, f"{BACKEND}.autoscalingPolicy": BODY},
        f"{BACKEND}.autoscalingPolicy",
    ),
    (
        "MB-11",
        "ModelBooster",
        {f"{BACKEND}.loraAdapters": [{"name": "thing", "artifactURL": "hf://a"}]},
        f"{BACKEND}.loraAdapters[0].name",
    ),
    (
        "MB-11",
        "ModelBooster",
        {f"{BACKEND}.loraAdapters": [{"name": "a", "artifactURL": "hf://a"}] * 2},
        f"{BACKEND}.loraAdapters[1].name",
    ),
    (
        "MB-13a",
        "ModelBooster",
        {f"{BACKEND}.cacheURI": "hostpath:///a/../etc"},
        f"{BACKEND}.cacheURI",
    ),
    ("MB-13a", "ModelBooster", {f"{BACKEND}.modelURI": "hf://a/.."}, f"{BACKEND}.modelURI"),
    ("MB-13b", "ModelBooster", {f"{BACKEND}.modelURI": "pvc://c/m"}, f"{BACKEND}.modelURI"),
    ("MB-13b", "ModelBooster", {f"{BACKEND}.cacheURI": "pvc:///"}, f"{BACKEND}.cacheURI"),
    ("MB-13b", "ModelBooster", {f"{BACKEND}.cacheURI": "pvc://a/b"}, f"{BACKEND}.cacheURI"),
    (
        "MB-13b",
        "ModelBooster",
        {f"{BACKEND}.modelURI": "pvc://c-2/m", f"{BACKEND}.cacheURI": "pvc://c"},
        f"{BACKEND}.modelURI",
    ),
    (
        "MB-AS-1a",
        "ModelBooster",
        {"spec.autoscalingPolicy.metrics": [{"metricName": "m", "targetValue": 0}]},
        "spec.autoscalingPolicy.metrics[0].targetValue",
    ),
    (
        "MB-AS-1b",
        "ModelBooster",
        {f"{BACKEND}.autoscalingPolicy.metrics": [{"metricName": "m", "targetValue": 1}] * 2},
        f"{BACKEND}.autoscalingPolicy.metrics[1]",
    ),
    (
        "MB-AS-1c",
        "ModelBooster",
        {"spec.autoscalingPolicy.metrics": [{"targetValue": 1}]},
        "spec.autoscalingPolicy.metrics[0].metricName",
    ),
    (
        "MB-AS-1d",
        "ModelBooster",
        {"spec.autoscalingPolicy.metrics": [{"metricName": "a", "name": "b", "targetValue": 1}]},
        "spec.autoscalingPolicy.metrics[0].name",
    ),
    (
        "MB-AS-2",
        "ModelBooster",
        {"spec.autoscalingPolicy": {**BODY, "behavior": {"scaleDown": {"period": "1h"}}}},
        "spec.autoscalingPolicy.behavior.scaleDown.period",
    ),
    ("MB-AS-5", "ModelBooster", {"spec.autoscalingPolicy": {}}, "spec.autoscalingPolicy.metrics"),
    ("MB-3a", "ModelBooster", {f"{WORKER}.image": "a\u2003b"}, f"{WORKER}.image"),
    ("MB-3b", "ModelBooster", {f"{WORKER}.image": ...}, f"{WORKER}.image"),
    ("MB-4", "ModelBooster", {f"{BACKEND}.workers[1]": worker("server")}, f"{BACKEND}.workers"),
    ("MB-4", "ModelBooster", {f"{WORKER}.type": "prefill"}, f"{BACKEND}.workers"),
    (
        "MB-4",
        "ModelBooster",
        {f"{BACKEND}.type": "MindIE", f"{WORKER}.type": "coordinator"},
        f"{BACKEND}.workers",
    ),
    ("MB-4", "ModelBooster", {f"{BACKEND}.type": "vLLMDisaggregated"}, f"{WORKER}.type"),
    (
        "MB-4",
        "ModelBooster",
        {f"{BACKEND}.type": "vLLMDisaggregated", f"{WORKER}.type": "prefill"},
        f"{BACKEND}.workers",
    ),
    (
        "MB-5",
        "ModelBooster",
        {**pair(), f"{BACKEND}.workers[2]": worker("decode")},
        f"{BACKEND}.workers[2].type",
    ),
    (
        "MB-6b",
        "ModelBooster",
        {
            f"{BACKEND}.type": "MindIEDisaggregated",
            f"{BACKEND}.workers": [worker("prefill"), worker("decode")],
        },
        f"{BACKEND}.workers",
    ),
    ("MB-F18", "ModelBooster", {f"{WORKER}.replicas": 0}, f"{WORKER}.replicas"),
    ("MB-F18", "ModelBooster", {f"{WORKER}.pods": ...}, f"{WORKER}.pods"),
    ("MB-12a", "ModelBooster", {f"{WORKER}.config": {"port": None}}, f"{WORKER}.config.port"),
    ("MB-12a", "ModelBooster", {f"{WORKER}.config": {"port": "70000"}}, f"{WORKER}.config.port"),
    ("MB-12a", "ModelBooster", {f"{WORKER}.config": {"port": True}}, f"{WORKER}.config.port"),
    ("MB-12b", "ModelBooster", {**pair(), f"{WORKER}.config.port": 9000}, f"{BACKEND}.workers"),
    ("MB-14a", "ModelBooster", pair("{", CONSUMER), f"{WORKER}.config"),
    ("MB-14a", "ModelBooster", pair("[]", CONSUMER), f"{WORKER}.config"),
    (
        "MB-14b",
        "ModelBooster",
        pair(connector("Mine", "kv_both"), connector("Mine", "kv_both")),
        f"{WORKER}.config.kv-transfer-config",
    ),
    ("MB-14c", "ModelBooster", pair(CONSUMER, CONSUMER), f"{WORKER}.config.kv-transfer-config"),
    (
        "MB-14c",
        "ModelBooster",
        pair('{"kv_connector":"NixlConnector"}', CONSUMER),
        f"{WORKER}.config.kv-transfer-config",
    ),
    (
        "MB-14d",
        "ModelBooster",
        pair(PRODUCER, connector("LMCacheConnectorV1", "kv_both")),
        f"{BACKEND}.workers",
    ),
    ("MB-14e", "ModelBooster", pair(PRODUCER, None), f"{BACKEND}.workers"),
    # routing
    ("RT-1", "ModelRoute", {"spec.modelName": ...}, "spec.modelName"),
    ("RT-1", "ModelRoute", {"spec.modelName": ""}, "spec.modelName"),
    ("RT-2", "ModelRoute", {"spec.loraAdapters": ["a", ""]}, "spec.loraAdapters[1]"),
    (
        "RT-3",
        "ModelRoute",
        {f"{RULE}.targetModels": [{}]},
        f"{RULE}.targetModels[0].modelServerName",
    ),
    (
        "RT-3",
        "ModelRoute",
        {f"{RULE}.targetModels[0].externalModelProviderName": "p"},
        f"{RULE}.targetModels[0].modelServerName",
    ),
    (
        "RT-4",
        "ModelRoute",
        {"spec.loraAdapters": ["a"], f"{RULE}.targetModels": [{"externalModelProviderName": "p"}]},
        f"{RULE}.targetModels[0].externalModelProviderName",
    ),
    ("RT-5", "ModelRoute", {f"{RULE}.targetModels": []}, f"{RULE}.targetModels"),
    ("RT-6", "ModelRoute", {f"{RULE}.targetModels[0].weight": 0}, f"{RULE}.targetModels"),
    ("RT-7", "ModelRoute", {f"{RULE}.modelMatch.uri.regex": "["}, f"{RULE}.modelMatch.uri.regex"),
    (
        "RT-7",
        "ModelRoute",
        {f"{RULE}.modelMatch.headers": {"X-Y": {"regex": "("}}},
        f"{RULE}.modelMatch.headers.X-Y.regex",
    ),
    (
        "RT-8",
        "ModelRoute",
        {f"{RULE}.modelMatch.uri": {"exact": "/a", "regex": "a"}},
        f"{RULE}.modelMatch.uri",
    ),
    ("RT-9", "ModelRoute", {"spec.rules": []}, "spec.rules"),
    ("RT-10", "ModelRoute", {"spec.rateLimit": {"unit": "hour"}}, "spec.rateLimit"),
    ("RT-20", "ModelServer", {"spec.workloadSelector": {}}, "spec.workloadSelector.matchLabels"),
    ("RT-21", "ModelServer", {"spec.workloadPort": ...}, "spec.workloadPort"),
    (
        "RT-22",
        "ModelServer",
        {
            "spec.workloadSelector.pdGroup": {
                "groupKey": "",
                "prefillLabels": {},
                "decodeLabels": {},
            }
        },
        "spec.workloadSelector.pdGroup.groupKey",
    ),
    (
        "RT-23",
        "ModelServer",
        {"spec.workloadSelector.matchLabels": {"a": "b c"}},
        "spec.workloadSelector.matchLabels.a",
    ),
    ("RT-30", "ExternalModelProvider", {"spec.baseURL": "https://u:p@x"}, "spec.baseURL"),
    ("RT-30", "ExternalModelProvider", {"spec.baseURL": "https://x/?key=1"}, "spec.baseURL"),
    ("RT-30", "ExternalModelProvider", {"spec.baseURL": "https:///x"}, "spec.baseURL"),
    ("RT-30", "ExternalModelProvider", {"spec.baseURL": "https://x:99999"}, "spec.baseURL"),
    (
        "RT-31",
        "ExternalModelProvider",
        {"spec.headers": {"Authorization": "x"}},
        "spec.headers.Authorization",
    ),
    ("RT-31", "ExternalModelProvider", {"spec.headers": {"a b": "x"}}, 'spec.headers["a b"]'),
    ("RT-31", "ExternalModelProvider", {"spec.headers": {"a": "x\r\ny"}}, "spec.headers.a"),
    (
        "RT-32",
        "ExternalModelProvider",
        {"spec.auth.secretRef": {"key": "k"}},
        "spec.auth.secretRef.name",
    ),
    (
        "RT-32",
        "ExternalModelProvider",
        {"spec.auth.secretRef": {"name": "s", "key": ""}},
        "spec.auth.secretRef.key",
    ),
    (
        "RT-32",
        "ExternalModelProvider",
        {"spec.auth.secretRef": {"name": "s", "key": "k", "optional": True}},
        "spec.auth.secretRef.optional",
    ),
    # llmaz
    ("LZ-T03", "OpenModel", {"metadata.name": "qwen-2-0.5b"}, "metadata.name"),
    ("LZ-T04", "OpenModel", {"spec.source": {}}, "spec.source"),
    ("LZ-ID", "OpenModel", {f"{HUB}.modelID": ...}, f"{HUB}.modelID"),
    ("LZ-T05", "OpenModel", {"spec.source": {"uri": "ftp://x/y"}}, "spec.source.uri"),
    ("LZ-T05", "OpenModel", {"spec.source": {"uri": "oss://endpoint/x"}}, "spec.source.uri"),
    (
        "LZ-T08",
        "OpenModel",
        {f"{HUB}.filename": "f", f"{HUB}.allowPatterns": ["*"]},
        f"{HUB}.allowPatterns",
    ),
    (
        "LZ-T08",
        "OpenModel",
        {f"{HUB}.filename": "f", f"{HUB}.ignorePatterns": []},
        f"{HUB}.ignorePatterns",
    ),
    (
        "LZ-T09",
        "OpenModel",
        {f"{HUB}.filename": "f", f"{HUB}.name": "ModelScope"},
        f"{HUB}.filename",
    ),
    (
        "LZ-FLAVORS",
        "OpenModel",
        {"spec.inferenceConfig.flavors": [{"name": "a"}] * 2},
        "spec.inferenceConfig.flavors[1].name",
    ),
    ("LZ-FAMILY", "OpenModel", {"spec.familyName": "llama 3"}, "spec.familyName"),
    ("LZ-CREATED", "OpenModel", {"spec.createdAt": "yesterday"}, "spec.createdAt"),
    ("LZ-CREATED", "OpenModel", {"spec.createdAt": "2026-01-31T12:00:00"}, "spec.createdAt"),
    ("LZ-T18", "Playground", {"metadata.name": "a.b"}, "metadata.name"),
    ("LZ-LB-P", "Playground", {"metadata.name": "405b"}, "metadata.name"),
    ("LZ-T12", "Playground", {"spec.modelClaim": ...}, "spec.modelClaim"),
    ("LZ-T12", "Playground", {"spec.modelClaims.models": [{"name": "a"}]}, "spec.modelClaim"),
    *(
        (
            "LZ-T13",
            "Playground",
            {"spec.modelClaim": ..., "spec.modelClaims.models": models},
            "spec.modelClaims.models",
        )
        for models in (
            [{"name": "a", "role": "draft"}],
            [{"name": "a", "role": "draft"}, {"name": "b", "role": "draft"}],
            [{"name": "a"}, {"name": "b"}, {"name": "c", "role": "draft"}],
        )
    ),
    (
        "LZ-MAIN-P",
        "Playground",
        {"spec.modelClaim": ..., "spec.modelClaims.models": [{"name": "a"}, {"name": "b"}]},
        "spec.modelClaims.models",
    ),
    ("LZ-CLAIM-P", "Playground", {"spec.modelClaim.modelName": "A"}, "spec.modelClaim.modelName"),
    (
        "LZ-T15",
        "Playground",
        {"spec.backendRuntimeConfig.resources": {"limits": {"cpu": 5}, "requests": {"cpu": 10}}},
        "spec.backendRuntimeConfig.resources.requests.cpu",
    ),
    (
        "LZ-T16",
        "Playground",
        {"spec.elasticConfig": {"minReplicas": 0}},
        "spec.elasticConfig.minReplicas",
    ),
    (
        "LZ-T16",
        "Playground",
        {"spec.elasticConfig": {"minReplicas": 10, "maxReplicas": 1}},
        "spec.elasticConfig.minReplicas",
    ),
    (
        "LZ-T17",
        "Playground",
        {"spec.elasticConfig.scaleTrigger": {}},
        "spec.elasticConfig.scaleTrigger.hpa",
    ),
    ("LZ-T18S", "Service", {"metadata.name": "a.b"}, "metadata.name"),
    ("LZ-LB-S", "Service", {"metadata.name": "x" * 61}, "metadata.name"),
    ("LZ-T20a", "Service", {"spec.modelClaims.models[0].role": "draft"}, "spec.modelClaims.models"),
    (
        "LZ-MAIN-S",
        "Service",
        {"spec.modelClaims.models[1]": {"name": "b"}},
        "spec.modelClaims.models",
    ),
    (
        "LZ-CLAIM-S",
        "Service",
        {"spec.modelClaims.models[0].name": "a.b"},
        "spec.modelClaims.models[0].name",
    ),
    (
        "LZ-T20b",
        "Service",
        {"spec.workloadTemplate.workerTemplate": POD},
        "spec.workloadTemplate.workerTemplate.spec.containers",
    ),
    (
        "LZ-T20b",
        "Service",
        {"spec.workloadTemplate.workerTemplate": {"spec": 1}},
        "spec.workloadTemplate.workerTemplate.spec.containers",
    ),
    (
        "LZ-LEADER",
        "Service",
        {"spec.workloadTemplate.leaderTemplate": POD},
        "spec.workloadTemplate.leaderTemplate.spec.containers",
    ),
    (
        "LZ-T21a",
        "BackendRuntime",
        {"spec.recommendedConfigs": [{"name": "a"}] * 2},
        "spec.recommendedConfigs[1].name",
    ),
    (
        "LZ-T21b",
        "BackendRuntime",
        {
            "spec.recommendedConfigs": [
                {"name": "a", "resources": {"limits": {"cpu": "500m"}, "requests": {"cpu": 1}}}
            ]
        },
        "spec.recommendedConfigs[0].resources.requests.cpu",
    ),
    (
        "LZ-HPA",
        "BackendRuntime",
        {"spec.recommendedConfigs": [{"name": "a", "scaleTrigger": {}}]},
        "spec.recommendedConfigs[0].scaleTrigger.hpa",
    ),
    (
        "LZ-ARGS",
        "BackendRuntime",
        {"spec.recommendedConfigs": [{"name": "a", "args": ["{{.TP}}"]}]},
        "spec.recommendedConfigs[0].args[0]",
    ),
]

ROWS = {rule.id: rule for token in KINDS for rule in rules_for(token)}


@pytest.mark.parametrize(("rule", "token", "changes", "field"), BROKEN)
def test_a_broken_rule_is_told_with_its_place(
    admitted, problems, rule: str, token: str, changes: dict, field: str
) -> None:
    refused = problems(token, changes)
    told = refused if ROWS[rule].severity is Severity.ERROR else admitted(token, changes).warnings
    assert field in [problem.field for problem in told]
    assert all(problem.message and problem.remedy for problem in told)
    assert bool(refused) is (ROWS[rule].severity is Severity.ERROR)


def test_every_rule_that_is_checked_is_broken_above() -> None:
    checked = {rule.id for rule in ROWS.values() if rule.check is not None}
    assert {case[0] for case in BROKEN} == checked


def test_a_rule_has_a_check_unless_it_is_accepted() -> None:
    for rule in ROWS.values():
        assert (rule.check is None) is (rule.severity is Severity.ACCEPTED)


@pytest.mark.parametrize("token", list(KINDS))
def test_ids_are_unique_and_decisions_are_written_down(token: str) -> None:
    rules = rules_for(token)
    assert len({rule.id for rule in rules}) == len(rules)
    assert all(rule.section and rule.decision for rule in rules)


FINE = [
    *((token, {}) for token in KINDS),
    ("Pod", {"metadata.annotations": {"Example.com/Key": "any\ntext"}}),
    ("AutoscalingPolicy", {"spec.behavior.scaleDown.stabilizationWindow": "30m"}),
    ("AutoscalingPolicy", {"spec.metrics[0].name": METRIC}),
    ("AutoscalingPolicy", {SINGLE: target(low=2, high=2, metricSources=SOURCE)}),
    ("AutoscalingPolicy", {f"{SINGLE}": target(), f"{SINGLE}.target.targetRef.kind": ""}),
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
    ("ModelServing", {"metadata.name": "x" * 50}),
    ("ModelServing", {f"{ROLE}.name": "405B"}),
    ("ModelServing", {f"{ROLE}.workerReplicas": 2, f"{ROLE}.workerTemplate": POD}),
    ("ModelServing", {f"{ROLE}.entryTemplate.spec.containers[0].image": ""}),
    ("ModelServing", {f"{ROLLING}.maxUnavailable": 0, f"{ROLLING}.maxSurge": 1}),
    ("ModelServing", {"spec.replicas": 4, f"{ROLLING}.maxUnavailable": "25%"}),
    ("ModelServing", {"spec.replicas": 4, f"{ROLLING}.partition": 3}),
    ("ModelServing", {f"{ROLLING}.maxUnavailable": 5}),
    ("ModelServing", {f"{ROLE}.maxUnavailable": 0}),
    ("ModelServing", {**BY_ROLE, f"{ROLE}.partition": 1, f"{ROLE}.replicas": 0}),
    ("ModelServing", {"spec.template.gangPolicy.minRoleReplicas": {"server": 0}}),
    ("ModelServing", {"spec.template.gangPolicy": {}}),
    ("ModelServing", {"spec.plugins": [{"name": "lws-standard-labels", "scope": {"target": ""}}]}),
    ("ModelBooster", {"spec.autoscalingPolicy": BODY, f"{BACKEND}.maxReplicas": 3}),
    ("ModelBooster", {f"{BACKEND}.autoscalingPolicy": BODY, f"{BACKEND}.maxReplicas": 3}),
    ("ModelBooster", {f"{BACKEND}.autoscalingPolicy": BODY, f"{BACKEND}.minReplicas": 0}),
    (
        "ModelBooster",
        {f"{BACKEND}.minReplicas": ..., f"{BACKEND}.maxReplicas": ..., f"{BACKEND}.replicas": 0},
    ),
    ("ModelBooster", {f"{BACKEND}.modelURI": "pvc://c/m", f"{BACKEND}.cacheURI": "pvc:///c/"}),
    ("ModelBooster", {f"{BACKEND}.modelURI": "pvc://c", f"{BACKEND}.cacheURI": "pvc://c"}),
    ("ModelBooster", {f"{BACKEND}.modelURI": "hf://a..b/c"}),
    ("ModelBooster", {f"{WORKER}.config": {"port": "9000"}}),
    ("ModelBooster", pair()),
    ("ModelBooster", pair(PRODUCER, CONSUMER)),
    (
        "ModelBooster",
        pair(
            connector("MooncakeConnector", "kv_both"), connector("MooncakeConnectorV1", "kv_both")
        ),
    ),
    ("ModelBooster", pair({"kv_connector": "NixlConnector", "kv_role": "kv_both"}, CONSUMER)),
    (
        "ModelBooster",
        {
            f"{BACKEND}.type": "MindIEDisaggregated",
            f"{BACKEND}.workers": [worker("coordinator"), worker("prefill")],
        },
    ),
    ("ModelRoute", {"spec.modelName": ..., "spec.loraAdapters": ["a"]}),
    ("ModelRoute", {f"{RULE}.modelMatch.uri.regex": "^/v1/(chat|completions)$"}),
    ("ModelRoute", {f"{RULE}.targetModels": [{"externalModelProviderName": "p"}]}),
    (
        "ModelRoute",
        {f"{RULE}.targetModels": [{"modelServerName": "a", "weight": 0}, {"modelServerName": "b"}]},
    ),
    ("OpenModel", {"spec.source.uri": "s3://b/p"}),
    ("OpenModel", {"spec.source": {"uri": "host:///p"}}),
    ("OpenModel", {f"{HUB}.allowPatterns": ["*"], f"{HUB}.ignorePatterns": ["x"]}),
    ("OpenModel", {f"{HUB}.filename": "f.gguf"}),
    (
        "Playground",
        {
            "spec.modelClaim": ...,
            "spec.modelClaims.models": [{"name": "a"}, {"name": "b", "role": "draft"}],
        },
    ),
    (
        "Playground",
        {
            "spec.backendRuntimeConfig.resources": {
                "limits": {"cpu": "1"},
                "requests": {"cpu": "1000m"},
            }
        },
    ),
    ("Playground", {"spec.backendRuntimeConfig.resources": {"requests": {"cpu": "10"}}}),
    ("Playground", {"spec.elasticConfig.scaleTrigger.hpa": {"metrics": []}}),
    ("Service", {"spec.modelClaims.models[1]": {"name": "b", "role": "draft"}}),
    (
        "BackendRuntime",
        {"spec.recommendedConfigs": [{"name": "a", "args": ["{{ModelPath}} {{ .ModelName }}"]}]},
    ),
]


@pytest.mark.parametrize(("token", "changes"), FINE)
def test_what_breaks_no_rule_is_admitted_without_a_word(
    admitted, token: str, changes: dict
) -> None:
    once = admitted(token, changes)
    assert once.warnings == ()
    assert admit(once.object).object == once.object
