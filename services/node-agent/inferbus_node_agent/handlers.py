"""The node agent: adopts what runs, then follows the pods of its node.

Invariant: a process that runs belongs to exactly one pod that is known here, or is being killed. A
pod whose object is not in a complete snapshot is not wanted; silence of the source changes nothing.
"""

import asyncio
import logging
import os
from dataclasses import dataclass, field

from inferbus_contracts.envelope import parse_time
from inferbus_contracts.errors import ProblemsError
from inferbus_node_agent.alarms import Alarms
from inferbus_node_agent.effects import Effects
from inferbus_node_agent.facts import ContainerEnded, PodOrphaned
from inferbus_node_agent.plan import Timing
from inferbus_node_agent.pod_runner import Document, PodRunner, Surroundings
from inferbus_node_agent.pods import Pod, identify_pod, parse_pod
from inferbus_node_agent.policy_adoption import resume
from inferbus_node_agent.policy_status import failed_status
from inferbus_node_agent.ports import (
    Attempt,
    ContainerRuntime,
    PodApplied,
    PodNews,
    PodRemoved,
    PodSnapshot,
    PodSource,
    StatusSink,
)
from inferbus_node_agent.reporter import StatusReporter
from inferbus_node_agent.run_folder import PodRecord, RunFolder
from inferbus_node_agent.state import Ended, PodState
from inferbus_shared.clock import Clock
from inferbus_shared.processes.addresses import Subnet, pod_address
from inferbus_shared.processes.logs import LogLimit, trim_log

log = logging.getLogger("inferbus.node_agent")

LOG_CHECK_SECONDS = 30.0
_LOGS = "/logs"
"""The alarm of the log files; no pod's uid has a slash."""
INVALID = "InvalidPod"


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentConfig:
    """What an agent is told about its work."""

    subnet: Subnet
    timing: Timing = field(default_factory=Timing)
    simulated_delay_ms: int = 0
    log_limit: LogLimit = field(default_factory=LogLimit)


class NodeAgent:
    """Runs the pods that a `PodSource` names, until it is cancelled."""

    def __init__(
        self,
        config: AgentConfig,
        effects: Effects,
        runtime: ContainerRuntime,
        folder: RunFolder,
        source: PodSource,
        sink: StatusSink,
        clock: Clock,
    ) -> None:
        self._config = config
        self._effects = effects
        self._runtime = runtime
        self._folder = folder
        self._source = source
        self._sink = sink
        self._clock = clock
        self._runners: dict[str, PodRunner] = {}
        self._wanted: dict[str, Document] = {}
        """The newest object of every pod that the source speaks of."""

    @property
    def pods(self) -> int:
        """How many pods have an agent's attention."""
        return len(self._runners)

    async def run(self) -> None:
        """Keep the pods; ends only by an exception. Every process lives on.

        Raises `ProblemsError` (ALREADY_RUNNING) when another agent has the run folder.
        """
        lock = self._folder.lock()
        try:
            async with asyncio.TaskGroup() as tasks:
                await self._run(tasks)
        finally:
            self._runtime.close()
            os.close(lock)

    async def _run(self, tasks: asyncio.TaskGroup) -> None:
        self._tasks = tasks
        alarms = Alarms(self._ring)
        self._around = Surroundings(
            effects=self._effects,
            runtime=self._runtime,
            folder=self._folder,
            reporter=StatusReporter(self._sink, tasks),
            alarms=alarms,
            clock=self._clock,
            tasks=tasks,
            timing=self._config.timing,
            simulated_delay_ms=self._config.simulated_delay_ms,
            allocate=self._allocate,
            forget=self._forget,
        )
        alarms.set(_LOGS, LOG_CHECK_SECONDS)
        await self._runtime.connect(self._on_end, self._on_lost)
        await self._adopt()
        async for news in self._source.watch():
            self._hear(news)

    # --- news of pods

    def _hear(self, news: PodNews) -> None:
        match news:
            case PodSnapshot(documents):
                self._wanted = {}
                for document in documents:
                    self._apply(document)
                for uid in self._runners.keys() - self._wanted.keys():
                    self._orphan(uid)
            case PodApplied(document):
                self._apply(document)
            case PodRemoved(uid):
                self._wanted.pop(uid, None)
                self._orphan(uid)

    def _apply(self, document: Document) -> None:
        identity = identify_pod(document)
        if identity is None:
            log.error(
                "pod object without name or uid", extra={"metadata": document.get("metadata")}
            )
            return
        self._wanted[identity.uid] = document
        runner = self._runners.get(identity.uid)
        try:
            pod = parse_pod(document)
        except ProblemsError as error:
            log.warning("pod can't be run", extra={"pod": identity.key, "problem": error})
            if runner is None:
                status = failed_status(self._clock.now_ms(), INVALID, str(error))
                self._around.reporter.report(identity.key, identity.uid, status)
            return
        if runner is not None:
            runner.update(document, pod)
            return
        self._add(document, pod, PodState(created_ms=self._created_ms(pod))).settle()

    def _add(self, document: Document, pod: Pod, state: PodState) -> PodRunner:
        runner = PodRunner(self._around, document, pod, state)
        self._runners[pod.uid] = runner
        return runner

    def _created_ms(self, pod: Pod) -> int:
        written = pod.metadata.creation_timestamp
        return parse_time(written) if written else self._clock.now_ms()

    def _orphan(self, uid: str) -> None:
        runner = self._runners.get(uid)
        if runner is not None:
            runner.tell([PodOrphaned()])

    def _allocate(self, uid: str) -> str:
        taken = {runner.state.address for runner in self._runners.values()}
        return pod_address(self._config.subnet, uid, taken)

    def _forget(self, uid: str) -> None:
        """Nothing of the pod is left; start anew if its object came back meanwhile."""
        runner = self._runners.pop(uid)
        document = self._wanted.get(uid)
        if runner.state.orphaned and document is not None:
            self._apply(document)

    # --- news of processes

    def _ring(self, key: str) -> None:
        if key == _LOGS:
            self._trim_logs()
        elif key in self._runners:
            self._runners[key].look()

    def _on_end(self, attempt: Attempt, ended: Ended) -> None:
        runner = self._runners.get(attempt.uid)
        if runner is not None:
            runner.tell([ContainerEnded(attempt.container, ended)])

    def _on_lost(self) -> None:
        log.warning("fork server lost; the pods run on")
        self._tasks.create_task(self._reconnect())

    async def _reconnect(self) -> None:
        await self._runtime.connect(self._on_end, self._on_lost)
        for runner in list(self._runners.values()):
            await runner.observe()

    def _trim_logs(self) -> None:
        for runner in self._runners.values():
            for name in runner.state.containers:
                path = self._folder.log(runner.pod.uid, name)
                try:
                    trim_log(path, self._config.log_limit)
                except ProblemsError as error:
                    log.warning("log not cut", extra={"problem": error})
        self._around.alarms.set(_LOGS, LOG_CHECK_SECONDS)

    # --- adoption

    async def _adopt(self) -> None:
        """Take up every pod that has a folder, with its processes, before anything is decided."""
        for uid in self._folder.uids():
            record = self._folder.load(uid)
            runner = self._adopted(record) if record else None
            if runner is None:
                log.warning("folder of an unknown pod removed", extra={"uid": uid})
                await self._effects.clear(uid)
                continue
            await runner.observe()
            runner.settle()

    def _adopted(self, record: PodRecord) -> PodRunner | None:
        try:
            pod = parse_pod(record.document)
        except ProblemsError:
            return None
        fresh = PodState(created_ms=self._created_ms(pod), address=record.address)
        return self._add(record.document, pod, resume(record.state or fresh))
