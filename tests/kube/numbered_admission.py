"""ModelServings that admission refuses or takes, by the numbers of the specification (T, W, F, D).

Each: its numbers, what is changed of a good object by path, and for a refusal what it says.
"""

from contracts.tests.rule_cases import definitions as cases

ROLE, ROLLING = cases.ROLE, cases.ROLLING

REFUSED_BY_NUMBER = [
    ("T74 W5 W16", {"spec.replicas": -1}, "should be a non-negative integer"),
    ("T75 W1", {"metadata.name": "x" * 60}, "metadata.name"),
    ("T75 W2", {f"{ROLE}.name": "a-"}, "roles[0].name"),
    ("T76 W7 zero", {f"{ROLLING}.maxUnavailable": 0}, "maxUnavailable"),
    ("T76 W7 zero percent", {f"{ROLLING}.maxUnavailable": "0%"}, "maxUnavailable"),
    ("T76 W7 no number", {f"{ROLLING}.maxUnavailable": "abc"}, "maxUnavailable"),
    ("T78 W13 no template", {f"{ROLE}.workerReplicas": 2}, "workerTemplate"),
    ("T78 W13 negative", {f"{ROLE}.workerReplicas": -1}, "workerReplicas"),
    (
        "T78 W12 unknown",
        {"spec.template.gangPolicy.minRoleReplicas": {"other": 1}},
        "minRoleReplicas",
    ),
    (
        "T78 W12 negative",
        {"spec.template.gangPolicy.minRoleReplicas": {"server": -1}},
        "minRoleReplicas",
    ),
    ("W4", {f"{ROLE}.entryTemplate.spec.containers[0].image": " "}, "containers[0].image"),
    ("W5 role", {f"{ROLE}.replicas": -1}, "roles[0].replicas"),
    ("W6", {"spec.template.roles": []}, "spec.template.roles"),
    ("W8", {f"{ROLLING}.partition": "101%"}, "partition"),
    ("W10", {f"{ROLE}.partition": "half"}, "partition"),
    ("W11", {"spec.rolloutStrategy.type": "RoleRollingUpdate", f"{ROLE}.maxUnavailable": 0}, "max"),
]
BY_ROLE = {"spec.rolloutStrategy.type": "RoleRollingUpdate"}
ACCEPTED_BY_NUMBER = [
    ("T75 F7 capitals", {f"{ROLE}.name": "Prefill"}),
    ("T75 F7 a digit", {f"{ROLE}.name": "1a"}),
    ("T76 more than there are", {f"{ROLLING}.maxUnavailable": 9}),
    ("F6", {f"{ROLLING}.maxUnavailable": 0, f"{ROLLING}.maxSurge": 1}),
    ("T77 W9", {**BY_ROLE, f"{ROLLING}.partition": 0}),
    ("T77 W10", {f"{ROLE}.partition": 1}),
    ("T77 D25", {**BY_ROLE, f"{ROLE}.maxUnavailable": 5}),
    ("T78 D26", {"spec.template.gangPolicy.minRoleReplicas": {"server": 9}}),
    ("W3", {"spec.schedulerName": "my-scheduler"}),
    ("W4 empty", {f"{ROLE}.entryTemplate.spec.containers[0].image": ""}),
    ("W8 all", {f"{ROLLING}.partition": 5}),
    ("W14", {**BY_ROLE, "spec.recoveryPolicy": "ServingGroupRecreate"}),
    ("W15", {"spec.plugins": [{"name": "unknown", "config": {"a": 1}}]}),
]
