"""What stands behind an API server in a cluster, as far as tests need it: scheduler and kubelet.

Neither the fake nor a bare kube-apiserver binds a pod, runs it or ends it. `KubeCluster` does, by
plain HTTP, one step at a time or in the background; the garbage collector is `kube_garbage`.
"""

import asyncio
import contextlib
import itertools
from collections.abc import AsyncIterator, Callable
from typing import Any

import aiohttp

from tests.support.kube_calls import Answer, KubeCalls, path_of
from tests.support.kube_garbage import GarbageCollector

Document = dict[str, Any]

LAST_STEP_SECONDS = 5.0
NOW = "2026-01-01T00:00:00Z"
"""The time of every transition: which one it is, is no matter of these tests."""


def _always(_: Document) -> bool:
    return True


class KubeCluster:
    """Scheduler, kubelet and garbage collector of one namespace, or of all.

    `binds` says which pods the scheduler takes, `runs` which ones become Running and Ready, `ends`
    which of the deleted ones end: each may be replaced by a test. `collects` turns the garbage
    collector on.
    """

    def __init__(
        self,
        calls: KubeCalls,
        namespace: str = "",
        *,
        nodes: tuple[str, ...] = ("node-0", "node-1"),
        collects: bool = True,
    ) -> None:
        self.calls = calls
        self.namespace = namespace
        self.binds: Callable[[Document], bool] = _always
        self.runs: Callable[[Document], bool] = _always
        self.ends: Callable[[Document], bool] = _always
        self.collects = collects
        self._nodes = itertools.cycle(nodes)
        self._addresses = itertools.count(1)
        self._collector = GarbageCollector(calls)

    async def pods(self, **query: str) -> list[Document]:
        return (await self.calls.get(path_of("pods", self.namespace), **query)).items

    async def step(self) -> int:
        """Each part once, in the order of a pod's life; answers how many writes there were."""
        acts = await self.collect() if self.collects else 0
        acts += await self.schedule() + await self.start()
        return acts + await self.follow_gates() + await self.finish()

    async def settle(self, most_steps: int = 50) -> None:
        """Step until nothing is left to do."""
        for _ in range(most_steps):
            if not await self.step():
                return
        raise AssertionError(f"the cluster did not come to rest within {most_steps} steps")

    @contextlib.asynccontextmanager
    async def playing(self, pause_seconds: float = 0.02) -> AsyncIterator["KubeCluster"]:
        """Step again and again in the background, also over a server that is away for a while.

        In the end the step that is under way is finished, unless the server doesn't answer.
        """
        over = asyncio.Event()
        task = asyncio.create_task(self._play(over, pause_seconds))
        try:
            yield self
        finally:
            over.set()
            await asyncio.wait([task], timeout=LAST_STEP_SECONDS)
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    async def _play(self, over: asyncio.Event, pause_seconds: float) -> None:
        while not over.is_set():
            with contextlib.suppress(OSError, TimeoutError, KeyError, aiohttp.ClientError):
                await self.step()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause_seconds):
                    await over.wait()

    async def schedule(self) -> int:
        """Bind every pod that is on no node."""
        waiting = [
            pod
            for pod in await self.pods(fieldSelector="spec.nodeName=")
            if not pod["metadata"].get("deletionTimestamp")
            and not pod["spec"].get("schedulingGates")
            and self.binds(pod)
        ]
        answers = [await self.bind(pod, next(self._nodes)) for pod in waiting]
        return sum(answer.ok for answer in answers)

    async def bind(self, pod: Document, node: str) -> Answer:
        """Put a pod on a node, through the binding subresource."""
        meta = pod["metadata"]
        binding = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": meta["name"], "namespace": meta["namespace"]},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        }
        path = path_of("pods", meta["namespace"], meta["name"], "binding")
        return await self.calls.post(path, binding)

    async def start(self) -> int:
        """Bring pods that are on a node and pending to Running and Ready."""
        pending = [
            pod
            for pod in await self.pods(fieldSelector="status.phase=Pending")
            if pod["spec"].get("nodeName")
            and not pod["metadata"].get("deletionTimestamp")
            and self.runs(pod)
        ]
        answers = [await self.set_running(pod) for pod in pending]
        return sum(answer.ok for answer in answers)

    async def set_running(self, pod: Document, *, ready: bool = True) -> Answer:
        """Running, with an address; Ready as far as the pod's readiness gates hold."""
        number = next(self._addresses)
        conditions = _conditions(pod, ready=ready)
        address = f"10.0.{number // 256}.{number % 256}"
        return await self.set_status(
            pod,
            {
                "phase": "Running",
                "podIP": address,
                "podIPs": [{"ip": address}],
                "startTime": NOW,
                "conditions": conditions,
                "containerStatuses": [
                    _container_status(container, ready=ready)
                    for container in pod["spec"]["containers"]
                ],
            },
        )

    async def set_ready(self, pod: Document, ready: bool) -> Answer:
        """Change a running pod's readiness."""
        return await self.set_status(pod, {"conditions": _conditions(pod, ready=ready)})

    async def follow_gates(self) -> int:
        """Bring running pods' readiness up to their readiness gates."""
        behind = [
            pod
            for pod in await self.pods(fieldSelector="status.phase=Running")
            if pod["spec"].get("readinessGates")
            and _holds(pod, "Ready") != (_holds(pod, "ContainersReady") and _gates_hold(pod))
        ]
        answers = [await self.set_ready(pod, _holds(pod, "ContainersReady")) for pod in behind]
        return sum(answer.ok for answer in answers)

    async def restart_container(self, pod: Document, container: str = "") -> Answer:
        """Count a container's restarts up, as after a crash; the first one's without a name."""
        statuses = pod["status"]["containerStatuses"]
        name = container or statuses[0]["name"]
        counted = [
            {**each, "restartCount": each["restartCount"] + (each["name"] == name)}
            for each in statuses
        ]
        return await self.set_status(pod, {"containerStatuses": counted})

    async def fail(self, pod: Document, reason: str = "Error") -> Answer:
        """The pod ends as Failed."""
        conditions = _conditions(pod, ready=False)
        status = {"phase": "Failed", "reason": reason, "conditions": conditions}
        return await self.set_status(pod, status)

    async def set_status(self, pod: Document, status: Document) -> Answer:
        """Merge into a pod's status; a pod that was made anew meanwhile is left alone."""
        meta = pod["metadata"]
        path = path_of("pods", meta["namespace"], meta["name"], "status")
        change = {"metadata": {"uid": meta["uid"]}, "status": status}
        return await self.calls.merge(path, change, fieldManager="kubelet")

    async def finish(self) -> int:
        """End the pods whose graceful deletion has begun."""
        ending = [
            pod
            for pod in await self.pods()
            if pod["metadata"].get("deletionGracePeriodSeconds") and self.ends(pod)
        ]
        answers = [await self.end(pod) for pod in ending]
        return sum(answer.ok for answer in answers)

    async def end(self, pod: Document) -> Answer:
        """Confirm that a pod's processes have ended."""
        meta = pod["metadata"]
        options = {"gracePeriodSeconds": 0, "preconditions": {"uid": meta["uid"]}}
        return await self.calls.delete(path_of("pods", meta["namespace"], meta["name"]), options)

    async def collect(self) -> int:
        """Delete what has lost its owners."""
        return await self._collector.step(self.namespace)


def _conditions(pod: Document, *, ready: bool) -> list[Document]:
    """The pod's conditions: Ready only when its containers are and every readiness gate holds."""
    known = {each["type"]: each for each in pod.get("status", {}).get("conditions", ())}
    told = {
        "PodScheduled": True,
        "Initialized": True,
        "ContainersReady": ready,
        "Ready": ready and _gates_hold(pod),
    }
    own = [
        {"type": name, "status": str(holds), "lastTransitionTime": NOW}
        for name, holds in told.items()
    ]
    return [each for name, each in known.items() if name not in told] + own


def _holds(pod: Document, condition: str) -> bool:
    conditions = pod.get("status", {}).get("conditions", ())
    return any(each["type"] == condition and each["status"] == "True" for each in conditions)


def _gates_hold(pod: Document) -> bool:
    gates = pod["spec"].get("readinessGates", ())
    return all(_holds(pod, gate["conditionType"]) for gate in gates)


def _container_status(container: Document, *, ready: bool) -> Document:
    return {
        "name": container["name"],
        "image": container.get("image", ""),
        "imageID": "",
        "ready": ready,
        "started": True,
        "restartCount": 0,
        "state": {"running": {"startedAt": NOW}},
    }
