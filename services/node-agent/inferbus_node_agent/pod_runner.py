"""One pod, kept as its object says.

Every event is folded into the pod's state, then the core is asked what has to be done. It all runs
in one thread, so a pod's state has one writer; actions run as tasks and come back as facts.

Invariant: what an action follows from is stored before the action is begun, so that an agent that
is killed at any moment has a successor that goes on from there.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from inferbus_contracts.errors import ProblemsError
from inferbus_node_agent.actions import (
    Action,
    Finalise,
    Kill,
    PreparePod,
    RunPreStop,
    RunProbe,
    StartContainer,
    Terminate,
)
from inferbus_node_agent.alarms import Alarms
from inferbus_node_agent.core import advance
from inferbus_node_agent.effects import Effects
from inferbus_node_agent.facts import Fact, PodPrepared, PrepareFailed, TermSent
from inferbus_node_agent.plan import PodPlan, Timing
from inferbus_node_agent.pods import Pod
from inferbus_node_agent.policy_facts import fold
from inferbus_node_agent.policy_plan import plan_pod
from inferbus_node_agent.policy_status import pod_status
from inferbus_node_agent.ports import Attempt, ContainerRuntime
from inferbus_node_agent.preparation import PodView
from inferbus_node_agent.reporter import StatusReporter
from inferbus_node_agent.run_folder import RunFolder
from inferbus_node_agent.state import PodState
from inferbus_shared.clock import Clock

log = logging.getLogger("inferbus.node_agent")

Document = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What all pods of an agent share."""

    effects: Effects
    runtime: ContainerRuntime
    folder: RunFolder
    reporter: StatusReporter
    alarms: Alarms
    clock: Clock
    tasks: asyncio.TaskGroup
    timing: Timing
    simulated_delay_ms: int
    allocate: Callable[[str], str]
    """The address of the pod with a uid; raises `ProblemsError` when there is none left."""
    forget: Callable[[str], None]
    """Called when nothing of the pod with a uid is left."""


class PodRunner:
    """The one who acts for a pod. Nothing happens before `settle`."""

    def __init__(
        self, surroundings: Surroundings, document: Document, pod: Pod, state: PodState
    ) -> None:
        self._around = surroundings
        self.document = document
        self.pod = pod
        self.state = state
        self._plan = self._planned()
        self._settled = False
        self._stored: PodState | None = None
        self._status: Document | None = None
        self._unwanted = asyncio.Event()
        self._hooks: dict[str, asyncio.Task[None]] = {}

    def settle(self) -> None:
        """What is on the machine is known: begin to act."""
        self._settled = True
        self.look()

    def update(self, document: Document, pod: Pod) -> None:
        """The pod's object has changed. Its spec stays the one it began with, as what runs does."""
        self.document = {**document, "spec": self.document["spec"]}
        self.pod = Pod(metadata=pod.metadata, spec=self.pod.spec)
        self._plan = self._planned()
        self._stored = None
        self.look()

    def tell(self, facts: Iterable[Fact]) -> None:
        """Things have happened."""
        for fact in facts:
            self.state = fold(self._plan, self.state, fact, self._around.timing)
        self.look()

    async def observe(self) -> None:
        """Compare what is known with what is on the machine."""
        for container in self._plan.every_container:
            known = self.state.of(container.name)
            self.tell(await self._around.effects.observe(self.pod.uid, container.name, known))

    def look(self) -> None:
        """Do what is due."""
        if not self._settled:
            return
        around = self._around
        step = advance(self._plan, self.state, around.clock.now_ms(), around.timing)
        self.state = step.state
        if self.state.stopping_since_ms is not None:
            self._unwanted.set()
        self._remember()
        if step.wake_ms is None:
            around.alarms.clear(self.pod.uid)
        else:
            wait_ms = step.wake_ms - around.clock.now_ms() + 1
            around.alarms.set(self.pod.uid, wait_ms / 1000 / around.clock.anchor.rate)
        for action in step.actions:
            self._perform(action)

    def _planned(self) -> PodPlan:
        around = self._around
        return plan_pod(
            self.pod, around.effects.mode, self.state.address, around.simulated_delay_ms
        )

    def _remember(self) -> None:
        """Store and report what has changed; how probes stand is worth neither."""
        lasting = replace(self.state, probes={})
        if lasting == self._stored:
            return
        self._stored = lasting
        if self.state.address and not self.state.finalising:
            self._around.folder.store(self.pod.uid, self.document, lasting)
        status = pod_status(self._plan, self.state, self._around.effects.host_address)
        if status != self._status and not self.state.orphaned:
            self._status = status
            self._around.reporter.report(self.pod.key, self.pod.uid, status)

    def _perform(self, action: Action) -> None:
        around, effects = self._around, self._around.effects
        match action:
            case PreparePod():
                self._prepare()
            case StartContainer():
                self._run(effects.start(self._view(), action))
            case RunProbe():
                self._run(effects.probe(self._view(), action))
            case RunPreStop():
                hook = self._run(effects.pre_stop(self._view(), action))
                self._hooks[action.container] = hook
            case Terminate():
                self._end_hook(action.container)
                around.runtime.terminate(self._attempt(action.container, action.attempt))
                sent = TermSent(action.container, action.attempt)
                asyncio.get_running_loop().call_soon(self.tell, (sent,))
            case Kill():
                self._end_hook(action.container)
                around.runtime.kill(self._attempt(action.container, action.attempt))
            case Finalise():
                around.tasks.create_task(self._finalise())

    def _run(self, work: Awaitable[Iterable[Fact]]) -> asyncio.Task[None]:
        async def run() -> None:
            self.tell(await work)

        return self._around.tasks.create_task(run())

    def _end_hook(self, container: str) -> None:
        hook = self._hooks.pop(container, None)
        if hook is not None:
            hook.cancel()

    def _view(self) -> PodView:
        return PodView(self.pod, self.state.address, self._plan.grace_ms, self._unwanted)

    def _attempt(self, container: str, number: int) -> Attempt:
        return Attempt(self.pod.uid, container, number)

    def _prepare(self) -> None:
        """Short enough to be done at once; the outcome still comes as a fact, after this look."""
        around = self._around
        fact: Fact
        try:
            address = around.allocate(self.pod.uid)
            around.folder.create(self.pod.uid)
            fact = PodPrepared(address)
        except (ProblemsError, OSError) as error:
            fact = PrepareFailed(around.clock.now_ms(), "PodPreparationFailed", str(error))
        asyncio.get_running_loop().call_soon(self._prepared, fact)

    def _prepared(self, fact: Fact) -> None:
        self.state = fold(self._plan, self.state, fact, self._around.timing)
        self._plan = self._planned()
        self.look()

    async def _finalise(self) -> None:
        around, uid = self._around, self.pod.uid
        around.alarms.clear(uid)
        await around.effects.clear(uid)
        if not self.state.orphaned:
            around.reporter.finalise(self.pod.key, uid)
        around.forget(uid)
