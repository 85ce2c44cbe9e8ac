"""Installed over a running fleet of Kthena's own controllers: no pod is touched, all goes on.

What such fleets look like: `tests/support/kthena_fleet.py`.
"""

import contextlib
import secrets
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from inferbus_contracts.services import Service
from inferbus_workload_reconciler.policy_parsing import parse_workload
from tests.fakes.kubernetes import FakeKubernetes
from tests.fakes.kubernetes.crds import pod_group_definition
from tests.support.eventually import eventually
from tests.support.kthena_fleet import (
    ENTRY_LABEL,
    GROUP_LABEL,
    NAME,
    NEW,
    OLD,
    REVISION_LABEL,
    ROLE_LABEL,
    KthenaFleet,
)
from tests.support.kube import KubeServer
from tests.support.kube_apiserver import KubeApiServer
from tests.support.kube_calls import KubeCalls, path_of
from tests.support.kube_cluster import KubeCluster
from tests.support.kube_fleet import KubeFleet, install_definitions
from tests.support.kube_manifests import governed_apiserver
from tests.support.kube_passes import Passes, kube_substrate
from tests.support.kube_watcher import install

Document = dict[str, Any]

MOST_PASSES = 60
QUIET_PASSES = 3

FLEETS = {
    "first, gang, volcano of its time": (KthenaFleet(first=True, gang=True), False),
    "first, gang, newer volcano": (KthenaFleet(first=True, gang=True), True),
    "first, no gang": (KthenaFleet(first=True), True),
    "first, no volcano": (
        KthenaFleet(first=True, scheduler="default-scheduler", pod_groups=False),
        None,
    ),
    "newest, gang": (KthenaFleet(first=False, gang=True), True),
    "newest, no gang": (KthenaFleet(first=False), True),
    "newest, volcano missing": (KthenaFleet(first=False, pod_groups=False), None),
    "newest, no volcano": (
        KthenaFleet(first=False, scheduler="default-scheduler", pod_groups=False),
        None,
    ),
    "newest, rolling, gang": (KthenaFleet(first=False, gang=True, revisions=(OLD, OLD, NEW)), True),
    "newest, rolling, no volcano": (
        KthenaFleet(
            first=False,
            scheduler="default-scheduler",
            pod_groups=False,
            revisions=(OLD, NEW, NEW),
        ),
        None,
    ),
}
"""With each: whether Volcano knows subgroups; None without Volcano."""

ON_REAL = ("first, gang, newer volcano", "newest, rolling, gang", "newest, no volcano")


@pytest.fixture(scope="module")
def volcano_apiserver() -> Iterator[KubeApiServer]:
    """A real API server of this module alone: it serves PodGroups."""
    with governed_apiserver() as server:
        yield server


class Cluster:
    """An API server with a fleet on it, and what happens around it."""

    def __init__(self, server: KubeServer, calls: KubeCalls, namespace: str) -> None:
        self.server = server
        self.calls = calls
        self.fleet = KubeFleet(calls, namespace)
        self.machines = KubeCluster(calls, namespace, collects=False)

    async def install(self, kthena: KthenaFleet) -> Document:
        await kthena.install(self.calls, self.fleet.namespace)
        await self.machines.settle()
        return await self.fleet.serving(NAME)

    async def settle(self, passes: Passes) -> Document:
        """Passes and machines in turn until nothing happens any more; the object afterwards."""
        quiet = 0
        for _ in range(MOST_PASSES):
            await seen(passes, self.fleet)
            await passes.once(await self.fleet.serving(NAME))
            acts = await self.machines.step()
            quiet = 0 if acts or passes.done else quiet + 1
            if quiet == QUIET_PASSES:
                return await self.fleet.serving(NAME)
        raise AssertionError(f"not at rest: {passes.done}")

    async def selected(self) -> dict[str, list[str]]:
        """The pods that each service selects."""
        pods = await self.pods()
        services = (await self.calls.get(path_of("services", self.fleet.namespace))).items
        return {
            service["metadata"]["name"]: [
                pod["metadata"]["name"]
                for pod in pods
                if service["spec"]["selector"].items() <= pod["metadata"]["labels"].items()
            ]
            for service in services
        }

    async def pods(self) -> list[Document]:
        return await self.fleet.all("pods")


async def seen(passes: Passes, fleet: KubeFleet) -> None:
    """Wait until the substrate shows the pods as they are."""

    async def is_seen() -> bool:
        workload = parse_workload(await fleet.serving(NAME))
        around = (await passes.substrate.observe(workload)).observed
        stored = {one["metadata"]["name"]: one["metadata"] for one in await fleet.all("pods")}
        shown = {pod.name: (pod.uid, pod.deleting) for pod in around.pods}
        return shown == {
            name: (metadata["uid"], "deletionTimestamp" in metadata)
            for name, metadata in stored.items()
        }

    await eventually(is_seen)


def _cases() -> Iterator[Any]:
    for name in FLEETS:
        yield pytest.param(("fake", name), id=f"fake-{name}")
    for name in ON_REAL:
        marks = [pytest.mark.slow, pytest.mark.kube]
        yield pytest.param(("real", name), id=f"real-{name}", marks=marks)


@pytest_asyncio.fixture(params=[*_cases()])
async def taken(
    request: pytest.FixtureRequest, tmp_path: Path
) -> AsyncIterator[tuple[Cluster, KthenaFleet]]:
    """A cluster with a fleet on it."""
    kind, name = request.param
    kthena, subgroups = FLEETS[name]
    async with contextlib.AsyncExitStack() as stack:
        if kind == "real":
            real = request.getfixturevalue("volcano_apiserver")
            ca_file = real.certificate_authority
            server = KubeServer("real", real.url, real.tokens, tmp_path, ca_file=ca_file)
            subgroups = True
        else:
            fake = await stack.enter_async_context(FakeKubernetes(Service))
            server = KubeServer("fake", fake.url, fake.tokens, tmp_path, fake=fake)
        calls = await stack.enter_async_context(server.calls())
        await install_definitions(calls)
        if subgroups is not None:
            await install(calls, pod_group_definition(subgroups=subgroups))
        namespace = f"test-{secrets.token_hex(5)}"
        answer = await calls.post("/api/v1/namespaces", {"metadata": {"name": namespace}})
        assert answer.code == 201, answer
        cluster = Cluster(server, calls, namespace)
        await cluster.install(kthena)
        yield cluster, kthena


def uids(pods: list[Document]) -> dict[str, str]:
    return {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in pods}


async def test_a_fleet_of_kthena_s_is_taken_over_untouched(
    taken: tuple[Cluster, KthenaFleet],
) -> None:
    cluster, kthena = taken
    before = await cluster.pods()
    groups = len(kthena.revisions)
    async with kube_substrate(cluster.server, cluster.fleet.namespace) as substrate:
        document = await cluster.settle(Passes(substrate))
    assert await cluster.pods() == before, "not even patched"
    status = document["status"]
    assert (status["replicas"], status["availableReplicas"]) == (groups, groups)
    assert status["updatedReplicas"] == kthena.revisions.count(kthena.revisions[-1])
    assert status["updateRevision"] == kthena.revisions[-1]
    assert status["currentRevision"] == kthena.revisions[0]
    assert status["observedGeneration"] == 1
    names = [f"{NAME}-{group}-prefill-0-0" for group in range(groups)]
    assert await cluster.selected() == {name: [name] for name in names}
    snapshots = await cluster.fleet.names("controllerrevisions", "apps")
    assert snapshots == sorted(f"{NAME}-{one}" for one in set(kthena.revisions))


@pytest.mark.slow
async def test_a_fleet_that_was_taken_over_is_left_alone_afterwards(
    taken: tuple[Cluster, KthenaFleet],
) -> None:
    """A second start finds nothing to do: neither objects nor their status are written."""
    cluster, _ = taken
    async with kube_substrate(cluster.server, cluster.fleet.namespace) as substrate:
        before = await cluster.settle(Passes(substrate))
    services = await cluster.selected()
    async with kube_substrate(cluster.server, cluster.fleet.namespace) as substrate:
        passes = Passes(substrate)
        await seen(passes, cluster.fleet)
        plan = await passes.once(await cluster.fleet.serving(NAME))
    assert plan.actions == ()
    assert await cluster.fleet.serving(NAME) == before
    assert await cluster.selected() == services


async def test_a_fleet_that_was_taken_over_scales_and_rolls(
    taken: tuple[Cluster, KthenaFleet],
) -> None:
    cluster, kthena = taken
    before, groups = uids(await cluster.pods()), len(kthena.revisions)
    async with kube_substrate(cluster.server, cluster.fleet.namespace) as substrate:
        passes = Passes(substrate)
        await cluster.settle(passes)
        await cluster.fleet.change(NAME, {"replicas": groups + 1})
        status = (await cluster.settle(passes))["status"]
        assert status["availableReplicas"] == groups + 1
        more = uids(await cluster.pods())
        assert before.items() <= more.items(), "those of before stay"
        assert len(more) == len(before) + 5
        await cluster.fleet.change(NAME, {"replicas": groups})
        await cluster.settle(passes)
        assert uids(await cluster.pods()) == before

        template = kthena.serving()["spec"]["template"]
        for role in template["roles"]:
            for part in ("entryTemplate", "workerTemplate"):
                for container in role.get(part, {"spec": {"containers": []}})["spec"]["containers"]:
                    container["image"] = "vllm:3"
        strategy = {"rollingUpdateConfiguration": {"partition": None, "maxUnavailable": 1}}
        await cluster.fleet.change(NAME, {"template": template, "rolloutStrategy": strategy})
        status = (await cluster.settle(passes))["status"]
    pods = await cluster.pods()
    assert {pod["spec"]["containers"][0]["image"] for pod in pods} == {"vllm:3"}
    assert uids(pods).keys() == before.keys()
    assert not uids(pods).items() & before.items()
    assert status["currentRevision"] == status["updateRevision"] not in (OLD, NEW)
    assert (status["availableReplicas"], status["updatedReplicas"]) == (groups, groups)
    names = [f"{NAME}-{group}-prefill-0-0" for group in range(groups)]
    assert await cluster.selected() == {name: [name] for name in names}


@pytest.mark.slow
async def test_a_pod_of_a_fleet_that_was_taken_over_is_replaced_as_it_was(
    taken: tuple[Cluster, KthenaFleet],
) -> None:
    """A group that a partition holds back comes again from its own revision."""
    cluster, kthena = taken
    before = await cluster.pods()
    async with kube_substrate(cluster.server, cluster.fleet.namespace) as substrate:
        passes = Passes(substrate)
        await cluster.settle(passes)
        await cluster.fleet.delete_pod(f"{NAME}-0-decode-1-0")
        await cluster.settle(passes)
    after = await cluster.pods()
    lost = set(uids(before).items()) - set(uids(after).items())
    assert {name for name, _ in lost} == {f"{NAME}-0-decode-1-0"}
    (pod,) = [one for one in after if one["metadata"]["name"] == f"{NAME}-0-decode-1-0"]
    labels = pod["metadata"]["labels"]
    assert (labels[GROUP_LABEL], labels[ROLE_LABEL]) == (f"{NAME}-0", "decode")
    assert (labels[REVISION_LABEL], labels[ENTRY_LABEL]) == (kthena.revisions[0], "true")


@pytest.mark.parametrize("taken", [("fake", "newest, gang")], indirect=True)
@pytest.mark.parametrize("shown", ["pod", "lease"])
async def test_beside_kthena_s_living_controllers_it_only_looks(
    taken: tuple[Cluster, KthenaFleet], shown: str
) -> None:
    cluster, _ = taken
    server, namespace = cluster.server, cluster.fleet.namespace
    assert server.fake is not None
    place, controller = _controller(shown, namespace)
    assert (await cluster.calls.post(place, controller)).code == 201
    user = Service.WORKLOAD_RECONCILER
    async with kube_substrate(server, namespace, user=user, kthena_namespace=namespace) as sub:
        passes = Passes(sub)
        document = await cluster.fleet.change(NAME, {"replicas": 5})
        await seen(passes, cluster.fleet)
        plan = await passes.once(document)
        assert plan.actions, "there would be much to do"
        refusal = sub.missing()["other controllers"]
        assert "scale kthena-controller-manager to 0" in refusal
        assert ("pod kthena runs" if shown == "pod" else "renews the lease") in refusal
        assert not [call for call in server.fake.record.writes() if call.user == user]


def _controller(shown: str, namespace: str) -> tuple[str, Document]:
    """How Kthena's controllers show: by a pod, or a lease that they renew."""
    if shown == "pod":
        return path_of("pods", namespace), {
            "metadata": {
                "name": "kthena",
                "labels": {"app.kubernetes.io/component": "kthena-controller-manager"},
            },
            "spec": {"containers": [{"name": "c", "image": "i"}]},
        }
    return path_of("leases", namespace, group="coordination.k8s.io"), {
        "metadata": {"name": "lease.kthena.controller-manager"},
        "spec": {
            "holderIdentity": "kthena-0",
            "leaseDurationSeconds": 15,
            "renewTime": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        },
    }
