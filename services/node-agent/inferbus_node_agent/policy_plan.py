"""From a pod to the plan that the core works on.

Everything that differs between a simulated and a real container is decided here: a simulated one
has no shell, so commands in probes and hooks are replaced by what they stand for, and its probes
are tried early and often, because the manifest's delays stand for the load time of a real model.
"""

from collections.abc import Mapping

from inferbus_node_agent.plan import (
    ContainerPlan,
    DrainTarget,
    ExecTarget,
    HookTarget,
    HttpTarget,
    PauseTarget,
    PodPlan,
    ProbeKind,
    ProbePlan,
    ProbeTarget,
    TcpTarget,
)
from inferbus_node_agent.pod_parts import Handler, Probe
from inferbus_node_agent.pods import Container, Pod
from inferbus_node_agent.policy_containers import (
    EngineMode,
    at_address,
    engine_container,
    serves,
    serving_port,
)
from inferbus_node_agent.policy_drain import drained_gauges

HEALTH_PATH = "/health"


def plan_pod(pod: Pod, mode: EngineMode, address: str = "", simulated_delay_ms: int = 0) -> PodPlan:
    """The plan of a pod.

    `simulated_delay_ms` caps `initialDelaySeconds` of simulated containers' startup and readiness
    probes; `address` is written into commands of real ones in place of localhost.
    """
    spec, metadata = pod.spec, pod.metadata
    grace_seconds = spec.termination_grace_period_seconds
    if metadata.deletion_grace_period_seconds is not None:
        grace_seconds = metadata.deletion_grace_period_seconds
    planner = _Planner(pod, mode, address, simulated_delay_ms)
    return PodPlan(
        containers=tuple(planner.plan(container) for container in spec.containers),
        init_containers=tuple(
            ContainerPlan(name=container.name, image=container.image)
            for container in spec.init_containers
        ),
        restart_policy=spec.restart_policy,
        grace_ms=grace_seconds * 1000,
        deleting=pod.deleting,
    )


class _Planner:
    """Plans the containers of one pod, and gathers what can't be done for them."""

    def __init__(self, pod: Pod, mode: EngineMode, address: str, simulated_delay_ms: int) -> None:
        self._simulated = mode is EngineMode.SIMULATED
        self._engine = engine_container(pod)
        self._address = address
        self._delay_ms = simulated_delay_ms
        self._notes: list[str] = []

    def plan(self, container: Container) -> ContainerPlan:
        """One container."""
        self._notes = []
        written: Mapping[ProbeKind, Probe | None] = {
            ProbeKind.STARTUP: container.startup_probe,
            ProbeKind.READINESS: container.readiness_probe,
            ProbeKind.LIVENESS: container.liveness_probe,
        }
        probes = {
            kind: plan
            for kind, probe in written.items()
            if probe is not None and (plan := self._probe(container, kind, probe)) is not None
        }
        hook = container.lifecycle.pre_stop
        pre_stop = self._hook(container, hook) if hook else None
        return ContainerPlan(
            name=container.name,
            image=container.image,
            probes=probes,
            pre_stop=pre_stop,
            notes=tuple(self._notes),
        )

    def _probe(self, container: Container, kind: ProbeKind, probe: Probe) -> ProbePlan | None:
        target = self._probe_target(container, kind, probe)
        if target is None:
            return None
        delay_ms = probe.initial_delay_seconds * 1000
        quick = self._simulated and kind is not ProbeKind.LIVENESS
        grace_seconds = probe.termination_grace_period_seconds
        return ProbePlan(
            kind=kind,
            target=target,
            initial_delay_ms=delay_ms,
            period_ms=probe.period_seconds * 1000,
            timeout_real_ms=probe.timeout_seconds * 1000,
            success_threshold=probe.success_threshold,
            failure_threshold=probe.failure_threshold,
            grace_ms=None if grace_seconds is None else grace_seconds * 1000,
            quick_after_ms=min(delay_ms, self._delay_ms) if quick else None,
        )

    def _probe_target(
        self, container: Container, kind: ProbeKind, probe: Probe
    ) -> ProbeTarget | None:
        """What is probed; None, with a note, where it can't be and so counts as passed."""
        what = f"{kind.value} probe of {container.name}"
        target = self._network_target(container, probe, what)
        if target is not None:
            return target
        if probe.exec is None:
            if probe.grpc is not None:
                self._notes.append(
                    f"the {what} is gRPC, which isn't supported: it counts as passed"
                )
            return None
        if not self._simulated:
            return self._command(probe.exec.command)
        port = serving_port(container)
        if port is None:
            self._notes.append(f"the {what} is a command, and the container is simulated: skipped")
            return None
        if container.name == self._engine.name and serves(container):
            return HttpTarget("", port, HEALTH_PATH)
        return TcpTarget("", port)

    def _hook(self, container: Container, hook: Handler) -> HookTarget | None:
        what = f"preStop hook of {container.name}"
        if hook.sleep is not None:
            return PauseTarget(hook.sleep.seconds * 1000)
        if hook.exec is None:
            return self._network_target(container, hook, what)
        if not self._simulated:
            return self._command(hook.exec.command)
        gauges = drained_gauges(" ".join(hook.exec.command))
        port = serving_port(container)
        if gauges and port is not None:
            return DrainTarget(port, gauges)
        self._notes.append(f"the {what} is a command, and the container is simulated: skipped")
        return None

    def _command(self, command: tuple[str, ...]) -> ExecTarget:
        return ExecTarget(tuple(at_address(word, self._address) for word in command))

    def _network_target(
        self, container: Container, handler: Handler, what: str
    ) -> HttpTarget | TcpTarget | None:
        action = handler.http_get or handler.tcp_socket
        if action is None:
            return None
        port = _port(container, action.port)
        if port is None:
            self._notes.append(
                f"the {what} names port {action.port!r}, which isn't declared: skipped"
            )
            return None
        if handler.http_get is None:
            return TcpTarget(action.host, port)
        return HttpTarget(
            host=action.host,
            port=port,
            path=handler.http_get.path or "/",
            tls=handler.http_get.scheme.upper() == "HTTPS",
            headers=tuple((item.name, item.value) for item in handler.http_get.http_headers),
        )


def _port(container: Container, port: int | str) -> int | None:
    if isinstance(port, int):
        return port
    if port.isdecimal():
        return int(port)
    return next((known.container_port for known in container.ports if known.name == port), None)
