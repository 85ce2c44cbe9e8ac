"""Which pods become endpoints of a ModelServer, and what routers get of them."""

import pytest
from publisher_builders import (
    GROUPS,
    SERVING,
    World,
    model_serving,
    pod,
    server,
    server_key,
    workload,
    workload_key,
)

from inferbus_contracts.admission.schema import decode
from inferbus_contracts.events.route import (
    EndpointEntry,
    ServerEntry,
    SessionAffinity,
    SessionSource,
)
from inferbus_contracts.events.workload import PodFact
from inferbus_contracts.resources.networking import ModelServer
from inferbus_router_config_publisher.policy_endpoints import server_view

MULTI_NODE = {"app": "s", f"{SERVING}name": "w"}
ENTRY = MULTI_NODE | {f"{SERVING}entry": "true"}
PD = {
    "groupKey": f"{SERVING}group-name",
    "prefillLabels": {f"{SERVING}role": "prefill"},
    "decodeLabels": {f"{SERVING}role": "decode"},
}


def pd_labels(role: str, group: str = "w-0") -> dict[str, str]:
    return {"app": "s", f"{SERVING}group-name": group, f"{SERVING}role": role}


def test_a_server_with_everything_set() -> None:
    world = World(
        server(
            model="served-name",
            inferenceEngine="SGLang",
            workloadPort={"port": 30000, "protocol": "https"},
            trafficPolicy={"timeout": "1m30s", "retry": {"attempts": 3, "retryInterval": "2s"}},
            kvConnector={"type": "nixl"},
        )
    )
    world.observe(pod("p-0", address="10.1.2.3"))
    assert world.server() == ServerEntry(
        model="served-name",
        engine="SGLang",
        protocol="https",
        target="ModelServing/ns/w",
        timeout_ms=90_000,
        retry_attempts=3,
        retry_interval_ms=2_000,
        kv_connector="nixl",
        endpoints=[EndpointEntry(pod="p-0", address="10.1.2.3", port=30000)],
    )


def test_a_server_with_nothing_set_leaves_name_timeout_and_connector_open() -> None:
    entry = World(server()).server()
    assert (entry.model, entry.timeout_ms, entry.kv_connector) == (None, None, None)
    assert (entry.protocol, entry.retry_attempts, entry.retry_interval_ms) == ("http", 0, 100)
    assert entry.endpoints == []


@pytest.mark.parametrize("timeout", ["0", "0s"])
def test_a_timeout_of_zero_is_none(timeout: str) -> None:
    assert World(server(trafficPolicy={"timeout": timeout})).server().timeout_ms is None


@pytest.mark.parametrize(
    ("annotations", "expected_ms"), [({"inferbus.dev/try-timeout": "2s"}, 2000), ({}, None)]
)
def test_rt_03_attempts_have_the_deadline_that_an_annotation_gives_them(
    annotations: dict[str, str], expected_ms: int | None
) -> None:
    document = server()
    document["metadata"]["annotations"] = annotations

    assert World(document).server().try_timeout_ms == expected_ms


def test_sessions_that_stay_together() -> None:
    """Routing spec 6.3; 5 minutes are what the reference shipped with."""
    sticky = {"sources": [{"type": "Header", "name": "X-S"}, {"type": "Cookie", "name": "sid"}]}
    entry = World(server(trafficPolicy={"sessionSticky": sticky})).server()
    assert entry.session == SessionAffinity(
        seconds=300,
        sources=[
            SessionSource(kind="Header", name="X-S"),
            SessionSource(kind="Cookie", name="sid"),
        ],
    )
    assert World(server(trafficPolicy={})).server().session is None


def test_an_empty_kv_connector_means_http() -> None:
    assert World(server(kvConnector={})).server().kv_connector == "http"


@pytest.mark.parametrize(
    ("annotations", "published"),
    [
        ({}, (None, None)),
        ({"prefill-min-tokens": "256", "bootstrap-port": "9000"}, (256, 9000)),
        ({"prefill-min-tokens": "some", "bootstrap-port": "0"}, (None, None)),
    ],
)
def test_annotations_say_how_prefill_and_decode_share_work(
    annotations: dict[str, str], published: tuple[int | None, int | None]
) -> None:
    document = server(kvConnector={"type": "sglang"})
    document["metadata"]["annotations"] = {
        f"inferbus.dev/{name}": value for name, value in annotations.items()
    }
    entry = server_view(decode(ModelServer, document), [], []).entry

    assert entry.kv_connector == "sglang"
    assert (entry.prefill_min_tokens, entry.bootstrap_port) == published


def test_pods_are_selected_by_all_labels_inside_the_namespace() -> None:
    world = World(server(labels={"app": "s", "tier": "gold"}))
    world.observe(
        pod("both", {"app": "s", "tier": "gold", "more": "x"}),
        pod("other-value", {"app": "s", "tier": "silver"}),
        pod("one-label", {"app": "s"}),
    )
    world.join.fold_workload(
        workload_key(namespace="elsewhere"),
        workload(pod("same-labels", {"app": "s", "tier": "gold"})),
    )
    assert [endpoint.pod for endpoint in world.server().endpoints] == ["both"]


def test_a_selector_without_labels_selects_the_whole_namespace() -> None:
    world = World(server(labels={}))
    world.observe(pod("a", {}), pod("b", {"x": "y"}))
    assert [endpoint.pod for endpoint in world.server().endpoints] == ["a", "b"]
    status, reason, message = world.condition(server_key(), "Accepted")
    assert (status, reason) == ("True", "AcceptedWithDoubts")
    assert "selects every pod of the namespace" in message


def test_workers_of_a_multi_node_replica_are_no_endpoints() -> None:
    """Modelbooster spec 2.11: multi-node boosters list pods that serve no HTTP."""
    world = World(server())
    world.observe(
        pod("w-0-main-0-0", ENTRY, entry=True, address="10.0.0.1"),
        pod("w-0-main-0-1", MULTI_NODE, entry=False, address="10.0.0.2"),
    )
    assert world.addresses() == ["10.0.0.1"]


def test_a_worker_stays_one_while_its_entry_pod_is_being_replaced() -> None:
    world = World(server())
    world.observe(pod("w-0-main-0-1", MULTI_NODE, entry=False, address="10.0.0.2"))
    assert world.addresses() == []


def test_the_leader_of_a_leader_worker_group_is_the_endpoint() -> None:
    world = World(server())
    for index in range(3):
        labels = {"app": "s", f"{GROUPS}name": "w", f"{GROUPS}worker-index": str(index)}
        world.observe(
            pod(f"w-0-{index}", labels, entry=False, address=f"10.0.0.{index}"),
            name=f"w{index}",
            kind="LeaderWorkerSet",
        )
    assert world.addresses() == ["10.0.0.0"]


def test_pods_of_a_workload_without_any_convention_all_serve() -> None:
    world = World(server())
    world.observe(pod("a", entry=False, address="10.0.0.1"), pod("b", entry=False, address="::1"))
    assert world.addresses() == ["10.0.0.1", "::1"]


def test_beside_entry_pods_no_other_pod_serves_whatever_its_labels() -> None:
    world = World(server())
    world.observe(pod("a", address="10.0.0.1"), pod("b", entry=False, address="10.0.0.2"))
    assert world.addresses() == ["10.0.0.1"]


@pytest.mark.parametrize(
    ("fields", "ready", "draining"),
    [
        ({}, True, False),
        ({"ready": False}, False, False),
        ({"deleting": True}, True, True),
        ({"deleting": True, "ready": False}, False, True),
        ({"failed": True}, False, False),
    ],
)
def test_readiness_and_draining(fields: dict[str, bool], ready: bool, draining: bool) -> None:
    world = World(server())
    world.observe(pod("p", **fields))
    (endpoint,) = world.server().endpoints
    assert (endpoint.ready, endpoint.draining) == (ready, draining)


@pytest.mark.parametrize(
    "fields", [{"address": ""}, {"phase": "Failed", "failed": True}, {"phase": "Succeeded"}]
)
def test_a_pod_that_cannot_be_reached_is_no_endpoint(fields: dict[str, object]) -> None:
    world = World(server())
    world.observe(pod("p", **fields))
    assert world.addresses() == []


def test_endpoints_stand_in_the_order_of_workload_and_pod() -> None:
    world = World(server())
    world.observe(pod("b"), pod("a"), name="w2")
    world.observe(pod("z"), name="w1")
    assert [endpoint.pod for endpoint in world.server().endpoints] == ["z", "a", "b"]


def test_prefill_and_decode_pods_with_their_groups() -> None:
    world = World(server(pd_group=PD))
    world.observe(
        pod("d", pd_labels("decode")),
        pod("no-group", {"app": "s", f"{SERVING}role": "decode"}),
        pod("other-role", pd_labels("controller")),
        pod("p", pd_labels("prefill", "w-1")),
    )
    found = [(one.pod, one.role, one.group) for one in world.server().endpoints]
    assert found == [("d", "decode", "w-0"), ("p", "prefill", "w-1")]


def test_decode_wins_where_both_labels_fit() -> None:
    both = {"groupKey": "g", "prefillLabels": {"app": "s"}, "decodeLabels": {"g": "1"}}
    world = World(server(pd_group=both))
    world.observe(pod("p", {"app": "s", "g": "1"}))
    assert world.server().endpoints[0].role == "decode"


def test_prefill_and_decode_are_ready_as_pairs_of_one_group() -> None:
    world = World(server(pd_group=PD))
    decode, prefill = pod("d", pd_labels("decode")), pod("p", pd_labels("prefill", "w-1"))
    world.observe(decode, prefill)
    status, reason, message = world.condition(server_key(), "Ready")
    assert (status, reason) == ("False", "NoPrefillDecodePair")
    assert "2 of 2 endpoints ready" in message
    world.observe(decode, pod("p", pd_labels("prefill", "w-0")))
    assert world.condition(server_key(), "Ready")[0] == "True"


def test_a_server_without_a_port_sends_nothing_and_says_so() -> None:
    world = World(server(port=None))
    world.observe(pod())
    assert world.addresses() == []
    status, reason, message = world.condition(server_key(), "Accepted")
    assert (status, reason) == ("False", "NoPort")
    assert "workloadPort" in message
    assert "names no port" in world.condition(server_key(), "Ready")[2]


def test_demand_goes_to_the_workload_of_the_pods() -> None:
    world = World(server())
    world.observe(pod(), name="sets", kind="LeaderWorkerSet")
    assert world.server().target == "LeaderWorkerSet/ns/sets"


def test_a_workload_without_pods_is_the_target_by_its_templates() -> None:
    """Without it a request could not start the first replica."""
    world = World(server(), model_serving(replicas=0))
    assert world.server().target == "ModelServing/ns/w"
    assert world.condition(server_key(), "ResolvedRefs")[:2] == ("True", "ResolvedRefs")
    assert world.condition(server_key(), "Ready")[:2] == ("False", "NoPods")


def test_a_workload_that_comes_later_and_goes_is_noticed() -> None:
    world = World(server())
    assert world.server().target is None
    assert world.apply(model_serving(replicas=0)).parts == {server_key()}
    assert world.server().target == "ModelServing/ns/w"
    assert world.apply(model_serving(replicas=0), deleted=True).parts == {server_key()}
    assert world.server().target is None


def test_the_labels_that_pods_get_count_for_a_workload_without_pods() -> None:
    labels = {f"{SERVING}name": "w", f"{SERVING}role": "main", f"{SERVING}entry": "true"}
    world = World(server(labels=labels), model_serving(replicas=0))
    assert world.server().target == "ModelServing/ns/w"


def test_leaders_of_a_leader_worker_set_without_pods() -> None:
    sets = {
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "metadata": {"name": "sets", "namespace": "ns"},
        "spec": {
            "replicas": 0,
            "leaderWorkerTemplate": {
                "workerTemplate": {"metadata": {"labels": {"llmaz.io/model-name": "m"}}}
            },
        },
    }
    labels = {f"{GROUPS}name": "sets", f"{GROUPS}worker-index": "0", "llmaz.io/model-name": "m"}
    world = World(server(labels=labels), sets)
    assert world.server().target == "LeaderWorkerSet/ns/sets"


def test_a_workload_of_an_unexpected_form_takes_nothing_with_it() -> None:
    broken = {
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "metadata": {"name": "sets", "namespace": "ns"},
        "spec": {"leaderWorkerTemplate": ["not", "a", "mapping"]},
    }
    world = World(broken, server(labels={f"{GROUPS}name": "sets"}))
    assert world.server().target == "LeaderWorkerSet/ns/sets"


def test_the_target_of_several_workloads_does_not_move_with_their_pods() -> None:
    world = World(server(), model_serving("b"), model_serving("a"))
    world.observe(pod("b-0"), pod("b-1"), name="b")
    assert world.server().target == "ModelServing/ns/a"
    status, reason, message = world.condition(server_key(), "ResolvedRefs")
    assert (status, reason) == ("True", "SeveralWorkloads")
    assert "ModelServing ns/a, ModelServing ns/b" in message


def test_a_deleted_workload_is_no_target_once_its_pods_are_gone() -> None:
    world = World(server(), model_serving())
    world.observe(pod())
    world.apply(model_serving(), deleted=True)
    assert world.server().target == "ModelServing/ns/w"
    world.observe()
    assert world.server().target is None
    status, reason, message = world.condition(server_key(), "ResolvedRefs")
    assert (status, reason) == ("False", "WorkloadNotFound")
    assert "app=s" in message


def test_what_keeps_pods_from_being_ready_is_told() -> None:
    world = World(server())
    world.observe(
        pod("a"),
        pod("b", ready=False, phase="Pending", address="", message="no GPU is free"),
        pod("c", deleting=True),
    )
    resolved = world.resolved(server_key())
    assert (resolved.endpoints, resolved.ready_endpoints) == (2, 1)
    status, _, message = world.condition(server_key(), "Ready")
    assert status == "True"
    assert message == "1 of 2 endpoints ready; b: Pending: no GPU is free, c: is being deleted"


def test_moved_labels_move_the_endpoint() -> None:
    """Routing spec 7, stale binding: a pod that left all selectors kept its old binding."""
    world = World(server("s"), server("t"))
    world.observe(pod("p", {"app": "s"}))
    affected = world.observe(pod("p", {"app": "t"}))
    assert affected.parts == {server_key("s"), server_key("t")}
    assert affected.urgent
    assert (world.addresses("s"), world.addresses("t")) == ([], ["10.0.0.1"])


def test_a_selector_that_changes_to_nothing_leaves_no_endpoints() -> None:
    """Routing spec 7, stale binding: the old binding stayed."""
    world = World(server())
    world.observe(pod())
    world.apply(server(labels={"app": "nothing"}))
    assert world.addresses() == []


@pytest.mark.parametrize(
    ("now", "urgent"),
    [
        (pod("p", ready=False), True),
        (pod("p", deleting=True), True),
        (pod("p", address="10.9.9.9"), True),
        (None, True),
        (pod("p", restarts=1), False),
        (pod("p", labels={"app": "s", "more": "labels"}), False),
    ],
)
def test_lost_endpoints_are_urgent(now: PodFact | None, urgent: bool) -> None:
    world = World(server())
    assert not world.observe(pod("p", ready=False)).urgent
    assert not world.observe(pod("p")).urgent
    assert world.observe(*([now] if now else [])).urgent is urgent


def test_an_endpoint_nobody_selects_is_not_urgent() -> None:
    world = World(server("other"))
    world.observe(pod("p"))
    assert world.observe().urgent is False
