"""Backends of a ModelBooster that aren't plain vLLM: Ray, SGLang, MindIE, key-value connectors."""

import json
from typing import Any

import pytest
from expansion_builders import backend, booster, disaggregated, worker
from expansion_store import Document, Store, child

from inferbus_spec_watcher.expansion import Expansion

ROLE = "modelserving.volcano.sh/role"
ENTRY = "modelserving.volcano.sh/entry"
MODEL = "/models/18488ba95d6e1baca4a2755a6748053e"
POLICY = {"metrics": [{"metricName": "kthena:num_requests_waiting", "targetValue": 10}]}


def expanded(*backends: Document) -> Expansion:
    return Store(booster(*backends)).expand("ModelBooster", "chat", "llm")


def role(result: Expansion, name: str) -> Document:
    found = child(result, "ModelServing")["spec"]["template"]["roles"]
    return next(one for one in found if one["name"] == name)


def engine(result: Expansion, name: str = "leader") -> Document:
    found: Document = role(result, name)["entryTemplate"]["spec"]["containers"][-1]
    return found


def sglang(**fields: Any) -> Document:
    return backend(type="SGLang", workers=[worker(**fields)])


def test_ray_workers_lend_their_accelerators_and_answer_nobody() -> None:
    adapters = [{"name": "sql", "artifactURL": "hf://a/b"}]
    resources = {"limits": {"huawei.com/ascend-1980": "8", "rdma/hca": "1", "cpu": "4"}}
    many = worker(pods=3, resources=resources)
    result = expanded(backend(workers=[many], loraAdapters=adapters))
    script = engine(result)["command"][-1]
    assert "leader --ray_cluster_size=3 --num-gpus=8 " in script
    assert "--lora-modules sql=" in script
    assert "--kv-events-config '{" in script
    helper = role(result, "leader")["workerTemplate"]
    (container,) = helper["spec"]["containers"]
    assert container["name"] == "main-vllm-worker"
    assert container["command"][-1].endswith("worker --ray_address=$(ENTRY_ADDRESS)")
    assert container["resources"] == resources
    assert "readinessProbe" not in container
    assert len(helper["spec"]["initContainers"]) == 2
    selector = child(result, "ModelServer")["spec"]["workloadSelector"]["matchLabels"]
    assert selector[ENTRY] == "true"


def test_an_executor_that_is_given_is_left_alone() -> None:
    config = {"distributed_executor_backend": "external_launcher"}
    script = engine(expanded(backend(workers=[worker(pods=2, config=config)])))["command"][-1]
    assert script.count("--distributed-executor-backend") == 1


def test_sglang_serves_with_metrics_on_its_own_port() -> None:
    result = expanded(sglang(config={"mem_fraction_static": 0.8, "trust-remote-code": True}))
    assert engine(result)["command"] == [
        *("python3", "-m", "sglang.launch_server", "--model-path", MODEL),
        *("--served-model-name", "chat", "--host", "0.0.0.0", "--port", "30000"),
        *("--enable-metrics", "--mem-fraction-static", "0.8", "--trust-remote-code"),
    ]
    assert "VLLM_USE_V1" not in [one["name"] for one in engine(result)["env"]]
    for probe in ("startupProbe", "readinessProbe"):
        assert engine(result)[probe]["httpGet"] == {"path": "/health", "port": 30000}
    hook = str(engine(result)["lifecycle"])
    assert "sglang:num_running_reqs|sglang:num_queue_reqs" in hook
    spec = child(result, "ModelServer")["spec"]
    assert (spec["inferenceEngine"], spec["workloadPort"]["port"]) == ("SGLang", 30000)
    runtime = role(result, "leader")["entryTemplate"]["spec"]["containers"][0]
    assert runtime["args"][3:6] == ["sglang", "--engine-base-url", "http://localhost:30000"]


def test_sglangs_own_values_count_and_stand_once() -> None:
    config = {"port": 31000, "host": "::", "served_model_name": "q", "enable-metrics": False}
    result = expanded(sglang(config=config))
    assert engine(result)["command"][5:] == [
        *("--served-model-name", "q", "--host", "::", "--port", "31000")
    ]
    spec = child(result, "ModelServer")["spec"]
    assert (spec["model"], spec["workloadPort"]["port"]) == ("q", 31000)


def test_sglang_adapters() -> None:
    adapters = [{"name": "sql", "artifactURL": "s3://bucket/lora-sql"}]
    served = sglang() | {"loraAdapters": adapters}
    command = engine(expanded(served))["command"]
    path = "/models/4c8227f27a8df12854716889ae7e37e2"
    assert command[-3:] == ["--enable-lora", "--lora-paths", f"sql={path}"]


def test_pods_of_a_multi_node_sglang_run_the_same_words_and_one_answers() -> None:
    result = expanded(sglang(pods=2))
    command = engine(result)["command"]
    assert command[-6:] == [
        *("--nnodes", "2", "--node-rank", "$(WORKER_INDEX)"),
        *("--dist-init-addr", "$(ENTRY_ADDRESS):20000"),
    ]
    found = role(result, "leader")
    assert found["workerReplicas"] == 1
    (helper,) = found["workerTemplate"]["spec"]["containers"]
    assert helper["command"] == command
    assert "readinessProbe" not in helper


def mindie(*workers: Document, kind: str = "MindIEDisaggregated", **fields: Any) -> Document:
    return backend(type=kind, workers=list(workers), **fields)


def test_mindie_runs_the_images_own_entry_point_with_its_configuration_as_environment() -> None:
    config = {"port": 2025, "maxSeqLen": 4096, "truncation": False, "mode": "fast"}
    result = expanded(mindie(worker(config=config), kind="MindIE"))
    (container,) = role(result, "server")["entryTemplate"]["spec"]["containers"]
    assert "command" not in container
    values = {one["name"]: one.get("value") for one in container["env"]}
    assert values["maxSeqLen"] == "4096"
    assert (values["truncation"], values["mode"]) == ("false", "fast")
    assert "port" not in values
    assert (values["MODEL_PATH"], values["MODEL_NAME"]) == (MODEL, "chat")
    for probe in ("startupProbe", "readinessProbe"):
        assert container[probe]["tcpSocket"] == {"port": 2025}
    startup = container["startupProbe"]
    assert startup["periodSeconds"] * startup["failureThreshold"] == 600
    spec = child(result, "ModelServer")["spec"]
    assert (spec["inferenceEngine"], spec["workloadPort"]["port"]) == ("MindIE", 2025)


@pytest.mark.parametrize("command", ["run --fast 'a b'", ["run", "--fast", "a b"]])
def test_mindie_runs_a_command_of_ones_own(command: Any) -> None:
    result = expanded(mindie(worker(config={"command": command}), kind="MindIE"))
    assert engine(result, "server")["command"] == ["run", "--fast", "a b"]


@pytest.mark.parametrize("command", ["run 'a", 7])
def test_a_command_that_is_none_is_told(command: Any) -> None:
    result = expanded(mindie(worker(config={"command": command}), kind="MindIE"))
    assert result.blocked
    assert "spec.backends[0].workers[0].config.command" in result.conditions[0].message


def test_mindies_coordinator_answers_for_its_roles() -> None:
    parts = [
        worker(type="controller"),
        worker(type="coordinator", config={"port": 1999}),
        worker(type="prefill", replicas=2),
        worker(type="decode"),
    ]
    scaled = mindie(*parts, maxReplicas=3, autoscalingPolicy=POLICY)
    result = expanded(scaled)
    found = child(result, "ModelServing")["spec"]["template"]["roles"]
    names = [(one["name"], one["replicas"]) for one in found]
    assert names == [("controller", 1), ("coordinator", 1), ("prefill", 2), ("decode", 1)]
    spec = child(result, "ModelServer")["spec"]
    assert spec["workloadSelector"]["matchLabels"][ROLE] == "coordinator"
    assert "pdGroup" not in spec["workloadSelector"]
    assert spec["workloadPort"]["port"] == 1999
    target = child(result, "AutoscalingPolicyBinding")["spec"]["scalingConfiguration"]["target"]
    assert target["metricEndpoint"]["port"] == 1999
    assert target["additionalMatchLabels"] == {ENTRY: "true", ROLE: "coordinator"}


def connector(name: str | None, role_name: str) -> Document:
    if name is None:
        return {}
    return {"kv_transfer_config": {"kv_connector": name, "kv_role": role_name}}


@pytest.mark.parametrize(
    ("prefill", "decode", "type_"),
    [
        ("NixlConnector", "NixlConnector", "nixl"),
        ("MooncakeConnector", "MooncakeConnectorV1", "mooncake"),
        ("LMCacheConnectorV1", "LMCacheConnectorV1", "lmcache"),
        ("OwnConnector", "OwnConnector", None),
        ("NixlConnector", None, None),
        (None, "NixlConnector", None),
        (None, None, None),
    ],
)
@pytest.mark.parametrize("turned", [False, True])
def test_mb_2_6_how_the_cache_is_handed_over(
    prefill: str | None, decode: str | None, type_: str | None, turned: bool
) -> None:
    parts = disaggregated(connector(prefill, "kv_producer"), connector(decode, "kv_both"))
    if turned:
        parts["workers"].reverse()
    spec = child(expanded(parts), "ModelServer")["spec"]
    assert spec.get("kvConnector") == ({"type": type_} if type_ else None)


def test_a_connector_written_as_a_mapping_reaches_the_engine_as_json() -> None:
    both = connector("NixlConnector", "kv_both")
    command = engine(expanded(disaggregated(both, both)), "decode")["command"]
    told = json.loads(command[command.index("--kv-transfer-config") + 1])
    assert told == {"kv_connector": "NixlConnector", "kv_role": "kv_both"}


def test_prefill_and_decode_serve_under_the_name_that_requests_carry() -> None:
    result = expanded(disaggregated({"served-model-name": "q"}, {}))
    assert child(result, "ModelServer")["spec"]["model"] == "q"
    for name in ("prefill", "decode"):
        command = engine(result, name)["command"]
        assert command[command.index("--served-model-name") + 1] == "q"


def test_metrics_of_prefill_and_decode_are_both_read() -> None:
    scaled = disaggregated({}, {}, maxReplicas=3, autoscalingPolicy=POLICY)
    binding = child(expanded(scaled), "AutoscalingPolicyBinding")["spec"]
    assert binding["scalingConfiguration"]["target"]["additionalMatchLabels"] == {ENTRY: "true"}
