"""Rules of ModelServing: what breaks them, and what comes close."""

ROLE = "spec.template.roles[0]"
ROLLING = "spec.rolloutStrategy.rollingUpdateConfiguration"
BY_ROLE = {"spec.rolloutStrategy.type": "RoleRollingUpdate"}
POD = {"spec": {"containers": [{"name": "c", "image": "i"}]}}


BROKEN = [
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
    ("MS-W13", "ModelServing", {f"{ROLE}.workerReplicas": 1}, f"{ROLE}.workerTemplate"),
    (
        "MS-W13",
        "ModelServing",
        {f"{ROLE}.workerReplicas": 1, f"{ROLE}.workerTemplate": {"spec": {"containers": []}}},
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
]
"""(rule, kind, changes, field that is told)."""

FINE = [
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
]
"""(kind, changes)."""
