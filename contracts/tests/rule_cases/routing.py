"""Rules of routes, model servers and external providers: what breaks them, and what comes close."""

RULE = "spec.rules[0]"


PAIRED = {"groupKey": "g", "prefillLabels": {"r": "p"}, "decodeLabels": {"r": "d"}}

BROKEN = [
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
    (
        "RT-24",
        "ModelServer",
        {
            "spec.workloadSelector.pdGroup": PAIRED,
            "spec.inferenceEngine": "SGLang",
            "spec.kvConnector": {"type": "nixl"},
        },
        "spec.kvConnector.type",
    ),
    (
        "RT-24",
        "ModelServer",
        {
            "spec.workloadSelector.pdGroup": PAIRED,
            "spec.inferenceEngine": "vLLM",
            "spec.kvConnector": {"type": "sglang"},
        },
        "spec.kvConnector.type",
    ),
    (
        "RT-25",
        "ModelServer",
        {"metadata.annotations": {"inferbus.dev/prefill-min-tokens": "256"}},
        'metadata.annotations["inferbus.dev/prefill-min-tokens"]',
    ),
    (
        "RT-25",
        "ModelServer",
        {
            "metadata.annotations": {"inferbus.dev/prefill-min-tokens": "256"},
            "spec.workloadSelector.pdGroup": PAIRED,
            "spec.inferenceEngine": "SGLang",
        },
        'metadata.annotations["inferbus.dev/prefill-min-tokens"]',
    ),
    (
        "RT-25",
        "ModelServer",
        {
            "metadata.annotations": {"inferbus.dev/bootstrap-port": "9000"},
            "spec.workloadSelector.pdGroup": PAIRED,
            "spec.inferenceEngine": "vLLM",
        },
        'metadata.annotations["inferbus.dev/bootstrap-port"]',
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
]
"""(rule, kind, changes, field that is told)."""

FINE = [
    ("ModelRoute", {"spec.modelName": ..., "spec.loraAdapters": ["a"]}),
    ("ModelRoute", {f"{RULE}.modelMatch.uri.regex": "^/v1/(chat|completions)$"}),
    ("ModelRoute", {f"{RULE}.targetModels": [{"externalModelProviderName": "p"}]}),
    (
        "ModelRoute",
        {f"{RULE}.targetModels": [{"modelServerName": "a", "weight": 0}, {"modelServerName": "b"}]},
    ),
]
"""(kind, changes)."""
