"""How claimed models get into pods (llmaz spec 3.1 to 3.5, 8)."""

from typing import Any

import pytest
from expansion_builders import open_model, playground, service, uri_model
from expansion_service import expanded, pod, runner, template, values
from expansion_store import Document, Store, conditions

from inferbus_contracts.resources.open_model import OpenModel
from inferbus_spec_watcher.expansion.context import typed
from inferbus_spec_watcher.expansion.model_sources import claimed

SKIP = {"llmaz.io/skip-model-loader": "true"}
FOLDER = "/workspace/models"


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
