"""Rules of llmaz's kinds: what breaks them, and what comes close."""

HUB = "spec.source.modelHub"
POD = {"spec": {"containers": [{"name": "c", "image": "i"}]}}


BROKEN = [
    ("LZ-T03", "OpenModel", {"metadata.name": "qwen-2-0.5b"}, "metadata.name"),
    ("LZ-T04", "OpenModel", {"spec.source": {}}, "spec.source"),
    ("LZ-ID", "OpenModel", {f"{HUB}.modelID": ...}, f"{HUB}.modelID"),
    *(
        ("LZ-T05", "OpenModel", {"spec.source": {"uri": uri}}, "spec.source.uri")
        for uri in (
            "",
            "s3:/b/p",
            "s3://b://p",
            "ftp://x/y",
            "hf://org/m",
            "oss://endpoint/x",
            "oss://e/models/Q2.5/x",
            "oss://.e/x",
            "oss://b.e",
            "s3://b",
            "s3://b/",
            "s3:///p",
            "ollama://",
            "host://relative/path",
        )
    ),
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
"""(rule, kind, changes, field that is told)."""

FINE = [
    ("OpenModel", {"spec.source.uri": "s3://b/p"}),
    *(
        ("OpenModel", {"spec.source": {"uri": uri}})
        for uri in (
            "host:///p",
            "OSS://b.e/p/Qwen2.5-7B/",
            "GCS://b/p",
            "gs://b/p",
            "ollama://qwen2:0.5b",
        )
    ),
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
"""(kind, changes)."""
