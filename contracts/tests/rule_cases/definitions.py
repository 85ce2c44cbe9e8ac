"""What a definition refuses, and what it accepts, beside the rules of admission.

The same documents are judged by the schemas alone and by a real API server.
"""

ROLE = "spec.template.roles[0]"
ROLLING = "spec.rolloutStrategy.rollingUpdateConfiguration"
TARGET = "spec.scalingConfiguration"
BACKEND = "spec.backends[0]"

REFUSED = [
    ("ModelServing", {"spec.replicas": -1}, "spec.replicas"),
    ("ModelServing", {"spec.replicas": "2"}, "spec.replicas"),
    ("ModelServing", {"spec.replicas": 2**31}, "spec.replicas"),
    ("ModelServing", {"spec.template.roles": []}, "spec.template.roles"),
    ("ModelServing", {"spec.template": ...}, "spec.template"),
    ("ModelServing", {"spec.recoveryPolicy": "Never"}, "spec.recoveryPolicy"),
    ("ModelServing", {"spec.rolloutStrategy.type": "Recreate"}, "spec.rolloutStrategy.type"),
    ("ModelServing", {f"{ROLLING}.maxUnavailable": "1"}, f"{ROLLING}.maxUnavailable"),
    ("ModelServing", {f"{ROLLING}.maxUnavailable": -1}, f"{ROLLING}.maxUnavailable"),
    ("ModelServing", {f"{ROLLING}.maxSurge": 2**31}, f"{ROLLING}.maxSurge"),
    ("ModelServing", {f"{ROLLING}.maxSurge": "some"}, f"{ROLLING}.maxSurge"),
    ("ModelServing", {f"{ROLE}.name": "thirteenchars"}, f"{ROLE}.name"),
    ("ModelServing", {f"{ROLE}.name": "-a"}, f"{ROLE}.name"),
    ("ModelServing", {f"{ROLE}.workerReplicas": ...}, f"{ROLE}.workerReplicas"),
    ("ModelServing", {f"{ROLE}.workerReplicas": -1}, f"{ROLE}.workerReplicas"),
    (
        "ModelServing",
        {"spec.template.networkTopology.groupPolicy.mode": "near"},
        "spec.template.networkTopology.groupPolicy.mode",
    ),
    (
        "ModelServing",
        {"spec.plugins": [{"name": "p", "type": "Webhook"}]},
        "spec.plugins[0].type",
    ),
    ("AutoscalingPolicy", {"spec.tolerancePercent": 101}, "spec.tolerancePercent"),
    ("AutoscalingPolicy", {"spec.metrics[0].targetValue": "ten"}, "spec.metrics[0].targetValue"),
    ("AutoscalingPolicy", {"spec.metrics[0].targetValue": ...}, "spec.metrics[0].targetValue"),
    (
        "AutoscalingPolicy",
        {"spec.behavior.scaleDown.period": "15"},
        "spec.behavior.scaleDown.period",
    ),
    (
        "AutoscalingPolicy",
        {"spec.behavior.scaleUp.panicPolicy.panicThresholdPercent": 109},
        "spec.behavior.scaleUp.panicPolicy.panicThresholdPercent",
    ),
    ("AutoscalingPolicyBinding", {f"{TARGET}.maxReplicas": 0}, f"{TARGET}.maxReplicas"),
    ("AutoscalingPolicyBinding", {f"{TARGET}.minReplicas": 1_000_001}, f"{TARGET}.minReplicas"),
    ("ModelBooster", {f"{BACKEND}.modelURI": "ftp://a"}, f"{BACKEND}.modelURI"),
    ("ModelBooster", {f"{BACKEND}.type": "vllm"}, f"{BACKEND}.type"),
    ("ModelBooster", {f"{BACKEND}.workers": []}, f"{BACKEND}.workers"),
    ("ModelBooster", {f"{BACKEND}.routeWeight": 101}, f"{BACKEND}.routeWeight"),
    ("ModelBooster", {"spec.name": "Big"}, "spec.name"),
    ("ModelRoute", {"spec.rules": ...}, "spec.rules"),
    (
        "ModelRoute",
        {"spec.rules[0].targetModels[0].weight": 101},
        "spec.rules[0].targetModels[0].weight",
    ),
    ("ModelRoute", {"spec.rateLimit": {"unit": "week"}}, "spec.rateLimit.unit"),
    ("ModelRoute", {"spec.rateLimit.inputTokensPerUnit": 0}, "spec.rateLimit.inputTokensPerUnit"),
    ("ModelServer", {"spec.inferenceEngine": "vllm"}, "spec.inferenceEngine"),
    ("ModelServer", {"spec.workloadPort.port": 65536}, "spec.workloadPort.port"),
    ("ModelServer", {"spec.trafficPolicy.timeout": "-1s"}, "spec.trafficPolicy.timeout"),
    ("ModelServer", {"spec.model": "m" * 257}, "spec.model"),
    ("ExternalModelProvider", {"spec.baseURL": "http://x"}, "spec.baseURL"),
    ("ExternalModelProvider", {"spec.providerType": "Other"}, "spec.providerType"),
    ("OpenModel", {"spec.source.modelHub.name": "Hub"}, "spec.source.modelHub.name"),
    ("OpenModel", {"spec.familyName": ...}, "spec.familyName"),
    ("BackendRuntime", {"spec.image": ...}, "spec.image"),
    ("Playground", {"spec.replicas": -1}, "spec.replicas"),
    ("Playground", {"spec.elasticConfig": {"maxReplicas": 0}}, "spec.elasticConfig.maxReplicas"),
    ("Service", {"spec.modelClaims": ...}, "spec.modelClaims"),
    ("Service", {"spec.modelClaims.models": []}, "spec.modelClaims.models"),
    ("Service", {"spec.workloadTemplate.size": 0}, "spec.workloadTemplate.size"),
    (
        "Service",
        {"spec.workloadTemplate.restartPolicy": "Always"},
        "spec.workloadTemplate.restartPolicy",
    ),
]
"""(kind, changes, field): refused by the schema, at this field."""

ACCEPTED = [
    ("ModelServing", {"spec.template.networkTopology": {"mode": "soft", "highestTierAllowed": 2}}),
    ("ModelServing", {"spec.template.networkTopology": {"rolePolicy": {"highestTierName": "x"}}}),
    ("ModelServing", {f"{ROLLING}.maxUnavailable": "50%", f"{ROLLING}.maxSurge": "150%"}),
    ("ModelServing", {f"{ROLLING}.partition": "000%", f"{ROLLING}.maxUnavailable": "0100%"}),
    ("ModelServing", {"spec.plugins": [{"name": "a"}, {"name": "a", "config": [1, {"b": None}]}]}),
    ("ModelServing", {"spec.replicas": 0, f"{ROLE}.replicas": 0}),
    ("ModelServing", {f"{ROLE}.entryTemplate.spec.anything": {"goes": [1.5, "x"]}}),
    ("ModelServing", {f"{ROLE}.workerTemplate": {}}),
    ("AutoscalingPolicy", {"spec.metrics[0].targetValue": "0.5"}),
    ("AutoscalingPolicy", {"spec.metrics[0].targetValue": "1e-3"}),
    ("AutoscalingPolicy", {"spec.metrics[0].targetValue": ".5Gi"}),
    ("AutoscalingPolicy", {"spec.behavior.scaleDown.period": "1h30m0.5s"}),
    ("ModelBooster", {f"{BACKEND}.workers[0].config": {"port": "8000", "max-model-len": 4096}}),
    ("ModelBooster", {f"{BACKEND}.modelURI": "pvc:///a//b", f"{BACKEND}.cacheURI": "pvc://a/"}),
    ("ModelBooster", {f"{BACKEND}.modelURI": "pvc://a", f"{BACKEND}.cacheURI": "pvc://a"}),
    ("ModelRoute", {"spec.rules": []}),
    ("ModelRoute", {"spec.rules[0].targetModels": []}),
    ("ModelRoute", {"spec.rateLimit": {}}),
    ("ModelServer", {"spec.workloadPort": ...}),
    ("ModelServer", {"spec.workloadSelector": {}}),
    ("ExternalModelProvider", {"spec.baseURL": "https://[::1]:8443/v1?"}),
    ("OpenModel", {"spec.source": {"uri": "S3://bucket/a/b"}}),
    ("OpenModel", {"spec.source": {"uri": "OSS://bucket.endpoint/a"}}),
    ("OpenModel", {"spec.source": {"uri": "host:///models/a"}}),
    ("OpenModel", {"spec.source": {"uri": "ollama://qwen2:0.5b"}}),
    ("OpenModel", {"spec.inferenceConfig.flavors": [{"name": "a", "limits": {"gpu": "1"}}]}),
    ("Playground", {"spec.replicas": 0, "spec.elasticConfig": {"minReplicas": 1}}),
    ("Service", {"spec.workloadTemplate.leaderTemplate": {"spec": {}}}),
]
"""(kind, changes): nothing is wrong with it, or with its fields at least."""

BY_ADMISSION_ALONE = {
    "META-NAME": "Kubernetes checks names itself",
    "META-LABELS": "Kubernetes checks labels itself",
    "META-ANNOTATIONS": "Kubernetes checks keys of annotations itself",
    "OWN-ANNOTATION-VALUE": "rules don't see annotations",
    "AS-5": "an annotation may take the place of metrics, and rules don't see annotations",
    "AS-7b": "needs arithmetic on quantities",
    "MB-3a": "a pattern knows the white space of ASCII alone",
    "MB-12a": "Kubernetes drops a port that is null",
    "MB-14a": "text inside of JSON text",
    "MB-14c": "text inside of JSON text",
    "MB-14d": "text inside of JSON text",
    "LZ-T15": "needs comparison of quantities",
    "LZ-T21b": "needs comparison of quantities",
}
"""Rules of admission that a definition can't say, or not in every case, and why."""
