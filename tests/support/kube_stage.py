"""An API server with the reconciler's substrate on it, for tests that aren't coroutines.

The server's clients live on an event loop in a thread of their own. One stage serves one world
after the other: each has a namespace of its own, and what a cluster has only once (a node, the
definition of PodGroups) is made to be as the world says before it is looked at.
"""

import asyncio
import itertools
import threading
from collections.abc import Callable, Coroutine, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Final, TypeVar

import yaml

from inferbus_contracts.keys import NO_NAMESPACE, ObjectKey
from inferbus_contracts.resources.kinds import MODEL_SERVING
from inferbus_contracts.services import Service
from inferbus_shared.clock import SystemClock
from inferbus_shared.kube.client import KubeClient
from inferbus_shared.kube.resources import NODE
from inferbus_shared.kube.settings import KubeSettings
from inferbus_workload_reconciler.adapters_kubernetes import KubernetesSubstrate
from inferbus_workload_reconciler.observed import Cluster
from inferbus_workload_reconciler.policy_kept import OUT_OF_SERVICE
from inferbus_workload_reconciler.settings import WorkloadReconcilerSettings
from tests.fakes.kubernetes import FakeKubernetes, crds
from tests.support.eventually import eventually
from tests.support.kube import KubeServer
from tests.support.kube_calls import KubeCalls, path_of
from tests.support.kube_fleet import install_definitions
from tests.support.kube_manifests import governed_apiserver

Document = dict[str, Any]
T = TypeVar("T")
Enter = Callable[[AsyncExitStack], Coroutine[Any, Any, KubeServer]]

CALL_SECONDS: Final = 60.0
SHOWN_SECONDS: Final = 30.0
NODE_NAME: Final = "n1"
"""The node that all pods are bound to."""
POD_GROUPS: Final = "podgroups.scheduling.volcano.sh"
_DEFINITIONS: Final = path_of("customresourcedefinitions", group="apiextensions.k8s.io")
_OTHER_KINDS: Final = Path(crds.__file__).parent


class ShownSubstrate(KubernetesSubstrate):
    """A substrate that says what it shows."""

    def shown(self, kind: str, namespace: str) -> dict[ObjectKey, int]:
        """The children of workloads of a kind that are shown, with their resourceVersion."""
        return {
            key: reflector.revision_of(key)
            for reflector in self._views[kind].reflectors
            for key, _ in reflector.items(namespace)
        }

    def shows_object(self, key: ObjectKey, revision: int) -> bool:
        """Whether a workload object is shown as of this revision, or a later one."""
        return self._objects[key.kind].revision_of(key) >= revision

    @property
    def facts(self) -> Cluster:
        """What is known of the cluster."""
        return self._cluster.facts

    def follows_pod_groups(self, served: bool) -> bool:
        """Whether PodGroups are followed as served, or not served, and nothing is in the way.

        For a moment after a definition a server tells of a kind whose path it doesn't answer yet.
        """
        views = self._views[MODEL_SERVING].pod_groups
        return views is not None and views.served is served and views.problem is None

    def has_lost(self, node: str) -> bool | None:
        """Whether a node is out of service; None when it isn't known."""
        return self._cluster.nodes.get(ObjectKey(NODE.kind, NO_NAMESPACE, node))

    async def look_at_cluster(self) -> None:
        """Look at what the cluster offers."""
        await self._cluster.look()


class KubeStage:
    """A server, plain calls to it, and a substrate. `close` it from the thread that made it."""

    server: KubeServer
    calls: KubeCalls
    substrate: ShownSubstrate

    def __init__(self, enter: Enter) -> None:
        """`enter` gives the server, and puts what ends it on the stack."""
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="kube stage")
        self._thread.start()
        self._stack = AsyncExitStack()
        self._numbers = itertools.count()
        self._schema: Mapping[str, Any] | None = None
        self._lost: frozenset[str] = frozenset()
        self.worlds = 0
        """How many worlds there were."""
        try:
            self.run(self._open(enter))
        except BaseException:
            self.close()
            raise

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Do something on the stage's loop, and wait for it."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(CALL_SECONDS)

    def close(self) -> None:
        """End everything."""
        self.run(self._stack.aclose())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def namespace(self) -> str:
        """A new namespace."""
        self.worlds += 1
        name = f"world-{next(self._numbers)}"
        self.run(self._created("/api/v1/namespaces", {"metadata": {"name": name}}))
        return name

    async def arrange(self, schema: Mapping[str, Any] | None, lost: frozenset[str]) -> None:
        """Serve PodGroups with this schema of `spec`, or not at all, and lose these nodes."""
        if schema != self._schema:
            await self._serve_pod_groups(schema)
        if lost != self._lost:
            await self._lose(lost)

    async def until(self, holds: Callable[[], bool], what: str) -> None:
        """Wait until something is shown; raises `AssertionError`."""
        await eventually(holds, SHOWN_SECONDS, what)

    async def _open(self, enter: Enter) -> None:
        server = self.server = await enter(self._stack)
        self.calls = await self._stack.enter_async_context(server.calls())
        await install_definitions(self.calls)
        definition = yaml.safe_load((_OTHER_KINDS / "leaderworkersets.yaml").read_text())
        await self._created(_DEFINITIONS, definition)
        await self._created(path_of("nodes"), {"metadata": {"name": NODE_NAME}})
        fields = {"discovery_poll_seconds": 0.1, **server.settings(Service.WORKLOAD_RECONCILER)}
        settings = KubeSettings.model_validate(fields)
        client = await self._stack.enter_async_context(KubeClient(settings))
        self.substrate = ShownSubstrate(client, WorkloadReconcilerSettings(), SystemClock())
        tasks = [asyncio.create_task(work, name=name) for work, name in self.substrate.runs]
        self._stack.push_async_callback(_end, tasks)
        await self.substrate.ready()

    async def _created(self, path: str, document: Document) -> None:
        answer = await self.calls.post(path, document)
        assert answer.code in (201, 409), answer

    async def _serve_pod_groups(self, schema: Mapping[str, Any] | None) -> None:
        await self.calls.delete(f"{_DEFINITIONS}/{POD_GROUPS}")
        await self._until_served(False)
        if schema is not None:
            await self._created(_DEFINITIONS, pod_group_definition(schema))
            await self._until_served(True)
        self._schema = schema

    async def _until_served(self, served: bool) -> None:
        path = path_of("podgroups", group="scheduling.volcano.sh", version="v1beta1")

        async def is_answered() -> bool:
            return (await self.calls.get(path)).ok is served

        await eventually(is_answered, SHOWN_SECONDS)
        await self.until(
            lambda: self.substrate.follows_pod_groups(served), f"PodGroups served: {served}"
        )
        await self.substrate.look_at_cluster()
        assert self.substrate.facts.volcano is served

    async def _lose(self, lost: frozenset[str]) -> None:
        taints = [{"key": OUT_OF_SERVICE, "effect": "NoExecute"}] if NODE_NAME in lost else []
        answer = await self.calls.merge(
            path_of("nodes", name=NODE_NAME), {"spec": {"taints": taints}}
        )
        assert answer.ok, answer
        expected = NODE_NAME in lost
        await self.until(lambda: self.substrate.has_lost(NODE_NAME) is expected, "nodes lost")
        self._lost = lost


def fake_server(folder: Path) -> Enter:
    """The fake, of one stage alone."""

    async def enter(stack: AsyncExitStack) -> KubeServer:
        fake = await stack.enter_async_context(FakeKubernetes(Service, keep_calls=100))
        return KubeServer("fake", fake.url, fake.tokens, folder, fake=fake)

    return enter


def real_server(folder: Path) -> Enter:
    """A real one that nobody shares: the definition of PodGroups comes and goes."""

    async def enter(stack: AsyncExitStack) -> KubeServer:
        real = await asyncio.to_thread(stack.enter_context, governed_apiserver())
        return KubeServer("real", real.url, real.tokens, folder, real.certificate_authority)

    return enter


def pod_group_definition(schema: Mapping[str, Any]) -> Document:
    """The definition of Volcano's PodGroup with this schema of its `spec`."""
    version = {
        "name": "v1beta1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": schema}}},
    }
    group, plural = POD_GROUPS.split(".", 1)[1], "podgroups"
    return {
        "metadata": {"name": POD_GROUPS},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"kind": "PodGroup", "plural": plural, "singular": "podgroup"},
            "versions": [version],
        },
    }


async def _end(tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
