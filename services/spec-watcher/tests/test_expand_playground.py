"""Playground to inference Service and HorizontalPodAutoscaler (llmaz spec 2.1 to 2.3, 5.1, 8)."""

from typing import Any

import pytest
from expansion_builders import open_model, playground, runtime, uri_model
from expansion_store import Document, Store, child, conditions, kinds

from inferbus_contracts.canonical import canonical_json
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.resources.backend_runtime import ResourceAmounts
from inferbus_spec_watcher.builtin import BUILT_IN_RUNTIMES
from inferbus_spec_watcher.expansion import Expansion
from inferbus_spec_watcher.expansion.conditions import BlockedError
from inferbus_spec_watcher.expansion.environment import overridden
from inferbus_spec_watcher.expansion.recommended import merged_resources, rendered_args


def expanded(document: Document, *others: Document) -> Expansion:
    models = [one for one in others if one["kind"] == "OpenModel"] or [open_model()]
    rest = [one for one in others if one["kind"] != "OpenModel"]
    return Store(document, *models, *rest).expand("Playground", "play")


def pod(result: Expansion) -> Document:
    template = child(result, "Service")["spec"]["workloadTemplate"]["workerTemplate"]
    found: Document = template["spec"]
    return found


def runner(result: Expansion) -> Document:
    (found,) = pod(result)["containers"]
    return dict(found)


@pytest.mark.parametrize(
    ("arg", "rendered"),
    [
        ("{{.ModelPath}}", "/m"),
        ("{{ .ModelPath }}", "/m"),
        ("path {{.ModelPath}} of {{ .ModelName}}, {{.ModelPath}}", "path /m of opt, /m"),
        ("{{ModelPath}}", "{{ModelPath}}"),
        ("{{ .Model Path }}", "{{ .Model Path }}"),
        ("{ .ModelPath }", "{ .ModelPath }"),
    ],
)
def test_lz_t22_lz_t24_arguments(arg: str, rendered: str) -> None:
    assert rendered_args([arg], {"ModelPath": "/m", "ModelName": "opt"}) == [rendered]


@pytest.mark.parametrize("variables", [{}, {"ModelName": ""}])
def test_lz_t23_a_variable_without_a_value_is_an_error(variables: dict[str, str]) -> None:
    with pytest.raises(BlockedError):
        rendered_args(["{{ .ModelName }}"], variables)


def test_an_argument_that_cannot_be_rendered_is_told() -> None:
    unknown = runtime(recommendedConfigs=[{"name": "default", "args": ["{{ .TP }}"]}])
    result = expanded(playground(config={"backendName": "engine"}), unknown)
    assert conditions(result)["Expanded"] == ("False", "ArgumentsUnrenderable")
    assert result.blocked


def test_lz_t29_resources_merge_by_key() -> None:
    own = ResourceAmounts(limits={"cpu": 1, "memory": 2})
    recommended = ResourceAmounts(limits={"cpu": 2, "ephemeral-storage": 100})
    merged = {"limits": {"cpu": 1, "memory": 2, "ephemeral-storage": 100}}
    assert merged_resources(recommended, own) == merged
    assert merged_resources(None, own) == {"limits": {"cpu": 1, "memory": 2}}
    assert merged_resources(recommended, None) == {"limits": {"cpu": 2, "ephemeral-storage": 100}}


@pytest.mark.parametrize(
    ("own", "limits"),
    [
        ({"requests": {"cpu": "10"}}, {"cpu": "10", "memory": "8Gi"}),
        ({"requests": {"cpu": "3500m"}}, {"cpu": "4", "memory": "8Gi"}),
        ({"requests": {"memory": "9Gi"}}, {"cpu": "4", "memory": "9Gi"}),
        ({"limits": {"cpu": "5"}}, {"cpu": "5", "memory": "8Gi"}),
        ({"requests": {"x.org/y": "3"}}, {"cpu": "4", "memory": "8Gi"}),
    ],
)
def test_lz_t37_a_limit_is_raised_to_its_request(own: Document, limits: Document) -> None:
    resources = runner(expanded(playground(config={"resources": own})))["resources"]
    assert resources["limits"] == limits
    assert resources["requests"].items() >= own.get("requests", {}).items()


def test_lz_t30_environments_merge_in_a_stable_order() -> None:
    base = [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]
    own = [{"name": "D", "value": "4"}, {"name": "A", "value": "9"}, {"name": "C", "value": "3"}]
    merged = [(one["name"], one["value"]) for one in overridden(base, own)]
    assert merged == [("A", "9"), ("B", "2"), ("D", "4"), ("C", "3")]


def test_lz_t56_lz_d1_a_hundred_expansions_are_the_same_bytes() -> None:
    envs = [{"name": name, "value": "1"} for name in ("C", "A", "B")]
    store = Store(open_model(), playground(config={"envs": envs}))
    found = {canonical_json(list(store.expand("Playground", "play").children)) for _ in range(100)}
    assert len(found) == 1


def test_lz_t38_shared_memory() -> None:
    result = expanded(playground(config={"sharedMemorySize": "3Gi"}))
    memory = {"medium": "Memory", "sizeLimit": "3Gi"}
    assert pod(result)["volumes"] == [{"name": "dshm", "emptyDir": memory}]
    assert runner(result)["volumeMounts"] == [{"name": "dshm", "mountPath": "/dev/shm"}]
    without = expanded(playground(config={"backendName": "llamacpp"}))
    assert "volumes" not in pod(without)


@pytest.mark.parametrize("name", sorted(BUILT_IN_RUNTIMES))
def test_lz_t39_each_runtime_with_a_version_arguments_environment_and_resources(name: str) -> None:
    config = {
        "backendName": name,
        "version": "main",
        "args": ["--extra", "{{ .ModelPath }}"],
        "envs": [{"name": "X", "value": "1"}],
        "resources": {"requests": {"cpu": 1}, "limits": {"cpu": 10}},
    }
    found = runner(expanded(playground(config=config)))
    own = BUILT_IN_RUNTIMES[name]["spec"]
    assert found["name"] == "model-runner"
    assert found["image"] == f"{own['image']}:main"
    assert found.get("command") == own.get("command")
    assert found["args"][-2:] == ["--extra", "{{ .ModelPath }}"]
    assert not [word for word in found["args"][:-2] if "{{" in word]
    assert {"name": "X", "value": "1"} in found["env"]
    assert found["resources"]["limits"]["cpu"] == 10
    for part in ("startupProbe", "livenessProbe", "readinessProbe", "lifecycle"):
        assert found.get(part) == own.get(part)
    assert found["ports"] == [{"name": "http", "protocol": "TCP", "containerPort": 8080}]


def test_a_service_is_what_the_playground_says() -> None:
    steering = {"llmaz.io/skip-model-loader": "true", "inferbus.dev/model-name": "gpt"}
    document = playground(replicas=3, annotations={**steering, "example.org/x": "1"})
    found = child(expanded(document), "Service")
    assert found["metadata"]["annotations"] == {**steering, "inferbus.dev/engine": "vLLM"}
    assert "labels" not in found["metadata"]
    assert found["spec"]["replicas"] == 3
    assert found["spec"]["modelClaims"] == {"models": [{"name": "opt", "role": "main"}]}
    assert found["spec"]["rolloutStrategy"]["type"] == "RollingUpdate"
    template = found["spec"]["workloadTemplate"]
    assert (template["size"], "leaderTemplate" in template) == (1, False)
    assert template["workerTemplate"]["spec"]["terminationGracePeriodSeconds"] == 130


def test_flavors_of_a_claim_are_handed_on() -> None:
    claim = {"modelName": "opt", "inferenceFlavors": ["a10", "t4"]}
    found = child(expanded(playground(modelClaim=claim)), "Service")
    assert found["spec"]["modelClaims"]["inferenceFlavors"] == ["a10", "t4"]


CLAIMS = {"models": [{"name": "draft", "role": "draft"}, {"name": "opt"}]}


def test_a_draft_model_chooses_the_configuration_for_it() -> None:
    document = playground(modelClaims=CLAIMS, config={"backendName": "vllm"})
    args = runner(expanded(document, open_model(), open_model("draft")))["args"]
    assert args[args.index("--model") + 1].startswith("/workspace/models/models--")
    assert args[args.index("--served-model-name") + 1] == "opt"
    draft = args[args.index("--speculative_model") + 1]
    assert draft.endswith("models--facebook--opt-125m")
    assert draft != args[args.index("--model") + 1]


@pytest.mark.parametrize(
    ("config", "claims"),
    [({"configName": "nothing"}, None), ({"backendName": "tgi"}, CLAIMS)],
)
def test_a_configuration_that_is_not_there_is_told(config: Any, claims: Any) -> None:
    claimed = {"modelClaims": claims} if claims else {}
    result = expanded(playground(config=config, **claimed), open_model(), open_model("draft"))
    assert conditions(result) == {
        "Expanded": ("False", "RecommendedConfigMissing"),
        "Progressing": ("False", "AbortProcessing"),
    }
    assert "configName" in result.conditions[0].message


def test_a_runtime_that_recommends_nothing_needs_no_configuration() -> None:
    bare = runtime(recommendedConfigs=[])
    found = runner(expanded(playground(config={"backendName": "engine", "args": ["-x"]}), bare))
    assert found["args"] == ["-x"]
    assert "resources" not in found


def test_lz_t65_an_unknown_runtime_is_told_until_it_is_there() -> None:
    store = Store(open_model(), playground(config={"backendName": "engine"}))
    result = store.expand("Playground", "play")
    assert result.blocked
    assert conditions(result)["Expanded"] == ("False", "BackendRuntimeMissing")
    assert "(value: engine)" in result.conditions[0].message
    assert ObjectKey("BackendRuntime", "_", "engine") in result.waits_for
    store.put(runtime())
    assert conditions(store.expand("Playground", "play")) == {
        "Expanded": ("True", "ChildrenRendered")
    }


def test_a_runtime_of_ones_own_replaces_the_built_in_one() -> None:
    found = runner(expanded(playground(), runtime("vllm")))
    assert found["image"] == "registry/engine:v1"


def test_lz_t36_a_missing_model_is_waited_for() -> None:
    store = Store(playground())
    result = store.expand("Playground", "play")
    assert result.blocked
    assert result.children == ()
    assert conditions(result) == {
        "Expanded": ("False", "OpenModelMissing"),
        "Progressing": ("False", "AbortProcessing"),
    }
    assert ObjectKey("OpenModel", "_", "opt") in result.waits_for
    store.put(open_model())
    assert kinds(store.expand("Playground", "play")) == ["Service"]


def test_lz_t35_a_service_of_somebody_else_is_left_alone() -> None:
    store = Store(open_model(), playground())
    service = child(store.expand("Playground", "play"), "Service")
    store.put(service)
    result = store.expand("Playground", "play")
    assert result.blocked
    assert result.children == ()
    assert conditions(result) == {
        "Expanded": ("False", "NameTaken"),
        "Progressing": ("False", "AbortProcessing"),
    }
    key = ObjectKey("Service", "default", "play")
    assert key in result.waits_for
    store.put(service, owner=store.get("Playground", "play"))
    assert kinds(store.expand("Playground", "play")) == ["Service"]


def test_arguments_that_a_shell_never_reads_are_told() -> None:
    config = {"backendName": "ollama", "args": ["--verbose"]}
    result = expanded(playground(config=config), uri_model("ollama://qwen2:0.5b"))
    assert "ArgumentsInert" in conditions(result)


def test_a_file_that_an_engine_is_not_told_of_is_told() -> None:
    hub = {"modelID": "Qwen/GGUF", "filename": "q.gguf"}
    annotations = {"llmaz.io/skip-model-loader": "true"}
    model = open_model(source={"modelHub": hub})
    result = expanded(playground(annotations=annotations), model)
    assert runner(result)["args"][1] == "Qwen/GGUF"
    assert "q.gguf" in next(
        one.message for one in result.conditions if one.type == "ArgumentsInert"
    )
