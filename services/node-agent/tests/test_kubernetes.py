"""The agent as a kubelet: pods of an API server, their status and their end told to it."""

import asyncio
import contextlib
import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from node_agent_builders import container, pod
from node_agent_world import World

from inferbus_contracts.errors import ErrorCode, ProblemsError
from inferbus_contracts.resources.scalars import parse_quantity
from inferbus_node_agent.adapters_kubernetes import (
    ApiStatuses,
    wanted_part,
)
from inferbus_node_agent.adapters_kubernetes_node import NodeObject
from inferbus_node_agent.policy_environment import NodeFacts
from inferbus_node_agent.ports import Outside
from inferbus_node_agent.wiring_kubernetes import outside_of
from inferbus_shared.clock import SystemClock
from inferbus_shared.kube.client import KubeClient
from inferbus_shared.kube.problems import KubeError
from inferbus_shared.kube.reflector import Reflector
from inferbus_shared.kube.resources import CONFIG_MAP, NODE, POD, SECRET
from inferbus_shared.kube.settings import KubeSettings
from inferbus_shared.kube.transport import MERGE_PATCH, STRATEGIC_MERGE_PATCH
from inferbus_shared.processes.identity import kill_group
from tests.fakes.kubernetes import Answer
from tests.support.eventually import eventually
from tests.support.kube import REAL, KubeServer
from tests.support.kube_apiserver import running_apiserver
from tests.support.kube_own import OwnServer

Document = dict[str, Any]

SLEEP = ("sleep", "600")
GRACE_SECONDS = 1


class Cluster(World):
    """An agent whose outside is an API server, and a client beside it that plays everybody else."""

    def __init__(
        self, directory: Path, fork_server: Path, client: KubeClient, namespace: str
    ) -> None:
        super().__init__(directory, fork_server)
        self.client = client
        self.namespace = namespace
        self.node = f"node-{namespace}"
        self._following: asyncio.Task[None] | None = None

    def outside(self) -> Outside:
        reflector = Reflector(self.client, POD, read=wanted_part)
        self._following = asyncio.create_task(reflector.run())
        return outside_of(self.client, reflector, self.node, self.models)

    async def run(self) -> None:
        await self.start(node=self.node, restart_backoff_seconds=0.1)

    async def stop(self) -> None:
        await super().stop()
        assert self._following is not None
        self._following.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._following

    async def create(self, document: Document, node: str = "") -> str:
        """A pod bound to a node, this one unless another is named; its uid."""
        metadata = {"name": document["metadata"]["name"], "namespace": self.namespace}
        spec = {
            "nodeName": node or self.node,
            "terminationGracePeriodSeconds": GRACE_SECONDS,
            **document["spec"],
        }
        made = await self.client.create(POD, document | {"metadata": metadata, "spec": spec})
        return str(made["metadata"]["uid"])

    async def delete(self, name: str, **options: Any) -> None:
        await self.client.delete(POD, self.namespace, name, **options)

    async def get(self, name: str) -> Document | None:
        return await self.client.get(POD, self.namespace, name)

    async def ready_pod(self, name: str) -> Document | None:
        """The pod if the API server shows it as ready."""
        found = await self.get(name)
        conditions = (found or {}).get("status", {}).get("conditions", ())
        ready = any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)
        return found if ready else None

    async def until_ready_pod(self, name: str) -> Document:
        found = await eventually(lambda: self.ready_pod(name), 30, f"{name} is ready")
        assert found is not None
        return found

    async def until_no_pod(self, name: str) -> None:
        async def gone() -> bool:
            return await self.get(name) is None

        await eventually(gone, 30, f"{name} is gone")


@pytest.fixture
async def client(kube_server: KubeServer) -> AsyncIterator[KubeClient]:
    async with KubeClient(KubeSettings(**kube_server.settings())) as client:
        yield client


@pytest.fixture
async def cluster(
    tmp_path: Path, fork_server: Path, client: KubeClient, namespace: str
) -> AsyncIterator[Cluster]:
    world = Cluster(tmp_path, fork_server, client, namespace)
    try:
        yield world
    finally:
        await world.clean_up()


def named(api_version: str, kind: str, name: str, **metadata: str) -> Document:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name, **metadata}}


async def test_a_bound_pod_runs_and_is_told_so_and_no_other_does(cluster: Cluster) -> None:
    await cluster.run()
    await cluster.create(pod("elsewhere", container("main", *SLEEP)), node="another")
    uid = await cluster.create(pod("here", container("main", *SLEEP)))
    told = await cluster.until_ready_pod("here")
    status = told["status"]
    assert status["phase"] == "Running"
    assert status["podIP"].startswith("127.")
    assert status["containerStatuses"][0]["state"].keys() == {"running"}
    assert [one.parent.parent.parent.name for one in cluster.traces()] == [uid]


async def test_a_deleted_pod_is_stopped_and_then_its_object_goes(cluster: Cluster) -> None:
    await cluster.run()
    await cluster.create(pod("here", container("main", *SLEEP)))
    await cluster.until_ready_pod("here")
    (process,) = cluster.running()
    await cluster.delete("here")
    await cluster.until_no_pod("here")
    assert cluster.running() == []
    assert process is not None


async def test_a_pod_that_is_removed_by_force_is_stopped_too(cluster: Cluster) -> None:
    await cluster.run()
    await cluster.create(pod("here", container("main", *SLEEP)))
    await cluster.until_ready_pod("here")
    await cluster.delete("here", grace_period_seconds=0)
    await eventually(lambda: not cluster.running(), 30)


async def test_a_status_is_written_only_when_it_changes(cluster: Cluster) -> None:
    await cluster.run()
    await cluster.create(pod("quiet", container("main", *SLEEP)))
    await cluster.until_ready_pod("quiet")
    marked = await cluster.client.patch(
        POD,
        cluster.namespace,
        "quiet",
        {"metadata": {"annotations": {"somebody": "else"}}},
        content_type=MERGE_PATCH,
    )
    await cluster.create(pod("later", container("main", *SLEEP)))
    await cluster.until_ready_pod("later")
    now = await cluster.get("quiet")
    assert now is not None
    assert now["metadata"]["resourceVersion"] == marked["metadata"]["resourceVersion"]


async def test_what_others_tell_of_a_pod_stays(cluster: Cluster) -> None:
    await cluster.run()
    await cluster.create(pod("here", container("main", *SLEEP)))
    await cluster.until_ready_pod("here")
    gate = {"type": "example.com/gate", "status": "True"}
    await cluster.client.patch(
        POD,
        cluster.namespace,
        "here",
        {"status": {"conditions": [gate], "message": "somebody's"}},
        content_type=STRATEGIC_MERGE_PATCH,
        subresource="status",
    )
    (process,) = cluster.running()
    kill_group(process)

    async def restarted() -> Document | None:
        found = await cluster.ready_pod("here")
        again = found and found["status"]["containerStatuses"][0]["restartCount"] == 1
        return found if again else None

    now = await eventually(restarted, 30)
    assert now is not None
    assert "example.com/gate" in [one["type"] for one in now["status"]["conditions"]]
    assert "message" not in now["status"]


async def test_nothing_is_written_about_another_pod_of_the_same_name(cluster: Cluster) -> None:
    document = pod("here", container("main", *SLEEP))
    first = await cluster.create(document)
    await cluster.delete("here", grace_period_seconds=0)
    await cluster.create(document)
    key, sink = f"Pod/{cluster.namespace}/here", ApiStatuses(cluster.client)
    with pytest.raises(ProblemsError) as caught:
        await sink.report(key, first, {"phase": "Failed"})
    assert caught.value.problems[0].code is ErrorCode.CONFLICT
    await sink.finalise(key, first)
    now = await cluster.get("here")
    assert now is not None
    assert now["status"].get("phase") == "Pending"
    assert "deletionTimestamp" not in now["metadata"]


async def test_a_status_that_the_api_server_refuses_is_told_as_that(
    cluster: Cluster, kube_server: KubeServer
) -> None:
    uid = await cluster.create(pod("here", container("main", *SLEEP)))
    if kube_server.fake is not None:
        kube_server.fake.faults.add(Answer(422, "spec.conditions: no list"), resource="pods")
    with pytest.raises(KubeError) as caught:
        await ApiStatuses(cluster.client).report(
            f"Pod/{cluster.namespace}/here", uid, {"conditions": "none"}
        )
    assert caught.value.code is ErrorCode.KUBE_INVALID


async def test_a_pod_that_is_gone_is_nobody_to_tell_of(cluster: Cluster) -> None:
    key, sink = f"Pod/{cluster.namespace}/nobody", ApiStatuses(cluster.client)
    with pytest.raises(ProblemsError) as caught:
        await sink.report(key, str(uuid.uuid4()), {"phase": "Failed"})
    assert caught.value.problems[0].code is ErrorCode.NOT_FOUND
    await sink.finalise(key, str(uuid.uuid4()))


async def test_a_pod_made_again_under_its_name_is_run_anew(cluster: Cluster) -> None:
    await cluster.run()
    document = pod("here", container("main", *SLEEP))
    first = await cluster.create(document)
    await cluster.until_ready_pod("here")
    await cluster.delete("here", grace_period_seconds=0)
    second = await cluster.create(document)
    told = await cluster.until_ready_pod("here")
    assert told["metadata"]["uid"] == second
    await eventually(lambda: not (cluster.directory / "run" / first).exists(), 30)
    assert len(cluster.running()) == 1


async def test_configuration_and_secrets_come_from_the_api_server(cluster: Cluster) -> None:
    space = {"namespace": cluster.namespace}
    await cluster.client.create(
        CONFIG_MAP, named("v1", "ConfigMap", "plain", **space) | {"data": {"COLOUR": "blue"}}
    )
    await cluster.client.create(
        SECRET, named("v1", "Secret", "hidden", **space) | {"stringData": {"token": "s3cret"}}
    )
    environment = [
        {
            "name": "TOKEN",
            "valueFrom": {"secretKeyRef": {"name": "hidden", "key": "token"}},
        },
        {"name": "WHERE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
    ]
    script = "echo $COLOUR $TOKEN $WHERE; exec sleep 600"
    main = container(
        "main",
        "sh",
        "-c",
        script,
        env=environment,
        envFrom=[{"configMapRef": {"name": "plain"}}],
    )
    await cluster.run()
    uid = await cluster.create(pod("here", main))
    await cluster.until_ready_pod("here")
    said = f"blue s3cret {cluster.node}"
    await eventually(lambda: said in cluster.log(uid), 30)
    kept = list((cluster.directory / "run" / uid).glob("*.json"))
    assert kept
    assert all("s3cret" not in path.read_text() for path in kept)


async def test_a_missing_secret_is_named_until_it_is_there(cluster: Cluster) -> None:
    key = {"secretKeyRef": {"name": "hidden", "key": "token"}}
    main = container("main", *SLEEP, env=[{"name": "TOKEN", "valueFrom": key}])
    await cluster.run()
    await cluster.create(pod("here", main))

    async def told() -> bool:
        found = await cluster.get("here") or {}
        return "there is no Secret 'hidden'" in str(found["status"])

    await eventually(told, 30)
    document = named("v1", "Secret", "hidden", namespace=cluster.namespace)
    await cluster.client.create(SECRET, document | {"stringData": {"token": "x"}})
    await cluster.until_ready_pod("here")


async def test_a_new_agent_finds_what_happened_while_there_was_none(cluster: Cluster) -> None:
    await cluster.run()
    for name in ("stays", "goes"):
        await cluster.create(pod(name, container("main", *SLEEP)))
    before = await cluster.until_ready_pod("stays")
    await cluster.until_ready_pod("goes")
    await cluster.stop()
    assert len(cluster.running()) == 2
    await cluster.delete("goes")
    await cluster.create(pod("comes", container("main", *SLEEP)))
    await cluster.run()
    await cluster.until_no_pod("goes")
    await cluster.until_ready_pod("comes")
    after = await cluster.get("stays")
    assert after is not None
    assert after["status"]["containerStatuses"] == before["status"]["containerStatuses"]
    assert len(cluster.running()) == 2


@pytest.fixture(params=["fake", REAL])
async def own_server(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[OwnServer]:
    if request.param == "fake":
        async with OwnServer.of_fake(tmp_path) as server:
            yield server
        return
    with running_apiserver() as real:
        yield OwnServer.of_real(real, tmp_path)


@pytest.fixture
async def own_cluster(
    own_server: OwnServer, tmp_path: Path, fork_server: Path
) -> AsyncIterator[Cluster]:
    async with KubeClient(KubeSettings(**own_server.server.settings())) as client:
        world = Cluster(tmp_path / "node", fork_server, client, "default")
        try:
            yield world
        finally:
            await world.clean_up()


async def test_while_the_api_server_is_away_the_pods_stay_and_afterwards_all_is_told(
    own_cluster: Cluster, own_server: OwnServer
) -> None:
    cluster = own_cluster
    await cluster.run()
    uid = await cluster.create(pod("here", container("main", *SLEEP)))
    await cluster.until_ready_pod("here")
    (before,) = cluster.running()
    await own_server.away()
    await cluster.stop()
    await cluster.run()
    await eventually(lambda: cluster.agent is not None and cluster.agent.pods == 1)
    assert cluster.running() == [before]
    kill_group(before)
    await eventually(lambda: cluster.identity(uid, attempt=1), 30)
    await own_server.back()

    async def told() -> bool:
        found = await cluster.ready_pod("here")
        return found is not None and found["status"]["containerStatuses"][0]["restartCount"] == 1

    await eventually(told, 60)
    await cluster.delete("here")
    await cluster.until_no_pod("here")
    assert cluster.running() == []


# --- the node's own object


@pytest.fixture
def node(cluster: Cluster) -> NodeObject:
    return NodeObject(cluster.client, NodeFacts(cluster.node, "127.0.0.1", 2, 2**30), SystemClock())


async def test_the_node_tells_that_it_is_there(cluster: Cluster, node: NodeObject) -> None:
    await node.beat()
    found = await cluster.client.get(NODE, "", cluster.node)
    assert found is not None
    (ready,) = [one for one in found["status"]["conditions"] if one["type"] == "Ready"]
    assert ready["status"] == "True"
    assert parse_quantity(found["status"]["allocatable"]["memory"]) == 2**30


async def test_a_node_that_was_taken_for_lost_says_that_it_is_not(
    cluster: Cluster, node: NodeObject
) -> None:
    await node.beat()
    lost = {"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown"}
    await cluster.client.patch(
        NODE,
        "",
        cluster.node,
        {"status": {"conditions": [lost]}},
        content_type=MERGE_PATCH,
        subresource="status",
        manager="node-controller",
    )
    await node.beat()
    found = await cluster.client.get(NODE, "", cluster.node)
    assert found is not None
    assert [one["status"] for one in found["status"]["conditions"]] == ["True"]


async def test_a_deleted_node_stays_deleted_until_the_agent_starts_anew(
    cluster: Cluster, node: NodeObject
) -> None:
    await node.beat()
    await cluster.client.delete(NODE, "", cluster.node)
    await node.beat()
    assert await cluster.client.get(NODE, "", cluster.node) is None
    facts = NodeFacts(cluster.node, "127.0.0.1", 2, 2**30)
    await NodeObject(cluster.client, facts, SystemClock()).beat()
    assert await cluster.client.get(NODE, "", cluster.node) is not None
