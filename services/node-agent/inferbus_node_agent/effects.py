"""Carrying out what the core asks for.

Every action ends in a fact, also when it fails; the exceptions are a lost fork server, after which
everything is observed again, and a cancelled task, whose pod is not wanted any more.
"""

import asyncio
import logging
from collections.abc import Mapping

from inferbus_contracts.errors import ErrorCode, ProblemsError
from inferbus_node_agent.actions import RunPreStop, RunProbe, StartContainer
from inferbus_node_agent.facts import (
    ContainerEnded,
    ContainerLost,
    ContainerStarted,
    Fact,
    PreStopFinished,
    ProbeAnswered,
    StartRefused,
)
from inferbus_node_agent.pods import Container
from inferbus_node_agent.policy_adoption import adoption_facts
from inferbus_node_agent.policy_containers import (
    ExecutedProgram,
    ForkedProgram,
    ModelDownload,
    NothingToRun,
)
from inferbus_node_agent.ports import (
    Attempt,
    ContainerRuntime,
    ModelGate,
    Prober,
    StartOrder,
)
from inferbus_node_agent.preparation import PodView, Preparation
from inferbus_node_agent.run_folder import RunFolder
from inferbus_node_agent.state import ContainerState, Ended
from inferbus_shared.clock import Clock

log = logging.getLogger("inferbus.node_agent")

CONFIG_ERROR = "CreateContainerConfigError"
CREATE_ERROR = "CreateContainerError"
START_ERROR = "StartError"
START_ERROR_CODE = 128
"""kubelet's exit code for a container that could not be started."""
DOWNLOAD_FAILED_CODE = 1
"""The reference downloaders' exit code."""
_KILL_TRIES = 200
_KILL_PAUSE_SECONDS = 0.05
_TAKEN = frozenset({ErrorCode.ALREADY_RUNNING, ErrorCode.ALREADY_EXISTS})


class Effects:
    """Each method is one action and returns the facts that it ends in."""

    def __init__(
        self,
        preparation: Preparation,
        folder: RunFolder,
        runtime: ContainerRuntime,
        prober: Prober,
        models: ModelGate,
        clock: Clock,
    ) -> None:
        self._preparation = preparation
        self._folder = folder
        self._runtime = runtime
        self._prober = prober
        self._models = models
        self._clock = clock
        self.mode = preparation.context.mode
        self.host_address = preparation.context.node.host_address

    async def start(self, view: PodView, action: StartContainer) -> tuple[Fact, ...]:
        """Start a container, or find that it runs already."""
        spec = view.pod.spec
        containers = (*spec.init_containers, *spec.containers)
        container = next(other for other in containers if other.name == action.container)
        try:
            environment, program = await self._preparation.prepare(view, container)
        except ProblemsError as error:
            missing = {ErrorCode.MISSING_REFERENCE, ErrorCode.WRONG_TYPE, ErrorCode.UNSUPPORTED}
            known = missing & {problem.code for problem in error.problems}
            return (self._refused(action, CONFIG_ERROR if known else CREATE_ERROR, str(error)),)
        except OSError as error:
            return (self._refused(action, CREATE_ERROR, f"its volumes can't be made: {error}"),)
        if isinstance(program, NothingToRun):
            return (self._over(action, code=0),)
        if isinstance(program, ModelDownload):
            return (await self._download(view, action, program),)
        return await self._spawn(view, container, action, program, environment)

    async def probe(self, view: PodView, action: RunProbe) -> tuple[Fact, ...]:
        """Probe once."""
        attempt = Attempt(view.pod.uid, action.container, action.attempt)
        failure = await self._prober.probe(
            action.probe.target,
            view.address,
            self._runtime.process_id(attempt),
            action.probe.timeout_real_ms / 1000,
        )
        now_ms = self._clock.now_ms()
        answer = ProbeAnswered(
            action.container, action.attempt, action.kind, now_ms, not failure, failure
        )
        return (answer,)

    async def pre_stop(self, view: PodView, action: RunPreStop) -> tuple[Fact, ...]:
        """Run the hook before SIGTERM; a failing one delays nothing."""
        attempt = Attempt(view.pod.uid, action.container, action.attempt)
        failure = await self._prober.run_hook(
            action.hook, view.address, self._runtime.process_id(attempt)
        )
        if failure:
            place = {"pod": view.pod.key, "container": action.container, "reason": failure}
            log.warning("preStop hook failed", extra=place)
        return (PreStopFinished(action.container, action.attempt),)

    async def observe(self, uid: str, name: str, known: ContainerState) -> tuple[Fact, ...]:
        """What the machine says of a container that its state doesn't."""
        try:
            observed = await self._runtime.observe(uid, name)
        except ProblemsError as error:
            if error.problems[0].code is not ErrorCode.NOT_RUNNING:
                raise
            return ()
        return adoption_facts(name, known, observed, self._clock.now_ms())

    async def clear(self, uid: str) -> None:
        """Remove all that is left of a pod: processes nobody knew of, then its files."""
        for container in self._folder.containers(uid):
            for _ in range(_KILL_TRIES):
                if not self._folder.held(uid, container):
                    break
                self._runtime.kill_last(uid, container)
                await asyncio.sleep(_KILL_PAUSE_SECONDS)
            else:
                place = {"uid": uid, "container": container}
                log.error("a process of a removed pod could not be killed", extra=place)
        try:
            await asyncio.to_thread(self._folder.remove, uid)
        except OSError as error:
            log.warning("pod's folder not removed", extra={"uid": uid, "reason": error})

    async def _download(
        self, view: PodView, action: StartContainer, program: ModelDownload
    ) -> Fact:
        ready = asyncio.ensure_future(
            self._models.wait(view.pod.key, program.source, program.destination)
        )
        unwanted = asyncio.ensure_future(view.unwanted.wait())
        try:
            await asyncio.wait({ready, unwanted}, return_when=asyncio.FIRST_COMPLETED)
            if not ready.done():
                return ContainerLost(action.container, action.attempt)
            ready.result()
        except ProblemsError as error:
            return self._over(action, code=DOWNLOAD_FAILED_CODE, message=str(error))
        finally:
            ready.cancel()
            unwanted.cancel()
        return self._over(action, code=0)

    async def _spawn(
        self,
        view: PodView,
        container: Container,
        action: StartContainer,
        program: ForkedProgram | ExecutedProgram,
        environment: Mapping[str, str],
    ) -> tuple[Fact, ...]:
        pod = view.pod
        order = StartOrder(
            attempt=Attempt(pod.uid, container.name, action.attempt),
            program=program,
            environment=environment,
            directory=container.working_dir if isinstance(program, ExecutedProgram) else "",
            title=f"{pod.metadata.namespace}/{pod.metadata.name} {container.name}",
        )
        try:
            started = await self._runtime.start(order)
        except ProblemsError as error:
            return await self._not_started(view, action, error)
        return (
            ContainerStarted(
                container.name, started.attempt, started.started_ms, started.process_id
            ),
        )

    async def _not_started(
        self, view: PodView, action: StartContainer, error: ProblemsError
    ) -> tuple[Fact, ...]:
        code = error.problems[0].code
        if code is ErrorCode.NOT_RUNNING:
            return ()
        if code in _TAKEN:
            waiting = ContainerState(attempt=action.attempt - 1)
            facts = await self.observe(view.pod.uid, action.container, waiting)
            return facts or (self._refused(action, CREATE_ERROR, str(error)),)
        return (self._over(action, code=START_ERROR_CODE, reason=START_ERROR, message=str(error)),)

    def _refused(self, action: StartContainer, reason: str, message: str) -> StartRefused:
        return StartRefused(action.container, action.attempt, self._clock.now_ms(), reason, message)

    def _over(
        self, action: StartContainer, *, code: int, reason: str = "", message: str = ""
    ) -> ContainerEnded:
        now_ms = self._clock.now_ms()
        ended = Ended(action.attempt, now_ms, now_ms, code, None, reason, message)
        return ContainerEnded(action.container, ended)
