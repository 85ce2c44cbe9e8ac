"""Inference Services: groups of one leader and its workers (llmaz spec 1.4, 2.4, 4.1)."""

import hashlib
from typing import Any

import pytest
from workload_builders import leader_worker_set, role, serving
from workload_world import World

from inferbus_contracts.errors import ProblemsError
from inferbus_workload_reconciler.actions import ChildKind
from inferbus_workload_reconciler.policy_parsing import parse_workload


def settled(*args: Any, **kwargs: Any) -> World:
    world = World(leader_worker_set(*args, **kwargs))
    world.settle()
    return world


def test_pods_services_and_snapshots() -> None:
    world = settled(2, size=3)
    assert world.pod_names() == ["p-0", "p-0-1", "p-0-2", "p-1", "p-1-1", "p-1-2"]
    assert world.services() == ["p"]
    service = world.objects[ChildKind.SERVICE, "p"]
    assert service["spec"]["clusterIP"] == "None"
    assert service["spec"]["selector"] == {"leaderworkerset.sigs.k8s.io/name": "p"}
    (snapshot,) = world.revisions()
    assert world.label("p-0", "template-revision-hash") == snapshot["metadata"]["name"][2:]


def test_leaders_have_their_own_template() -> None:
    world = settled(1, size=2, leader=True)
    assert (world.image("p-0"), world.image("p-0-1")) == ("a-leader", "a")


def test_the_status_that_clients_of_the_api_read() -> None:
    world = World(leader_worker_set(2))
    world.reconcile()
    assert world.true_conditions() == ["Progressing"]
    assert world.condition("Progressing")["reason"] == "GroupProgressing"
    world.settle()
    assert (world.status["replicas"], world.status["readyReplicas"]) == (2, 2)
    assert world.status["observedGeneration"] == 1
    assert world.status["hpaPodSelector"] == (
        "leaderworkerset.sigs.k8s.io/name=p,leaderworkerset.sigs.k8s.io/worker-index=0"
    )
    assert world.true_conditions() == ["Available"]
    world.unready_pod("p-1")
    world.reconcile()
    assert world.true_conditions() == ["Progressing"]


@pytest.mark.parametrize(
    ("policy", "replaced"),
    [
        ("RecreateGroupOnPodRestart", {"p-0", "p-0-1"}),
        ("None", set()),
        ("Default", set()),
    ],
)
def test_lz_t60_the_restart_policy_is_honoured(policy: str, replaced: set[str]) -> None:
    world = settled(2, size=2, restartPolicy=policy)
    before = {name: world.uid(name) for name in world.pod_names()}
    world.crash("p-0-1")
    world.settle()
    assert {name for name in before if world.uid(name) != before[name]} == replaced


def test_a_changed_template_rolls_group_by_group() -> None:
    world = settled(3, size=2)
    world.history.clear()
    world.apply(leader_worker_set(3, size=2, image="b"))
    world.settle()
    assert {world.image(name) for name in world.pod_names()} == {"b"}
    assert min(available for _, available, *_ in world.history) == 2
    assert world.services() == ["p"]


def test_max_surge_of_the_rollout_strategy() -> None:
    document = leader_worker_set(2)
    knobs = {"maxUnavailable": 0, "maxSurge": 1}
    document["spec"]["rolloutStrategy"] = {
        "type": "RollingUpdate",
        "rollingUpdateConfiguration": knobs,
    }
    world = World(document)
    world.settle()
    world.history.clear()
    changed = leader_worker_set(2, image="b")
    changed["spec"]["rolloutStrategy"] = document["spec"]["rolloutStrategy"]
    world.apply(changed)
    world.settle()
    assert min(available for _, available, *_ in world.history) == 2
    assert world.pod_names() == ["p-0", "p-1"]


def test_lz_t33_replicas_follow_the_object() -> None:
    world = settled(1, size=2)
    for replicas in (3, 0, 1):
        world.scale(replicas)
        world.settle()
        assert len(world.pod_names()) == 2 * replicas
        assert world.services() == ["p"]


def test_the_load_balanced_service_is_not_ours() -> None:
    world = settled(1)
    service = world.objects[ChildKind.SERVICE, "p"]
    metadata = {**service["metadata"], "name": "p-lb", "uid": "lb"}
    world.objects[ChildKind.SERVICE, "p-lb"] = {**service, "metadata": metadata}
    world.scale(0)
    world.settle()
    assert world.services() == ["p", "p-lb"]


@pytest.mark.parametrize(("size", "workers"), [(None, 0), (1, 0), (4, 3)])
def test_ms_t68_the_size_counts_the_leader(size: int | None, workers: int) -> None:
    document = leader_worker_set(1)
    document["spec"]["leaderWorkerTemplate"] |= {"size": size}
    if size is None:
        del document["spec"]["leaderWorkerTemplate"]["size"]
    (only,) = parse_workload(document).roles
    assert (only.template.worker_replicas, only.replicas) == (workers, 1)
    world = World(document)
    world.settle()
    assert len(world.pod_names()) == 1 + workers
    assert world.services() == ["p"]


def test_ms_t67_a_leader_worker_set_runs_without_its_controller() -> None:
    """The pods are its own: collected with it, and labelled as LeaderWorkerSet labels them."""
    world = settled(1, size=2)
    labels = "leaderworkerset.sigs.k8s.io"
    group = f"{world.namespace}/p-0".encode()
    key = hashlib.sha1(group, usedforsecurity=False).hexdigest()
    for index, name in enumerate(["p-0", "p-0-1"]):
        metadata = world.pod(name)["metadata"]
        (owner,) = metadata["ownerReferences"]
        assert (owner["kind"], owner["name"]) == ("LeaderWorkerSet", "p")
        assert owner["controller"] is owner["blockOwnerDeletion"] is True
        assert metadata["labels"][f"{labels}/name"] == "p"
        assert metadata["labels"][f"{labels}/group-index"] == "0"
        assert metadata["labels"][f"{labels}/worker-index"] == str(index)
        assert metadata["labels"][f"{labels}/group-key"] == key
    assert world.status["readyReplicas"] == 1


def test_ms_t67_a_model_serving_of_a_leader_worker_set_is_labelled_for_it() -> None:
    """As Kthena's bridge made it: plugin lws-standard-labels, its key without the namespace."""
    document = serving(1, [role("default", workers=1)], plugins=[{"name": "lws-standard-labels"}])
    owner = {"kind": "LeaderWorkerSet", "name": "x", "uid": "lws", "controller": True}
    document["metadata"]["ownerReferences"] = [owner]
    world = World(document)
    world.settle()
    labels = world.pod("x-0-default-0-1")["metadata"]["labels"]
    key = hashlib.sha1(b"x-0", usedforsecurity=False).hexdigest()
    own = {name.partition("/")[2]: value for name, value in labels.items() if "sigs" in name}
    assert own == {"name": "x", "group-index": "0", "worker-index": "1", "group-key": key}


def test_ms_d37_what_programs_for_leader_worker_sets_rely_on_is_there() -> None:
    """Environment, DNS and conditions, without another object of the same name."""
    world = settled(1, size=2)
    worker = world.pod("p-0-1")
    variables = {one["name"]: one["value"] for one in worker["spec"]["containers"][0]["env"]}
    assert variables["LWS_LEADER_ADDRESS"] == f"p-0.p.{world.namespace}"
    assert (variables["LWS_GROUP_SIZE"], variables["LWS_WORKER_INDEX"]) == ("2", "1")
    assert (worker["spec"]["hostname"], worker["spec"]["subdomain"]) == ("p-0-1", "p")
    assert world.true_conditions() == ["Available"]
    assert {kind for kind, _ in world.objects} == {
        ChildKind.POD,
        ChildKind.SERVICE,
        ChildKind.REVISION,
    }


def test_ms_d37_defaults_that_a_server_fills_in_change_nothing() -> None:
    world = settled(1, size=2)
    world.document["spec"] |= {"startupPolicy": "LeaderCreated"}
    world.document["spec"]["leaderWorkerTemplate"]["restartPolicy"] = "RecreateGroupOnPodRestart"
    world.document["spec"]["rolloutStrategy"] = {
        "type": "RollingUpdate",
        "rollingUpdateConfiguration": {"maxUnavailable": 1, "maxSurge": 0},
    }
    assert world.plan().actions == ()


def stand_in(replicas: int = 1, workers: int = 1, **spec: Any) -> dict[str, Any]:
    """A ModelServing in place of a LeaderWorkerSet."""
    document = serving(replicas, [role("default", workers=workers)], **spec)
    document["metadata"]["name"] = "p"
    document["metadata"]["annotations"] = {"inferbus.dev/naming": "leader-worker-set"}
    return document


def test_a_model_serving_in_place_of_one_looks_the_same() -> None:
    """Names, labels, variables, host names, the headless service and the selector for scaling."""
    world = World(stand_in(2))
    world.settle()
    real = settled(2, size=2)
    assert world.pod_names() == real.pod_names() == ["p-0", "p-0-1", "p-1", "p-1-1"]
    assert world.services() == real.services() == ["p"]
    for name in world.pod_names():
        ours, theirs = world.pod(name), real.pod(name)
        labels = dict(ours["metadata"]["labels"])
        assert labels.pop("modelserving.volcano.sh/name") == "p"
        revision = "leaderworkerset.sigs.k8s.io/template-revision-hash"
        assert labels.keys() == theirs["metadata"]["labels"].keys()
        assert labels.pop(revision) != ""
        assert labels.items() <= theirs["metadata"]["labels"].items()
        for field in ("hostname", "subdomain"):
            assert ours["spec"][field] == theirs["spec"][field]
        containers = [one["spec"]["containers"][0]["env"][:3] for one in (ours, theirs)]
        assert containers[0] == containers[1]
    service = world.objects[ChildKind.SERVICE, "p"]
    assert service["spec"]["selector"] == {"leaderworkerset.sigs.k8s.io/name": "p"}
    assert world.status["labelSelector"] == real.status["hpaPodSelector"]
    assert world.status["availableReplicas"] == 2


def test_a_model_serving_in_place_of_one_rolls_and_recovers_like_one() -> None:
    world = World(stand_in(2, recoveryPolicy="ServingGroupRecreate"))
    world.settle()
    before = {name: world.uid(name) for name in world.pod_names()}
    world.crash("p-0-1")
    world.settle()
    assert {name for name in before if world.uid(name) != before[name]} == {"p-0", "p-0-1"}
    world.scale(1)
    world.settle()
    assert world.pod_names() == ["p-0", "p-0-1"]
    assert world.services() == ["p"]


@pytest.mark.parametrize(
    "roles", [[role("main")], [role("default", replicas=2)], [role("default"), role("other")]]
)
def test_only_one_replica_of_one_role_can_stand_in(roles: list[dict[str, Any]]) -> None:
    document = stand_in()
    document["spec"]["template"]["roles"] = roles
    with pytest.raises(ProblemsError, match="one role, 'default', with one replica"):
        parse_workload(document)
