"""Inference Service to LeaderWorkerSet, core Service and routing (llmaz spec 2.4 to 3.5, 8)."""

from typing import Any

import pytest
from expansion_builders import (
    config_map,
    flavor,
    open_model,
    playground,
    service,
    uri_model,
)
from expansion_store import Document, Store, child, conditions, kinds

from inferbus_contracts.resources.open_model import OpenModel
from inferbus_spec_watcher.expansion import Expansion
from inferbus_spec_watcher.expansion.context import typed
from inferbus_spec_watcher.expansion.model_sources import claimed

SKIP = {"llmaz.io/skip-model-loader": "true"}
FOLDER = "/workspace/models"


def expanded(document: Document, *others: Document, **settings: Any) -> Expansion:
    store = Store(document, *(others or (open_model(),)), **settings)
    return store.expand("Service", document["metadata"]["name"])


def template(result: Expansion, part: str = "workerTemplate") -> Document:
    groups = child(result, "LeaderWorkerSet")["spec"]["leaderWorkerTemplate"]
    return dict(groups[part])


def pod(result: Expansion, part: str = "workerTemplate") -> Document:
    return dict(template(result, part)["spec"])


def runner(result: Expansion, part: str = "workerTemplate") -> Document:
    return next(one for one in pod(result, part)["containers"] if one["name"] == "model-runner")


def values(container: Document) -> dict[str, Any]:
    """Value, or Secret and key, by name of a variable."""
    found = {}
    for one in container.get("env", []):
        secret = one.get("valueFrom", {}).get("secretKeyRef")
        found[one["name"]] = (secret["name"], secret["key"]) if secret else one.get("value")
        assert secret is None or secret["optional"] is True
    return found


def model_path(model: Document, *, skips_loader: bool = False) -> str:
    stored = Store(model).objects
    (one,) = claimed([typed(OpenModel, found) for found in stored.values()])
    return one.path(skips_loader=skips_loader)


GGUF = open_model(source={"modelHub": {"modelID": "org/name", "filename": "f.gguf"}})


@pytest.mark.parametrize(
    ("model", "path", "direct"),
    [
        (open_model(), f"{FOLDER}/models--facebook--opt-125m", "facebook/opt-125m"),
        (GGUF, f"{FOLDER}/f.gguf", "org/name"),
        (uri_model("oss://b.e.com/a/sub"), f"{FOLDER}/models--sub", "oss://b.e.com/a/sub"),
        (uri_model("oss://b.e.com/a/w.gguf"), f"{FOLDER}/w.gguf", "oss://b.e.com/a/w.gguf"),
        (uri_model("s3://b/a/sub/"), f"{FOLDER}/models--sub", "s3://b/a/sub/"),
        (uri_model("HOST:///a/b"), "/a/b", "/a/b"),
    ],
)
def test_lz_t25_lz_t26_where_a_model_is(model: Document, path: str, direct: str) -> None:
    assert model_path(model) == path
    assert model_path(model, skips_loader=True) == direct


@pytest.mark.parametrize(
    ("uri", "folder"),
    [
        ("oss://b.e/models/Qwen2.5-7B", "models--Qwen2.5-7B"),
        ("oss://b.e/models/Q2.5/x", "models--x"),
        ("oss://b.e//models//x/", "models--x"),
    ],
)
def test_lz_t57_lz_s4_lz_s6_renderer_and_loader_mean_the_same_folder(uri: str, folder: str) -> None:
    store = Store(uri_model(uri), playground("svc"), loader_takes_arguments=True)
    store.settle()
    result = store.expand("Service", "svc")
    (loader,) = pod(result)["initContainers"]
    arguments = loader["args"]
    told = arguments[arguments.index("--output-dir") + 1]
    assert told == f"{FOLDER}/{folder}"
    assert runner(result)["args"][1] == told


def test_lz_s4_a_loader_that_would_take_the_folder_for_a_file_is_told() -> None:
    result = expanded(service(), uri_model("oss://b.e/models/Qwen2.5-7B"))
    assert "LoaderUnfit" in conditions(result)
    fine = expanded(service(), uri_model("oss://b.e/models/Qwen2-7B"))
    assert "LoaderUnfit" not in conditions(fine)


def test_lz_t27_what_the_loader_is_told_of_a_hub() -> None:
    hub = {
        "modelID": "org/name",
        "revision": "v1",
        "allowPatterns": ["*.json", "*.bin"],
        "ignorePatterns": ["x*"],
    }
    own = [{"name": "HTTPS_PROXY", "value": "proxy"}]
    result = expanded(service(runner={"env": own}), open_model(source={"modelHub": hub}))
    (loader,) = pod(result)["initContainers"]
    assert (loader["name"], loader["image"]) == ("model-loader", "inftyai/model-loader:v0.0.10")
    assert list(values(loader).items()) == [
        ("HTTPS_PROXY", "proxy"),
        ("MODEL_SOURCE_TYPE", "modelhub"),
        ("MODEL_ID", "org/name"),
        ("MODEL_HUB_NAME", "Huggingface"),
        ("REVISION", "v1"),
        ("MODEL_ALLOW_PATTERNS", "*.json,*.bin"),
        ("MODEL_IGNORE_PATTERNS", "x*"),
        ("HUGGING_FACE_HUB_TOKEN", ("modelhub-secret", "HF_TOKEN")),
        ("HF_TOKEN", ("modelhub-secret", "HF_TOKEN")),
    ]
    assert loader["volumeMounts"] == [{"name": "model-volume", "mountPath": f"{FOLDER}/"}]
    assert "args" not in loader
    assert pod(result)["volumes"] == [{"name": "model-volume", "emptyDir": {}}]
    mount = {"name": "model-volume", "mountPath": f"{FOLDER}/", "readOnly": True}
    assert runner(result)["volumeMounts"] == [mount]


def test_lz_t27_a_file_and_another_hub() -> None:
    (loader,) = pod(expanded(service(), GGUF))["initContainers"]
    assert values(loader)["MODEL_FILENAME"] == "f.gguf"
    scope = open_model(source={"modelHub": {"name": "ModelScope", "modelID": "a/b"}})
    found = values(pod(expanded(service(), scope))["initContainers"][0])
    assert (found["MODEL_HUB_NAME"], found["REVISION"]) == ("ModelScope", "master")


def test_what_the_loader_is_told_of_an_object_store() -> None:
    (loader,) = pod(expanded(service(), uri_model("oss://b.e.com/models/x")))["initContainers"]
    assert list(values(loader).items()) == [
        ("MODEL_SOURCE_TYPE", "objstore"),
        ("PROVIDER", "OSS"),
        ("ENDPOINT", "e.com"),
        ("BUCKET", "b"),
        ("MODEL_PATH", "models/x"),
        ("OSS_ACCESS_KEY_ID", ("oss-access-secret", "OSS_ACCESS_KEY_ID")),
        ("OSS_ACCESS_KEY_SECRET", ("oss-access-secret", "OSS_ACCESS_KEY_SECRET")),
    ]


@pytest.mark.parametrize("uri", ["s3://bucket/path/x", "gcs://bucket/path/x"])
def test_lz_s3_a_source_that_the_reference_loader_never_reads_is_told(uri: str) -> None:
    assert "LoaderUnfit" in conditions(expanded(service(), uri_model(uri)))
    own = expanded(service(), uri_model(uri), loader_takes_arguments=True)
    assert "LoaderUnfit" not in conditions(own)
    (loader,) = pod(own)["initContainers"]
    assert loader["args"] == ["--source", uri, "--output-dir", f"{FOLDER}/models--x"]
    assert values(loader)["MODEL_SOURCE_TYPE"] == "objstore"
    skipped = expanded(service(annotations=SKIP), uri_model(uri))
    assert "LoaderUnfit" not in conditions(skipped)


def test_arguments_of_inferbus_own_loader() -> None:
    hub = {"modelID": "org/name", "allowPatterns": ["*.json"], "ignorePatterns": ["x*", "y*"]}
    model = open_model(source={"modelHub": hub})
    result = expanded(service(), model, loader_takes_arguments=True)
    assert pod(result)["initContainers"][0]["args"] == [
        *("--source", "hf://org/name", "--output-dir", f"{FOLDER}/models--org--name"),
        *("--revision", "main", "--include", "*.json", "--exclude", "x*", "--exclude", "y*"),
    ]
    file = expanded(service(), GGUF, loader_takes_arguments=True)
    assert pod(file)["initContainers"][0]["args"] == [
        *("--source", "hf://org/name", "--output-dir", FOLDER),
        *("--revision", "main", "--include", "f.gguf"),
    ]


@pytest.mark.parametrize(
    ("model", "names"),
    [
        (open_model(), ["HUGGING_FACE_HUB_TOKEN", "HF_TOKEN"]),
        (uri_model("s3://b/x"), ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"]),
        (uri_model("oss://b.e/x"), ["OSS_ACCESS_KEY_ID", "OSS_ACCESS_KEY_SECRET"]),
        (uri_model("ollama://x"), []),
    ],
)
def test_lz_t28_lz_t46_without_a_loader_the_engine_gets_the_credentials(
    model: Document, names: list[str]
) -> None:
    result = expanded(service(annotations=SKIP), model)
    assert list(values(runner(result))) == names
    assert "initContainers" not in pod(result)
    assert "volumes" not in pod(result)


@pytest.mark.parametrize("annotations", [None, SKIP])
def test_lz_t55_lz_s2_a_users_token_stands_once_and_counts(annotations: Any) -> None:
    own = [{"name": "HF_TOKEN", "value": "mine"}]
    result = expanded(service(runner={"env": own}, annotations=annotations))
    container = runner(result) if annotations else pod(result)["initContainers"][0]
    names = [one["name"] for one in container["env"]]
    assert names.count("HF_TOKEN") == 1
    assert values(container)["HF_TOKEN"] == "mine"


@pytest.mark.parametrize("annotations", [None, SKIP])
def test_lz_t54_lz_s1_a_model_of_the_node_is_mounted_once(annotations: Any) -> None:
    result = expanded(service(annotations=annotations), uri_model("host:///data/llama"))
    assert pod(result)["volumes"] == [{"name": "model-volume", "hostPath": {"path": "/data/llama"}}]
    mount = {"name": "model-volume", "mountPath": "/data/llama", "readOnly": True}
    assert runner(result)["volumeMounts"] == [mount]
    assert "initContainers" not in pod(result)


DRAFT = {"models": [{"name": "draft", "role": "draft"}, {"name": "opt", "role": "main"}]}


def test_lz_t41_two_loaders_in_order_and_the_labels_of_the_main_model() -> None:
    draft = uri_model("oss://b.e/models/small", "draft", familyName="small")
    result = expanded(service(modelClaims=DRAFT), open_model(), draft)
    loaders = pod(result)["initContainers"]
    assert [one["name"] for one in loaders] == ["model-loader", "model-loader-1"]
    assert values(loaders[0])["MODEL_ID"] == "facebook/opt-125m"
    assert values(loaders[1])["BUCKET"] == "b"
    assert template(result)["metadata"]["labels"] == {
        "llmaz.io/model-family-name": "opt",
        "llmaz.io/model-name": "opt",
    }
    assert [one["name"] for one in pod(result)["volumes"]] == ["model-volume"]


def test_lz_s7_two_models_never_fill_the_same_folder() -> None:
    files = {"modelID": "org/name", "filename": "f.gguf"}
    other = open_model("draft", source={"modelHub": {**files, "modelID": "org/other"}})
    store = Store(
        GGUF, other, playground("svc", modelClaims=DRAFT, config={"backendName": "llamacpp"})
    )
    store.settle()
    result = store.expand("Service", "svc")
    args = runner(result)["args"]
    assert args[args.index("-m") + 1] == f"{FOLDER}/f.gguf"
    assert args[args.index("-md") + 1] == f"{FOLDER}/draft/f.gguf"
    _, second = pod(result)["initContainers"]
    assert second["volumeMounts"][0]["subPath"] == "draft"


FILE = {"modelHub": {"modelID": "org/files", "filename": "f.gguf"}}
WHOLE = {"modelHub": {"modelID": "org/whole"}}


@pytest.mark.parametrize(
    ("main", "draft", "apart"),
    [
        (FILE, FILE, True),
        (FILE, WHOLE, True),
        (WHOLE, FILE, True),
        (WHOLE, WHOLE, True),
        (WHOLE, {"uri": "oss://b.e/x"}, False),
        (FILE, {"uri": "host:///x.gguf"}, False),
    ],
)
def test_lz_s7_a_loader_never_fills_a_folder_around_another(
    main: Document, draft: Document, apart: bool
) -> None:
    models = [open_model(source=main), open_model("draft", source=draft)]
    first, second = claimed(
        [
            typed(OpenModel, Store(one).get("OpenModel", name, "_"))
            for name, one in zip(("opt", "draft"), models, strict=True)
        ]
    )
    assert first.subfolder == ""
    assert second.subfolder == ("draft" if apart else "")


def test_a_model_of_the_node_beside_a_loaded_one() -> None:
    draft = uri_model("host:///data/small", "draft")
    result = expanded(service(modelClaims=DRAFT), open_model(), draft)
    assert pod(result)["volumes"] == [
        {"name": "model-volume", "emptyDir": {}},
        {"name": "model-volume-1", "hostPath": {"path": "/data/small"}},
    ]
    assert [one["mountPath"] for one in runner(result)["volumeMounts"]] == [
        f"{FOLDER}/",
        "/data/small",
    ]


def test_what_is_in_a_template_already_stays() -> None:
    volume = {"name": "model-volume", "persistentVolumeClaim": {"claimName": "mine"}}
    init = {"name": "prepare", "image": "busybox"}
    mount = {"name": "model-volume", "mountPath": FOLDER}
    document = service(
        runner={"volumeMounts": [mount]}, pod={"volumes": [volume], "initContainers": [init]}
    )
    result = expanded(document)
    assert pod(result)["volumes"] == [volume]
    assert runner(result)["volumeMounts"] == [mount]
    assert [one["name"] for one in pod(result)["initContainers"]] == ["prepare", "model-loader"]


def test_the_last_of_several_main_models_counts() -> None:
    claims = {"models": [{"name": "a"}, {"name": "b"}]}
    result = expanded(service(modelClaims=claims), open_model("a"), open_model("b"))
    assert child(result, "ModelRoute")["spec"]["modelName"] == "b"


def test_lz_t42_scheduler_and_loader_of_the_global_configuration() -> None:
    text = "scheduler-name: inftyai-scheduler\ninit-container-image: loader:v9\n"
    chosen = config_map("llmaz-system", "llmaz-global-config", **{"config.data": text})
    result = expanded(service(), open_model(), chosen)
    assert pod(result)["schedulerName"] == "inftyai-scheduler"
    assert pod(result)["initContainers"][0]["image"] == "loader:v9"
    own = expanded(service(pod={"schedulerName": "mine"}), open_model(), chosen)
    assert pod(own)["schedulerName"] == "mine"


def test_lz_t31_a_configuration_without_an_image_leaves_the_settings_in_force() -> None:
    text = {"config.data": "scheduler-name: x\n"}
    chosen = config_map("llmaz-system", "llmaz-global-config", **text)
    result = expanded(service(), open_model(), chosen, loader_image="l:1", scheduler_name="y")
    assert pod(result)["initContainers"][0]["image"] == "l:1"
    assert pod(result)["schedulerName"] == "x"


@pytest.mark.parametrize("text", ["a: [", "- x", "word"])
def test_a_configuration_that_cannot_be_read_is_told(text: str) -> None:
    chosen = config_map("llmaz-system", "llmaz-global-config", **{"config.data": text})
    result = expanded(service(), open_model(), chosen)
    assert "ConfigurationUnreadable" in conditions(result)
    assert "schedulerName" not in pod(result)


def test_lz_t60_policies_of_the_group_reach_the_leader_worker_set() -> None:
    group = {"subGroupSize": 2}
    policies = {"restartPolicy": "None", "subGroupPolicy": group, "size": 4}
    strategy = {"rollingUpdateConfiguration": {"maxUnavailable": "50%", "maxSurge": 1}}
    result = expanded(service(template=policies, rolloutStrategy=strategy, replicas=3))
    spec = child(result, "LeaderWorkerSet")["spec"]
    assert spec["replicas"] == 3
    groups = spec["leaderWorkerTemplate"]
    assert (groups["restartPolicy"], groups["subGroupPolicy"], groups["size"]) == ("None", group, 4)
    assert spec["rolloutStrategy"] == {"type": "RollingUpdate", **strategy}


def several_hosts(**leader: Any) -> Document:
    container = {"name": "model-runner", "image": "lmsysorg/sglang:v1", **leader}
    labels = {"role": "leader"}
    leading = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    return service(template={"leaderTemplate": leading, "size": 2})


def test_lz_d3_leaders_do_not_wait_for_workers_that_wait_for_them() -> None:
    spec = child(expanded(several_hosts()), "LeaderWorkerSet")["spec"]
    assert spec["startupPolicy"] == "LeaderCreated"


def test_models_and_labels_reach_leaders_and_workers() -> None:
    result = expanded(several_hosts())
    for part in ("leaderTemplate", "workerTemplate"):
        assert template(result, part)["metadata"]["labels"]["llmaz.io/model-name"] == "opt"
        assert pod(result, part)["initContainers"][0]["name"] == "model-loader"
    assert template(result, "leaderTemplate")["metadata"]["labels"]["role"] == "leader"


LEADERS = {
    "leaderworkerset.sigs.k8s.io/name": "svc",
    "leaderworkerset.sigs.k8s.io/worker-index": "0",
}


def test_leaders_are_reached_on_8080_whatever_port_they_listen_on() -> None:
    command = ["python3", "-m", "sglang.launch_server", "--model-path", "/m", "--port", "40000"]
    result = expanded(several_hosts(command=command))
    core = child(result, "CoreService", "svc-lb")
    assert core["metadata"]["annotations"] == {"activator.llmaz.io/model-name": "opt"}
    port = {"name": "http", "protocol": "TCP", "port": 8080, "targetPort": 40000}
    assert core["spec"] == {"type": "ClusterIP", "selector": LEADERS, "ports": [port]}
    assert child(result, "ModelServer")["spec"] == {
        "model": "/m",
        "inferenceEngine": "SGLang",
        "workloadSelector": {"matchLabels": LEADERS},
        "workloadPort": {"port": 40000, "protocol": "http"},
        "trafficPolicy": {"retry": {"attempts": 5, "retryInterval": "0s"}},
    }


def test_the_route_answers_for_the_model_by_its_public_name() -> None:
    model = open_model(ownedBy="acme", createdAt="2026-01-31T12:00:00Z")
    document = service(annotations={"inferbus.dev/model-name": "gpt-x"})
    route = child(expanded(document, model), "ModelRoute", "svc")
    assert route["spec"] == {
        "modelName": "gpt-x",
        "rules": [{"name": "default", "targetModels": [{"modelServerName": "svc", "weight": 100}]}],
    }
    annotations = route["metadata"]["annotations"]
    assert annotations["inferbus.dev/owned-by"] == "acme"
    assert annotations["inferbus.dev/created-at"] == "2026-01-31T12:00:00Z"
    plain = child(expanded(service(), model), "ModelRoute")
    assert plain["spec"]["modelName"] == "opt"


@pytest.mark.parametrize(
    ("container", "engine", "name"),
    [
        ({"image": "x", "command": ["vllm", "serve"], "args": ["--model=/m"]}, "vLLM", "/m"),
        ({"image": "a/llama.cpp:b", "args": ["-m", "/m", "-a", "q"]}, "LlamaCpp", "q"),
        ({"image": "a/text-generation-inference", "args": ["--model-id", "/m"]}, "TGI", "/m"),
        ({"image": "mine", "args": ["--model", "/m"]}, "OpenAI", None),
    ],
)
def test_the_engine_is_read_from_the_container(
    container: Document, engine: str, name: str | None
) -> None:
    spec = child(expanded(service(runner=container)), "ModelServer")["spec"]
    assert (spec["inferenceEngine"], spec.get("model")) == (engine, name)


def test_lz_t45_ollama_pulls_by_tag_and_the_route_keeps_the_models_name() -> None:
    store = Store(
        uri_model("ollama://qwen2:0.5b"), playground("svc", config={"backendName": "ollama"})
    )
    store.settle()
    result = store.expand("Service", "svc")
    assert "initContainers" not in pod(result)
    assert "ollama pull 'qwen2:0.5b'" in runner(result)["args"][0]
    spec = child(result, "ModelServer")["spec"]
    assert (spec["inferenceEngine"], spec["model"]) == ("Ollama", "qwen2:0.5b")
    assert child(result, "ModelRoute")["spec"]["modelName"] == "opt"


def test_the_users_own_route_wins() -> None:
    store = Store(open_model(), service())
    route = child(store.expand("Service", "svc"), "ModelRoute")
    store.put(route)
    result = store.expand("Service", "svc")
    assert kinds(result) == ["LeaderWorkerSet", "CoreService", "ModelServer"]
    assert conditions(result)["RouteTaken"] == ("True", "RouteTaken")
    told = next(one for one in result.conditions if one.type == "RouteTaken")
    assert "ModelRoute/default/svc" in told.message


def test_somebody_elses_leader_worker_set_blocks() -> None:
    store = Store(open_model(), service())
    store.put(child(store.expand("Service", "svc"), "LeaderWorkerSet"))
    result = store.expand("Service", "svc")
    assert result.blocked
    assert conditions(result)["Expanded"] == ("False", "NameTaken")


@pytest.mark.parametrize("name", ["7b", "s" * 61])
def test_without_a_name_for_it_there_is_no_core_service(name: str) -> None:
    result = expanded(service(name))
    assert kinds(result) == ["LeaderWorkerSet", "ModelServer", "ModelRoute"]


def test_lz_t32_lz_t33_replicas_follow_the_playground_down_the_chain() -> None:
    for replicas in (1, 3):
        store = Store(open_model(), playground("svc", replicas=replicas))
        names = [(one["kind"], one["metadata"]["name"]) for one in store.settle()]
        assert names == [
            ("Service", "svc"),
            ("LeaderWorkerSet", "svc"),
            ("Service", "svc-lb"),
            ("ModelServer", "svc"),
            ("ModelRoute", "svc"),
        ]
        for kind in ("Service", "LeaderWorkerSet"):
            assert store.get(kind, "svc")["spec"]["replicas"] == replicas


def test_a_config_map_that_makes_no_sense_is_as_none() -> None:
    chosen = config_map("llmaz-system", "llmaz-global-config") | {"data": ["x"]}
    assert not expanded(service(), open_model(), chosen).blocked


def test_lz_t40_flavors_of_a_claim() -> None:
    flavors = [flavor("a100", 1), flavor("a10", 2)]
    model = open_model(inferenceConfig={"flavors": flavors})
    claims = {"models": [{"name": "opt"}], "inferenceFlavors": ["a10"]}
    resources = {"requests": {"cpu": "1"}, "limits": {"nvidia.com/gpu": "9"}}
    document = service(modelClaims=claims, runner={"resources": resources})
    result = expanded(document, model)
    assert runner(result)["resources"] == {
        "requests": {"cpu": "1", "nvidia.com/gpu": 2},
        "limits": {"nvidia.com/gpu": 2},
    }
    annotations = template(result)["metadata"]["annotations"]
    assert annotations["llmaz.io/inference-service-flavors"] == "a10"
