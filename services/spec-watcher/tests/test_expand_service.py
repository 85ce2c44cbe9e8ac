"""Inference Service to LeaderWorkerSet, core Service and routing (llmaz spec 2.4 to 2.8, 8)."""

from typing import Any

import pytest
from expansion_builders import config_map, flavor, open_model, playground, service, uri_model
from expansion_service import expanded, pod, runner, template
from expansion_store import Document, Store, child, conditions, kinds


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
