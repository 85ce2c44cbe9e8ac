"""Groups of inference Services on a cluster: LeaderWorkerSets where somebody runs those."""

import contextlib
import uuid
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import pytest

from inferbus_contracts.leader_worker_sets import LEASE, LeaderWorkerSets
from inferbus_contracts.resources.kinds import MODEL_SERVING
from inferbus_spec_watcher.kubernetes_groups import LOOK_SECONDS
from tests.kube.short_kinds import open_model, playground
from tests.support.eventually import eventually
from tests.support.kube import KubeServer
from tests.support.kube_calls import KubeCalls, path_of
from tests.support.kube_cluster import KubeCluster
from tests.support.kube_passes import Passes, kube_substrate
from tests.support.kube_watcher import (
    LEADER_WORKER_SETS,
    Cluster,
    cluster_watcher,
    conditions,
    create,
    definitions,
    install,
    read,
    saying,
    there,
)
from tests.support.nats import NatsServer

AUTO, PLATFORM = LeaderWorkerSets.AUTO, LeaderWorkerSets.PLATFORM
EXPANDED = ("True", "ChildrenRendered")
DEFINITION = path_of(
    "customresourcedefinitions",
    name=LEADER_WORKER_SETS["metadata"]["name"],
    group="apiextensions.k8s.io",
)
LOOKED = 4 * LOOK_SECONDS


async def play(calls: KubeCalls, namespace: str, name: str = "play") -> None:
    model = f"m-{uuid.uuid4().hex[:8]}"
    await create(calls, open_model(model), namespace)
    await create(calls, playground(name, model), namespace)


@contextlib.asynccontextmanager
async def watching(
    nats: NatsServer, server: KubeServer, setting: LeaderWorkerSets = AUTO, **options: Any
) -> AsyncIterator[KubeCalls]:
    """A watcher of the namespace default, where the lease is too, and calls of an admin."""
    async with (
        server.calls() as calls,
        cluster_watcher(
            nats,
            server,
            leader_worker_sets=setting,
            leader_worker_namespace="default",
            **options,
        ),
    ):
        yield calls


async def renew(calls: KubeCalls, holder: str = "lws-0") -> None:
    """The controller is there; it goes with the lease."""
    renewed = datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
    lease = {"holderIdentity": holder, "renewTime": renewed, "leaseDurationSeconds": 3600}
    leases = path_of("leases", "default", group="coordination.k8s.io")
    body = {"metadata": {"name": LEASE}, "spec": lease}
    answer = await calls.post(leases, body)
    if answer.code == 409:
        answer = await calls.merge(f"{leases}/{LEASE}", {"spec": lease})
    assert answer.ok, answer


async def test_without_their_controller_groups_run_natively_and_look_the_same(
    cluster: Cluster,
) -> None:
    """Up to the pods, with the rights that the two services have."""
    watcher = cluster_watcher(
        cluster.nats,
        cluster.server,
        cluster.namespace,
        leader_worker_sets=AUTO,
        leader_worker_namespace=cluster.namespace,
    )
    machines = KubeCluster(cluster.calls, cluster.namespace)
    async with watcher, kube_substrate(cluster.server, cluster.namespace) as substrate:
        await play(cluster.calls, cluster.namespace)
        await there(cluster.calls, MODEL_SERVING, cluster.namespace, "play")
        passes = Passes(substrate)

        async def runs() -> bool:
            made = await there(cluster.calls, MODEL_SERVING, cluster.namespace, "play")
            plan = await passes.once(made)
            await machines.step()
            return not plan.actions and conditions(made)["Available"][0] == "True"

        await eventually(runs)
        (pod,) = (await cluster.calls.get(path_of("pods", cluster.namespace))).items
        assert pod["metadata"]["name"] == "play-0"
        front = await there(cluster.calls, "CoreService", cluster.namespace, "play-lb")
        assert front["spec"]["selector"].items() <= pod["metadata"]["labels"].items()
        for kind, ready in (("Service", "ServiceReady"), ("Playground", "PlaygroundReady")):
            told = await saying(
                cluster.calls, kind, cluster.namespace, "play", Available=("True", ready)
            )
            assert told["status"]["replicas"] == 1
            assert "worker-index=0" in told["status"]["selector"]
        assert await read(cluster.calls, "LeaderWorkerSet", cluster.namespace, "play") is None


@pytest.mark.slow
async def test_what_runs_goes_on_when_the_kind_and_its_controller_come_and_go(
    nats_server: NatsServer, fake_kube_server: KubeServer
) -> None:
    """The kind without a controller changes nothing; each new Service gets what somebody runs."""
    async with fake_kube_server.calls() as calls:
        await install(calls, *definitions())
    async with watching(nats_server, fake_kube_server) as calls:
        await play(calls, "default", "first")
        native = await there(calls, MODEL_SERVING, "default", "first")
        await install(calls, LEADER_WORKER_SETS)
        await renew(calls)
        await eventually(lambda: made_as(calls, "LeaderWorkerSet"), LOOKED)
        assert await uid(calls, MODEL_SERVING, "first") == native["metadata"]["uid"]
        assert await read(calls, "LeaderWorkerSet", "default", "first") is None

        await play(calls, "default", "second")
        groups = await there(calls, "LeaderWorkerSet", "default", "second")
        await renew(calls, holder="")
        said = ("True", "GroupsUnattended")
        await eventually(lambda: says(calls, "second", GroupsUnattended=said), LOOKED)
        assert await uid(calls, "LeaderWorkerSet", "second") == groups["metadata"]["uid"]
        assert await read(calls, MODEL_SERVING, "default", "second") is None


@pytest.mark.slow
async def test_groups_whose_kind_was_removed_come_up_natively(
    nats_server: NatsServer, fake_kube_server: KubeServer
) -> None:
    """With a definition go its objects, and with those their pods: nothing is left to keep."""
    async with fake_kube_server.calls() as calls:
        await install(calls, *definitions(), LEADER_WORKER_SETS)
        await renew(calls)
    async with watching(nats_server, fake_kube_server) as calls:
        await play(calls, "default")
        await there(calls, "LeaderWorkerSet", "default", "play")
        assert (await calls.delete(DEFINITION)).ok
        await eventually(lambda: read(calls, MODEL_SERVING, "default", "play"), LOOKED)
        await saying(calls, "Service", "default", "play", Expanded=EXPANDED)


async def test_a_setting_that_names_who_runs_them_moves_groups(
    nats_server: NatsServer, fake_kube_server: KubeServer
) -> None:
    async with fake_kube_server.calls() as calls:
        await install(calls, *definitions(), LEADER_WORKER_SETS)
        await renew(calls)
    async with watching(nats_server, fake_kube_server) as calls:
        await play(calls, "default")
        await there(calls, "LeaderWorkerSet", "default", "play")
    async with watching(nats_server, fake_kube_server, PLATFORM) as calls:
        await there(calls, MODEL_SERVING, "default", "play")

        async def is_gone() -> bool:
            return await read(calls, "LeaderWorkerSet", "default", "play") is None

        await eventually(is_gone)


async def made_as(calls: KubeCalls, kind: str) -> bool:
    """Whether the groups of a new Service are of a kind."""
    name = f"probe-{uuid.uuid4().hex[:6]}"
    await play(calls, "default", name)
    await saying(calls, "Service", "default", name, Expanded=EXPANDED)
    return await read(calls, kind, "default", name) is not None


async def says(calls: KubeCalls, name: str, **wanted: tuple[str, str]) -> bool:
    found = await read(calls, "Service", "default", name)
    return found is not None and wanted.items() <= conditions(found).items()


async def uid(calls: KubeCalls, kind: str, name: str) -> str:
    found = await there(calls, kind, "default", name)
    return str(found["metadata"]["uid"])
