"""The two worked examples of the ModelBooster's conversion (modelbooster spec 2.14, 2.15).

v0.1.0's semantics with what the spec's section 7.6 and the rulings correct:
- exec form, `python3`, exact numbers (7.6 item 1); key-value events and LoRA as v0.1.0 has them;
- the model's own name in `--served-model-name` where no other is given (7.6 item 1);
- selectors by backend and entry pod, labels on every template, no revision on pods (7.6 item 2);
- schedulerName left to ModelServing's default, no gang, no spreading (ruling F13; 7.6 item 6);
- a start-up probe in the place of fixed delays, then liveness (7.6 item 6);
- all of the backend's environment in the downloader, envFrom in every container, the cache volume
  in the sidecar (7.3 and 7.6 item 5); no pip at start-up (7.3);
- clients' name from spec.name (2.12, defect 12), metricEndpoint from the sidecar (ruling F3).
"""

import json
from typing import Any

from expansion_builders import backend, booster, disaggregated, worker
from expansion_store import Document, Store, child, kinds

from inferbus_contracts.keys import ObjectKey
from inferbus_spec_watcher.expansion import Expansion

KTHENA = "workload.serving.volcano.sh"
SERVING = "modelserving.volcano.sh"
MODEL = "/models/18488ba95d6e1baca4a2755a6748053e"
ADAPTER = "/models/4c8227f27a8df12854716889ae7e37e2"
KV_EVENTS = {
    "enable_kv_cache_events": True,
    "publisher": "zmq",
    "topic": "kv-events",
    "endpoint": "tcp://*:5557",
}


def expanded(document: Document) -> tuple[Expansion, str]:
    name = document["metadata"]["name"]
    store = Store(document)
    uid = store.objects[ObjectKey("ModelBooster", "llm", name)]["metadata"]["uid"]
    return store.expand("ModelBooster", name, "llm"), uid


def first() -> tuple[Expansion, str]:
    policy = {"metrics": [{"metricName": "kthena:num_requests_waiting", "targetValue": 10}]}
    config = {"served-model-name": "qwen", "max_model_len": 4096, "enforce-eager": ""}
    resources = {"limits": {"nvidia.com/gpu": "1"}}
    main = backend(
        maxReplicas=3,
        env=[{"name": "HF_ENDPOINT", "value": "https://mirror.example"}],
        envFrom=[{"secretRef": {"name": "hub"}}],
        autoscalingPolicy=policy,
        loraAdapters=[{"name": "sql", "artifactURL": "s3://bucket/lora-sql"}],
        workers=[worker(config=config, resources=resources)],
    )
    return expanded(booster(main))


def entry(result: Expansion, role: int = 0) -> Document:
    found: Document = child(result, "ModelServing")["spec"]["template"]["roles"][role]
    template: Document = found["entryTemplate"]
    return template


def names(variables: list[dict[str, Any]]) -> list[str]:
    return [one["name"] for one in variables]


def test_example_1_children_names_and_labels() -> None:
    result, uid = first()
    assert [(one["kind"], one["metadata"]["name"]) for one in result.children] == [
        ("ModelServing", "chat-main"),
        ("ModelServer", "chat-main"),
        ("ModelRoute", "chat"),
        ("AutoscalingPolicy", "chat-main"),
        ("AutoscalingPolicyBinding", "chat-main"),
    ]
    common = {
        f"{KTHENA}/model-name": "chat",
        f"{KTHENA}/managed-by": KTHENA,
        f"{KTHENA}/model-uid": uid,
    }
    for one in result.children:
        assert one["metadata"]["namespace"] == "llm"
        labels = dict(one["metadata"]["labels"])
        assert labels.pop(f"{KTHENA}/revision")
        backend_name = "" if one["kind"] == "ModelRoute" else "main"
        assert labels == {**common, f"{KTHENA}/backend-name": backend_name}
    assert entry(result)["metadata"]["labels"] == {**common, f"{KTHENA}/backend-name": "main"}


def test_example_1_serving() -> None:
    result, _ = first()
    spec = child(result, "ModelServing")["spec"]
    assert spec["replicas"] == 1
    assert spec["schedulerName"] == "volcano"
    assert spec["template"]["restartGracePeriodSeconds"] == 60
    assert "gangPolicy" not in spec["template"]
    (role,) = spec["template"]["roles"]
    assert (role["name"], role["replicas"], role["workerReplicas"]) == ("leader", 1, 0)
    assert names(role["workerTemplate"]["spec"]["containers"]) == ["main-vllm-worker"]
    pod = role["entryTemplate"]["spec"]
    assert pod["terminationGracePeriodSeconds"] == 300
    assert pod["volumes"][0] == {
        "name": "main-weights",
        "hostPath": {"path": "/models", "type": "DirectoryOrCreate"},
    }


def test_example_1_downloaders() -> None:
    result, _ = first()
    model, adapter = entry(result)["spec"]["initContainers"]
    assert (model["name"], adapter["name"]) == (
        "chat-model-downloader",
        "chat-lora-downloader-0",
    )
    assert model["args"] == [
        *("--source", "hf://Qwen/Qwen2.5-0.5B-Instruct", "--output-dir", MODEL)
    ]
    assert adapter["args"] == ["--source", "s3://bucket/lora-sql", "--output-dir", ADAPTER]
    for one in (model, adapter):
        assert one["env"] == [{"name": "HF_ENDPOINT", "value": "https://mirror.example"}]
        assert one["envFrom"] == [{"secretRef": {"name": "hub"}}]
        assert one["volumeMounts"] == [{"name": "main-weights", "mountPath": "/models"}]


def test_example_1_containers() -> None:
    result, _ = first()
    runtime, engine = entry(result)["spec"]["containers"]
    assert (runtime["name"], engine["name"]) == ("runtime", "engine")
    assert runtime["args"] == [
        *("--port", "8100", "--engine", "vllm", "--engine-base-url", "http://localhost:8000"),
        *("--engine-metrics-path", "/metrics", "--pod", "$(POD_NAME).$(NAMESPACE)"),
        *("--model", "chat"),
    ]
    assert runtime["ports"] == [{"containerPort": 8100}]
    assert runtime["readinessProbe"]["httpGet"] == {"path": "/health", "port": 8100}
    command = engine["command"]
    events = command.index("--kv-events-config")
    assert command[:events] == [
        *("python3", "-m", "vllm.entrypoints.openai.api_server", "--model", MODEL),
        *("--enforce-eager", "--max-model-len", "4096", "--served-model-name", "qwen"),
    ]
    assert json.loads(command[events + 1]) == KV_EVENTS
    assert command[events + 2 :] == ["--enable-lora", "--lora-modules", f"sql={ADAPTER}"]
    assert engine["readinessProbe"]["httpGet"] == {"path": "/health", "port": 8000}
    assert engine["resources"] == {"limits": {"nvidia.com/gpu": "1"}}
    standard = ["POD_NAME", "NAMESPACE", "VLLM_USE_V1", "REDIS_HOST", "REDIS_PORT"]
    for one in (runtime, engine):
        assert names(one["env"]) == ["HF_ENDPOINT", *standard, "REDIS_PASSWORD"]
        assert one["envFrom"] == [{"secretRef": {"name": "hub"}}]


def test_example_1_routing() -> None:
    result, uid = first()
    assert child(result, "ModelServer")["spec"] == {
        "model": "qwen",
        "inferenceEngine": "vLLM",
        "workloadSelector": {
            "matchLabels": {
                f"{KTHENA}/model-uid": uid,
                f"{KTHENA}/backend-name": "main",
                f"{SERVING}/entry": "true",
            }
        },
        "workloadPort": {"port": 8000, "protocol": "http"},
        "trafficPolicy": {"retry": {"attempts": 5, "retryInterval": "0s"}},
    }
    targets = [{"modelServerName": "chat-main", "weight": 100}]
    assert child(result, "ModelRoute")["spec"] == {
        "modelName": "chat",
        "loraAdapters": ["sql"],
        "rules": [{"name": "default", "targetModels": targets}],
    }


def test_example_1_scaling() -> None:
    result, _ = first()
    metrics = child(result, "AutoscalingPolicy")["spec"]["metrics"]
    assert metrics == [{"metricName": "kthena:num_requests_waiting", "targetValue": 10}]
    assert child(result, "AutoscalingPolicyBinding")["spec"] == {
        "policyRef": {"name": "chat-main"},
        "scalingConfiguration": {
            "target": {
                "targetRef": {"kind": "ModelServing", "name": "chat-main"},
                "additionalMatchLabels": {f"{SERVING}/role": "leader", f"{SERVING}/entry": "true"},
                "metricEndpoint": {"uri": "/metrics", "port": 8100},
            },
            "minReplicas": 1,
            "maxReplicas": 3,
        },
    }


def transfer(role: str) -> str:
    return json.dumps({"kv_connector": "NixlConnector", "kv_role": role})


PD_MODEL = "/weights/4005c13ab5d91cb094e41048356abe39"


def second() -> tuple[Expansion, str]:
    gpu = disaggregated(
        {"served-model-name": "q", "kv-transfer-config": transfer("kv_producer")},
        {"served-model-name": "q", "kv-transfer-config": transfer("kv_consumer")},
        modelURI="hf://Qwen/Qwen3-0.6B",
        cacheURI="pvc://weights",
        replicas=2,
        env=[
            {"name": "KTHENA_SKIP_ENGINE_DEPENDENCY_INSTALL", "value": "1"},
            {"name": "VLLM_NIXL_SIDE_CHANNEL_HOST", "value": "0.0.0.0"},
            {"name": "VLLM_NIXL_SIDE_CHANNEL_PORT", "value": "5558"},
        ],
    )
    del gpu["minReplicas"], gpu["maxReplicas"]
    gpu["workers"][1]["replicas"] = 3
    return expanded(booster(gpu, name="pd", client_name="assistant"))


def test_example_2_roles() -> None:
    result, _ = second()
    spec = child(result, "ModelServing", "pd-gpu")["spec"]
    assert spec["replicas"] == 2
    roles = spec["template"]["roles"]
    found = [(one["name"], one["replicas"], one["workerReplicas"]) for one in roles]
    assert found == [("prefill", 1, 0), ("decode", 3, 0)]
    assert [one["workerTemplate"]["spec"]["containers"] for one in roles] == [[], []]
    labels = [one["entryTemplate"]["metadata"]["labels"] for one in roles]
    assert labels[0] == labels[1]
    assert labels[0][f"{KTHENA}/backend-name"] == "gpu"


def test_example_2_pods() -> None:
    result, _ = second()
    for index, kv_role in enumerate(("kv_producer", "kv_consumer")):
        pod = entry(result, index)["spec"]
        assert "affinity" not in pod
        (loader,) = pod["initContainers"]
        assert loader["args"] == ["--source", "hf://Qwen/Qwen3-0.6B", "--output-dir", PD_MODEL]
        assert loader["volumeMounts"] == [{"name": "gpu-weights", "mountPath": "/weights"}]
        claim = {"claimName": "weights"}
        assert pod["volumes"][0] == {"name": "gpu-weights", "persistentVolumeClaim": claim}
        runtime, engine = pod["containers"]
        assert runtime["args"][3] == "vllmdisaggregated"
        assert runtime["args"][-2:] == ["--model", "assistant"]
        command = engine["command"]
        assert (engine["name"], command[0], command[4]) == ("vllm", "python3", PD_MODEL)
        config = json.loads(command[command.index("--kv-transfer-config") + 1])
        assert config == {"kv_connector": "NixlConnector", "kv_role": kv_role}
        assert "pip" not in " ".join(command)
        assert engine["ports"] == [{"containerPort": 8000}]
        assert engine["imagePullPolicy"] == "IfNotPresent"


def test_example_2_environment() -> None:
    result, _ = second()
    own = ["KTHENA_SKIP_ENGINE_DEPENDENCY_INSTALL", "VLLM_NIXL_SIDE_CHANNEL_HOST"]
    own.append("VLLM_NIXL_SIDE_CHANNEL_PORT")
    standard = ["POD_NAME", "NAMESPACE", "VLLM_USE_V1", "REDIS_HOST", "REDIS_PORT"]
    standard.append("REDIS_PASSWORD")
    interfaces = ["GLOO_SOCKET_IFNAME", "TP_SOCKET_IFNAME", "HCCL_SOCKET_IFNAME"]
    for index, added in enumerate((["HCCL_IF_IP"], interfaces)):
        runtime, engine = entry(result, index)["spec"]["containers"]
        assert names(engine["env"]) == [*own, *standard, "HF_HUB_OFFLINE", *added]
        assert names(runtime["env"]) == [*own, *standard, *added]


def test_example_2_routing() -> None:
    result, uid = second()
    assert kinds(result) == ["ModelServing", "ModelServer", "ModelRoute"]
    spec = child(result, "ModelServer", "pd-gpu")["spec"]
    assert spec["model"] == "q"
    assert spec["kvConnector"] == {"type": "nixl"}
    assert spec["workloadPort"]["port"] == 8000
    assert spec["workloadSelector"]["matchLabels"][f"{KTHENA}/model-uid"] == uid
    assert spec["workloadSelector"]["pdGroup"] == {
        "groupKey": f"{SERVING}/group-name",
        "prefillLabels": {f"{SERVING}/role": "prefill"},
        "decodeLabels": {f"{SERVING}/role": "decode"},
    }
    route = child(result, "ModelRoute", "pd")["spec"]
    assert route["modelName"] == "assistant"
    assert route["rules"][0]["targetModels"] == [{"modelServerName": "pd-gpu", "weight": 100}]
