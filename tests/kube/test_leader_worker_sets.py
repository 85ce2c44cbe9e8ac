"""LeaderWorkerSets on an API server: run where no controller of theirs does, else left alone."""

import hashlib
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from functools import partial
from typing import Any

import pytest
import pytest_asyncio

from inferbus_contracts.errors import ProblemsError
from inferbus_contracts.leader_worker_sets import LEASE, MANAGED_BY
from inferbus_workload_reconciler.policy_parsing import parse_workload
from tests.fakes.kubernetes.crds import leader_worker_set_definition
from tests.support.eventually import eventually
from tests.support.kube import KubeServer
from tests.support.kube_calls import KubeCalls, path_of
from tests.support.kube_cluster import KubeCluster
from tests.support.kube_fleet import KubeFleet, install_definitions, serving
from tests.support.kube_passes import Passes, kube_substrate
from tests.support.kube_watcher import install

Document = dict[str, Any]

GROUP = "leaderworkerset.x-k8s.io"
LABELS = "leaderworkerset.sigs.k8s.io"


def leader_worker_set(size: int | None = 2, **metadata: Any) -> Document:
    template = {"spec": {"containers": [{"name": "engine", "image": "vllm:1"}]}}
    groups: Document = {"workerTemplate": template}
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": "LeaderWorkerSet",
        "metadata": {"name": "lws", **metadata},
        "spec": {
            "replicas": 1,
            "leaderWorkerTemplate": groups if size is None else {**groups, "size": size},
        },
    }


class Sets:
    """LeaderWorkerSets of one namespace."""

    def __init__(self, calls: KubeCalls, namespace: str) -> None:
        self.calls = calls
        self.namespace = namespace

    def path(self, name: str = "", subresource: str = "") -> str:
        return path_of(
            "leaderworkersets", self.namespace, name, subresource, group=GROUP, version="v1"
        )

    async def create(self, document: Document) -> Document:
        answer = await self.calls.post(self.path(), document)
        assert answer.code == 201, answer
        return answer.body

    async def now(self) -> Document:
        return (await self.calls.get(self.path("lws"))).body

    async def pods(self) -> list[Document]:
        return (await self.calls.get(path_of("pods", self.namespace))).items


@pytest_asyncio.fixture
async def sets(kube_calls: KubeCalls, namespace: str) -> Sets:
    await install_definitions(kube_calls)
    await install(kube_calls, leader_worker_set_definition())
    return Sets(kube_calls, namespace)


@pytest_asyncio.fixture
async def cluster(sets: Sets) -> KubeCluster:
    return KubeCluster(sets.calls, sets.namespace)


@pytest_asyncio.fixture
async def passes(kube_server: KubeServer, sets: Sets) -> AsyncIterator[Passes]:
    async with kube_substrate(
        kube_server, sets.namespace, leader_worker_namespace=sets.namespace
    ) as substrate:
        yield Passes(substrate)


async def seen(passes: Passes, document: Document) -> None:
    """Wait until the substrate has heard of an object."""
    key = parse_workload(document).key

    async def is_seen() -> bool:
        return passes.substrate.status_of(key) == (document.get("status") or {})

    await eventually(is_seen)
    await eventually(lambda: can_be_observed(passes, document))


async def can_be_observed(passes: Passes, document: Document) -> bool:
    try:
        await passes.substrate.observe(parse_workload(document))
    except ProblemsError:
        return False
    return True


async def settle(passes: Passes, sets: Sets, cluster: KubeCluster, pods: int) -> None:
    async def settled() -> bool:
        await cluster.step()
        plan = await passes.once(await sets.now())
        status = (await sets.now()).get("status") or {}
        return not plan.actions and status.get("readyReplicas") == 1

    await eventually(settled)
    assert len(await sets.pods()) == pods


async def test_ms_t67_one_comes_up_and_goes_with_all_it_had(
    passes: Passes, sets: Sets, cluster: KubeCluster
) -> None:
    await seen(passes, await sets.create(leader_worker_set()))
    await settle(passes, sets, cluster, pods=2)
    key = hashlib.sha1(f"{sets.namespace}/lws-0".encode(), usedforsecurity=False).hexdigest()
    for index, pod in enumerate(sorted(await sets.pods(), key=lambda one: one["metadata"]["name"])):
        labels = pod["metadata"]["labels"]
        told = [labels[f"{LABELS}/{name}"] for name in ("name", "group-index", "worker-index")]
        assert told == ["lws", "0", str(index)]
        assert labels[f"{LABELS}/group-key"] == key
        (owner,) = pod["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["controller"], owner["blockOwnerDeletion"]) == (
            "LeaderWorkerSet",
            True,
            True,
        )
    status = (await sets.now())["status"]
    assert {one["type"] for one in status["conditions"] if one["status"] == "True"} == {"Available"}
    assert (await sets.calls.delete(sets.path("lws"))).ok
    await cluster.settle()
    for plural, group in (("pods", ""), ("services", ""), ("controllerrevisions", "apps")):
        left = await sets.calls.get(path_of(plural, sets.namespace, group=group))
        assert left.names == [], plural


@pytest.mark.parametrize(("size", "pods"), [(None, 1), (1, 1), (4, 4)])
async def test_ms_t68_the_size_counts_the_leader(
    passes: Passes, sets: Sets, cluster: KubeCluster, size: int | None, pods: int
) -> None:
    await seen(passes, await sets.create(leader_worker_set(size)))
    await settle(passes, sets, cluster, pods=pods)


async def test_ms_d37_what_the_server_filled_in_changes_nothing(
    passes: Passes, sets: Sets, cluster: KubeCluster
) -> None:
    """Every default that the definition has was stored, and the spec is never written."""
    made = await sets.create(leader_worker_set())
    await seen(passes, made)
    await settle(passes, sets, cluster, pods=2)
    before = await sets.now()
    for _ in range(3):
        assert (await passes.once(await sets.now())).actions == ()
    assert await sets.now() == before
    assert before["metadata"]["generation"] == 1
    assert before["spec"] == made["spec"]


async def test_ms_d37_a_model_serving_of_the_same_name_is_another_object(
    passes: Passes, sets: Sets, cluster: KubeCluster
) -> None:
    fleet = KubeFleet(sets.calls, sets.namespace)
    other = await fleet.create(serving("lws", image="other:1"))
    await seen(passes, await sets.create(leader_worker_set()))
    await seen(passes, other)
    await settle(passes, sets, cluster, pods=2)
    assert await fleet.serving("lws") == other
    images = {pod["spec"]["containers"][0]["image"] for pod in await sets.pods()}
    assert images == {"vllm:1"}


async def test_ms_d37_the_kind_may_be_installed_later(
    fake_kube_server: KubeServer,
) -> None:
    async with fake_kube_server.calls() as calls:
        await install_definitions(calls)
        sets = Sets(calls, "default")
        cluster = KubeCluster(calls, "default")
        async with kube_substrate(fake_kube_server, "default") as substrate:
            passes = Passes(substrate)
            assert substrate.missing() == {}, "nobody has to have LeaderWorkerSets"
            await install(calls, leader_worker_set_definition())
            await seen(passes, await sets.create(leader_worker_set()))
            await settle(passes, sets, cluster, pods=2)


@pytest.mark.parametrize(
    "metadata",
    [
        {
            "ownerReferences": [
                {
                    "apiVersion": "inference.llmaz.io/v1alpha1",
                    "kind": "Service",
                    "name": "p",
                    "uid": "0",
                    "controller": True,
                }
            ]
        },
        {"labels": {MANAGED_BY: "anything"}},
    ],
    ids=["owner", "label"],
)
async def test_what_was_made_from_our_own_kinds_is_never_run(
    passes: Passes, sets: Sets, metadata: Document
) -> None:
    made = await sets.create(leader_worker_set(**metadata))
    await seen(passes, made)
    assert "made from" in passes.substrate.refusal(parse_workload(made))
    await passes.once(made)
    assert await sets.pods() == []


def lease(holder: str) -> Document:
    renewed = datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
    spec = {"holderIdentity": holder, "renewTime": renewed, "leaseDurationSeconds": 15}
    return {"metadata": {"name": LEASE}, "spec": spec}


@pytest.mark.slow
async def test_a_controller_that_renews_its_lease_runs_them(
    kube_server: KubeServer, sets: Sets, cluster: KubeCluster
) -> None:
    """And once the lease is given up they are taken over."""
    leases = path_of("leases", sets.namespace, group="coordination.k8s.io")
    assert (await sets.calls.post(leases, lease("lws-0"))).code == 201
    made = await sets.create(leader_worker_set())
    async with kube_substrate(
        kube_server, sets.namespace, leader_worker_namespace=sets.namespace
    ) as substrate:
        passes = Passes(substrate)
        await seen(passes, made)
        assert "lws-0 renews" in substrate.refusal(parse_workload(made))
        await passes.once(made)
        assert await sets.pods() == []
        assert (await sets.calls.merge(f"{leases}/{LEASE}", {"spec": {"holderIdentity": ""}})).ok
        await eventually(partial(is_free, passes, made), 15)
        await settle(passes, sets, cluster, pods=2)


async def is_free(passes: Passes, document: Document) -> bool:
    return passes.substrate.refusal(parse_workload(document)) == ""


async def test_a_controller_shows_by_a_status_that_it_wrote(
    kube_server: KubeServer, passes: Passes, sets: Sets
) -> None:
    """As without leader election; our own status is no sign."""
    made = await sets.create(leader_worker_set())
    await seen(passes, made)
    assert await is_free(passes, made)
    await passes.once(made)
    assert await is_free(passes, await sets.now())
    status = {"status": {"readyReplicas": 7}}
    answer = await sets.calls.merge(sets.path("lws", "status"), status, fieldManager="manager")
    assert answer.ok, answer

    async def is_told() -> bool:
        said = passes.substrate.refusal(parse_workload(made))
        return "manager writes the status of lws" in said

    await eventually(is_told)
    for setting, said in (("platform", ""), ("controller", "settings")):
        async with kube_substrate(kube_server, sets.namespace, leader_worker_sets=setting) as other:
            await seen(Passes(other), await sets.now())
            refusal = other.refusal(parse_workload(made))
            assert said in refusal
            assert bool(said) is bool(refusal)


async def test_pods_that_kthena_made_of_one_are_not_doubled(passes: Passes, sets: Sets) -> None:
    """Its bridge makes a ModelServing of the same name, which goes on running the fleet."""
    made = await sets.create(leader_worker_set())
    fleet = KubeFleet(sets.calls, sets.namespace)
    bridged = serving("lws")
    bridged["metadata"]["ownerReferences"] = [
        {
            "apiVersion": f"{GROUP}/v1",
            "kind": "LeaderWorkerSet",
            "name": "lws",
            "uid": made["metadata"]["uid"],
            "controller": True,
        }
    ]
    other = await fleet.create(bridged)
    await seen(passes, made)
    await seen(passes, other)
    assert "ModelServing that was made from it" in passes.substrate.refusal(parse_workload(made))
    assert passes.substrate.refusal(parse_workload(other)) == ""
    await passes.once(made)
    assert await sets.pods() == []
