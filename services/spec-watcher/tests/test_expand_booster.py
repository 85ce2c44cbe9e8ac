"""ModelBooster: what v0.1.0 got wrong (modelbooster spec 7.1, 7.2), and where its fields end up."""

from typing import Any

import pytest
from expansion_builders import backend, booster, config_map, disaggregated, worker
from expansion_store import Document, Store, child, conditions, kinds

from inferbus_spec_watcher.expansion import Expansion

KTHENA = "workload.serving.volcano.sh"
ROLE = "modelserving.volcano.sh/role"
ENTRY = "modelserving.volcano.sh/entry"
POLICY = {"metrics": [{"metricName": "kthena:num_requests_waiting", "targetValue": 10}]}


def expanded(*backends: Document, **fields: Any) -> Expansion:
    return Store(booster(*backends, **fields)).expand("ModelBooster", "chat", "llm")


def roles(result: Expansion, name: str = "") -> list[Document]:
    found: list[Document] = child(result, "ModelServing", name)["spec"]["template"]["roles"]
    return found


def pod(result: Expansion, role: int = 0) -> Document:
    found: Document = roles(result)[role]["entryTemplate"]["spec"]
    return found


def container(result: Expansion, name: str, role: int = 0) -> Document:
    return next(one for one in pod(result, role)["containers"] if one["name"] == name)


def test_mb_7_1_3_the_sidecar_can_fetch_adapters_where_the_engine_finds_them() -> None:
    result = expanded(disaggregated({}, {}))
    for role in (0, 1):
        runtime = container(result, "runtime", role)
        assert {"name": "gpu-weights", "mountPath": "/models"} in runtime["volumeMounts"]
        assert "HF_HUB_OFFLINE" not in [one["name"] for one in runtime["env"]]


def test_mb_7_1_4_each_server_selects_the_pods_of_its_own_backend() -> None:
    result = expanded(backend(name="a"), backend(name="b"))
    pods = {
        name: roles(result, f"chat-{name}")[0]["entryTemplate"]["metadata"]["labels"]
        | {ENTRY: "true"}
        for name in "ab"
    }
    for name in "ab":
        spec = child(result, "ModelServer", f"chat-{name}")["spec"]
        wanted = spec["workloadSelector"]["matchLabels"].items()
        assert [other for other in "ab" if wanted <= pods[other].items()] == [name]


def test_mb_7_1_5_prefill_and_decode_pods_are_reachable_and_run_on_any_accelerator() -> None:
    result = expanded(disaggregated({}, {}))
    selector = child(result, "ModelServer")["spec"]["workloadSelector"]["matchLabels"]
    for role in roles(result):
        template = role["entryTemplate"]
        labels = template["metadata"]["labels"] | {ENTRY: "true"}
        assert selector.items() <= labels.items()
        assert "affinity" not in template["spec"]


@pytest.mark.parametrize(
    ("uri", "volume", "path"),
    [
        (None, {"emptyDir": {}}, "/cache"),
        ("pvc://claim", {"persistentVolumeClaim": {"claimName": "claim"}}, "/claim"),
        ("hostpath://tmp/x", {"hostPath": {"path": "/tmp/x", "type": "DirectoryOrCreate"}}, None),
        (
            "hostpath:///tmp//x/",
            {"hostPath": {"path": "/tmp/x", "type": "DirectoryOrCreate"}},
            None,
        ),
    ],
)
def test_mb_7_1_6_each_kind_of_cache_can_be_mounted(
    uri: str | None, volume: Document, path: str | None
) -> None:
    result = expanded(backend(cacheURI=uri))
    mount = path or "/tmp/x"
    assert pod(result)["volumes"][0] == {"name": "main-weights", **volume}
    engine = container(result, "engine")
    assert engine["volumeMounts"][0] == {"name": "main-weights", "mountPath": mount}
    folder = "18488ba95d6e1baca4a2755a6748053e"
    assert engine["command"][4] == f"{mount}/{folder}"
    assert pod(result)["initContainers"][0]["args"][-1] == f"{mount}/{folder}"


def test_mb_7_1_7_without_a_configuration_the_model_goes_by_the_boosters_name() -> None:
    result = expanded(backend())
    assert child(result, "ModelServer")["spec"]["model"] == "chat"
    command = container(result, "engine")["command"]
    assert command[command.index("--served-model-name") + 1] == "chat"


@pytest.mark.parametrize(
    ("pods", "workers", "ray"), [(None, 0, False), (0, 0, False), (1, 0, False), (3, 2, True)]
)
def test_mb_7_1_8_pods_of_an_instance(pods: int | None, workers: int, ray: bool) -> None:
    result = expanded(backend(workers=[worker(pods=pods)]))
    assert roles(result)[0]["workerReplicas"] == workers
    command = " ".join(container(result, "engine")["command"])
    assert ("--ray_cluster_size=3" in command) is ray


def test_f18_absent_replicas_count_as_one() -> None:
    result = expanded(backend(workers=[worker(replicas=0, pods=0)]))
    assert roles(result)[0]["replicas"] == 1


def test_mb_7_1_9_objects_of_a_removed_policy_are_no_children_any_more() -> None:
    scaled = expanded(backend(maxReplicas=3, autoscalingPolicy=POLICY))
    assert kinds(scaled)[3:] == ["AutoscalingPolicy", "AutoscalingPolicyBinding"]
    assert kinds(expanded(backend(maxReplicas=3)))[3:] == []


def test_mb_7_1_10_the_drain_ends_when_the_engine_does_not_answer() -> None:
    script = container(expanded(backend()), "engine")["lifecycle"]["preStop"]["exec"]["command"][-1]
    assert script.startswith("while page=$(curl --silent --fail --max-time 2 ")
    assert "http://localhost:8000/metrics" in script


def test_mb_7_1_12_affinity_tolerations_and_the_clients_name_are_used() -> None:
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": []}}
    tolerations = [{"key": "nvidia.com/gpu", "operator": "Exists"}]
    placed = worker(affinity=affinity, tolerations=tolerations, pods=2)
    result = expanded(backend(workers=[placed], runtimeClassName="nvidia"), client_name="gpt-x")
    (role,) = roles(result)
    for template in (role["entryTemplate"], role["workerTemplate"]):
        assert template["spec"]["affinity"] == affinity
        assert template["spec"]["tolerations"] == tolerations
        assert template["spec"]["runtimeClassName"] == "nvidia"
    assert child(result, "ModelRoute")["spec"]["modelName"] == "gpt-x"
    arguments = container(result, "runtime")["args"]
    assert arguments[arguments.index("--model") + 1] == "gpt-x"


def test_mb_7_2_a_mix_has_a_cost_expansion_rate_even_where_admission_did_not_run() -> None:
    document = booster(backend(maxReplicas=3, scalingCost=2), autoscalingPolicy=POLICY)
    store = Store(document)
    stored = store.get("ModelBooster", "chat", "llm")
    del stored["spec"]["costExpansionRatePercent"]
    binding = child(store.expand("ModelBooster", "chat", "llm"), "AutoscalingPolicyBinding")
    assert binding["spec"]["optimizerConfiguration"]["costExpansionRatePercent"] == 200


def test_mb_7_3_no_name_stands_twice_and_the_users_value_counts() -> None:
    own = [{"name": "VLLM_USE_V1", "value": "0"}, {"name": "HCCL_SOCKET_IFNAME", "value": "bond0"}]
    result = expanded(disaggregated({}, {}, env=own))
    for name in ("runtime", "vllm"):
        variables = container(result, name, 1)["env"]
        found = [one["name"] for one in variables]
        assert sorted(set(found)) == sorted(found)
        assert [
            one for one in variables if one["name"] in ("VLLM_USE_V1", "HCCL_SOCKET_IFNAME")
        ] == own


def test_f3_a_sidecar_of_ones_own_port_and_page_is_what_the_policy_reads() -> None:
    env = [
        {"name": "RUNTIME_PORT", "value": "9100"},
        {"name": "RUNTIME_METRICS_PATH", "value": "/m"},
        {"name": "RUNTIME_URL", "valueFrom": {"secretKeyRef": {"name": "s", "key": "u"}}},
    ]
    result = expanded(backend(maxReplicas=3, autoscalingPolicy=POLICY, env=env))
    runtime = container(result, "runtime")
    assert runtime["ports"] == [{"containerPort": 9100}]
    assert runtime["readinessProbe"]["httpGet"]["port"] == 9100
    assert runtime["args"][:8] == [
        *("--port", "9100", "--engine", "vllm", "--engine-base-url", "$(RUNTIME_URL)"),
        *("--engine-metrics-path", "/m"),
    ]
    scaled = child(result, "AutoscalingPolicyBinding")["spec"]["scalingConfiguration"]
    assert scaled["target"]["metricEndpoint"] == {"uri": "/m", "port": 9100}


def test_a_page_that_only_the_pod_can_resolve_is_not_read_by_the_policy() -> None:
    env = [
        {"name": "RUNTIME_METRICS_PATH", "valueFrom": {"secretKeyRef": {"name": "s", "key": "p"}}}
    ]
    result = expanded(backend(maxReplicas=3, autoscalingPolicy=POLICY, env=env))
    assert "$(RUNTIME_METRICS_PATH)" in container(result, "runtime")["args"]
    scaled = child(result, "AutoscalingPolicyBinding")["spec"]["scalingConfiguration"]
    assert scaled["target"]["metricEndpoint"]["uri"] == "/metrics"


@pytest.mark.parametrize("value", ["eighty", "0", "70000", ""])
def test_a_port_that_is_none_is_told(value: str) -> None:
    result = expanded(backend(env=[{"name": "RUNTIME_PORT", "value": value}]))
    assert container(result, "runtime")["ports"] == [{"containerPort": 8100}]
    assert conditions(result)["SettingUnreadable"] == ("True", "SettingUnreadable")
    told = next(one for one in result.conditions if one.type == "SettingUnreadable")
    assert "spec.backends[0].env[0].value" in told.message


def test_a_port_of_the_engine_reaches_everything_that_speaks_to_it() -> None:
    result = expanded(backend(workers=[worker(config={"port": "9000"})]))
    engine = container(result, "engine")
    assert engine["command"][engine["command"].index("--port") + 1] == "9000"
    probes = ("startupProbe", "readinessProbe", "livenessProbe")
    assert {engine[probe]["httpGet"]["port"] for probe in probes} == {9000}
    assert "http://localhost:9000/metrics" in str(engine["lifecycle"])
    assert "http://localhost:9000" in container(result, "runtime")["args"]
    assert child(result, "ModelServer")["spec"]["workloadPort"]["port"] == 9000


def test_an_engine_may_load_for_as_long_as_the_settings_say_before_it_is_probed() -> None:
    store = Store(booster(backend()), engine_startup_seconds=1200)
    engine = container(store.expand("ModelBooster", "chat", "llm"), "engine")
    startup = engine["startupProbe"]
    assert startup["periodSeconds"] * startup["failureThreshold"] == 1200
    assert "initialDelaySeconds" not in engine["livenessProbe"]


def test_images_come_from_kthenas_own_configuration_before_the_settings() -> None:
    store = Store(booster(backend()), downloader_image="d:1", runtime_image="r:1")
    plain = store.expand("ModelBooster", "chat", "llm")
    assert container(plain, "runtime")["image"] == "r:1"
    chosen = {"model_serving_runtime_image": "r:2", "model_serving_downloader_image": "d:2"}
    store.put(config_map("kthena-system", "model-booster-controller-config", **chosen))
    result = store.expand("ModelBooster", "chat", "llm")
    assert container(result, "runtime")["image"] == "r:2"
    assert pod(result)["initContainers"][0]["image"] == "d:2"


@pytest.mark.parametrize(
    ("fields", "replicas"),
    [
        ({"minReplicas": 2, "maxReplicas": 5}, 2),
        ({"minReplicas": 2, "maxReplicas": 5, "replicas": 4}, 4),
        ({"minReplicas": 2, "maxReplicas": 5, "replicas": 9}, 5),
        ({"minReplicas": None, "maxReplicas": None, "replicas": 3}, 3),
        ({"minReplicas": 0, "maxReplicas": 5}, 0),
    ],
)
def test_where_a_backend_begins(fields: dict[str, Any], replicas: int) -> None:
    result = expanded(backend(**fields))
    assert child(result, "ModelServing")["spec"]["replicas"] == replicas


def test_an_empty_scheduler_name_is_none() -> None:
    assert (
        child(expanded(backend(schedulerName="")), "ModelServing")["spec"]["schedulerName"]
        == "volcano"
    )
    chosen = expanded(backend(schedulerName="kai"))
    assert child(chosen, "ModelServing")["spec"]["schedulerName"] == "kai"


def test_what_does_not_change_pods_leaves_templates_and_revision_alone() -> None:
    before = expanded(backend(maxReplicas=3, routeWeight=10))
    after = expanded(
        backend(maxReplicas=4, minReplicas=2, routeWeight=90, autoscalingPolicy=POLICY)
    )
    assert roles(before) == roles(after)
    label = f"{KTHENA}/revision"
    one, other = (child(result, "ModelServing")["metadata"] for result in (before, after))
    assert one["labels"][label] == other["labels"][label]
    changed = expanded(backend(workers=[worker(config={"seed": 1})]))
    assert child(changed, "ModelServing")["metadata"]["labels"][label] != one["labels"][label]


def test_annotations_that_steer_the_platform_reach_the_children_and_no_others() -> None:
    steering = {"inferbus.dev/mode": "advise", "inferbus.dev/objective": "ttft=2s@99.5%"}
    other = {"example.org/x": "1", "inferbus.dev/decision-id": "d1"}
    result = expanded(backend(), annotations={**steering, **other}, owner="acme")
    for one in result.children:
        found = dict(one["metadata"]["annotations"])
        assert found.pop("inferbus.dev/owned-by", "") == (
            "acme" if one["kind"] == "ModelRoute" else ""
        )
        assert found == steering
