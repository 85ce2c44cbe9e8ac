"""Rules of ModelBooster: what breaks them, and what comes close."""

BACKEND = "spec.backends[0]"
WORKER = f"{BACKEND}.workers[0]"
METRIC = "kthena:num_requests_waiting"
BODY = {"metrics": [{"metricName": METRIC, "targetValue": 10}]}


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
    ("MB-URI", "ModelBooster", {f"{BACKEND}.modelURI": "hf://a/b/c"}, f"{BACKEND}.modelURI"),
    (
        "MB-URI",
        "ModelBooster",
        {f"{BACKEND}.loraAdapters": [{"name": "a", "artifactURL": "hf://a b"}]},
        f"{BACKEND}.loraAdapters[0].artifactURL",
    ),
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
    *(
        ("MB-12a", "ModelBooster", {f"{WORKER}.config": {"port": port}}, f"{WORKER}.config.port")
        for port in (0, 65536, "65536", "9000000", "-1", "", "http", 8000.5, [8000])
    ),
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
]
"""(rule, kind, changes, field that is told)."""

FINE = [
    ("ModelBooster", {"spec.autoscalingPolicy": BODY, f"{BACKEND}.maxReplicas": 3}),
    ("ModelBooster", {f"{BACKEND}.autoscalingPolicy": BODY, f"{BACKEND}.maxReplicas": 3}),
    ("ModelBooster", {f"{BACKEND}.autoscalingPolicy": BODY, f"{BACKEND}.minReplicas": 0}),
    (
        "ModelBooster",
        {f"{BACKEND}.minReplicas": ..., f"{BACKEND}.maxReplicas": ..., f"{BACKEND}.replicas": 0},
    ),
    ("ModelBooster", {f"{BACKEND}.modelURI": "pvc://c/m", f"{BACKEND}.cacheURI": "pvc:///c/"}),
    ("ModelBooster", {f"{BACKEND}.modelURI": "pvc://c", f"{BACKEND}.cacheURI": "pvc://c"}),
    ("ModelBooster", {f"{BACKEND}.modelURI": "s3://b/a..b/c"}),
    *(
        ("ModelBooster", {f"{WORKER}.config": {"port": port}})
        for port in (1, 65535, "1", "9000", "65535")
    ),
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
]
"""(kind, changes)."""
