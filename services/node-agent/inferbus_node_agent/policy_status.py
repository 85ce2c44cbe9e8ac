"""The status of a pod, in Kubernetes' words.

Phase and conditions follow core/v1 and kubelet: a pod is Running once every container has run, and
a condition keeps its transition time as long as its status stays the same.
"""

from typing import Any

from inferbus_contracts.envelope import format_time
from inferbus_node_agent.plan import ContainerPlan, PodPlan
from inferbus_node_agent.state import (
    NEVER_STARTED,
    Condition,
    ContainerState,
    Ended,
    PodState,
    Stage,
)

UNKNOWN_CODE = 137
"""What kubelet reports for a container whose exit nobody saw."""
_SIGNAL_BASE = 128


def conditions(plan: PodPlan, state: PodState, now_ms: int) -> tuple[Condition, ...]:
    """The pod's conditions; `state.conditions` are those of before."""
    notes = [note for container in plan.every_container for note in container.notes]
    wanted = (
        Condition("PodScheduled", holds=True, since_ms=state.created_ms),
        _initialized(plan, state, now_ms),
        _ready("ContainersReady", plan, state, now_ms, notes),
        _ready("Ready", plan, state, now_ms, notes),
    )
    before = {condition.type: condition for condition in state.conditions}
    return tuple(_since(condition, before.get(condition.type)) for condition in wanted)


def _since(condition: Condition, before: Condition | None) -> Condition:
    if before is None or before.holds is not condition.holds:
        return condition
    return Condition(
        condition.type, condition.holds, before.since_ms, condition.reason, condition.message
    )


def _initialized(plan: PodPlan, state: PodState, now_ms: int) -> Condition:
    incomplete = [
        container.name
        for container in plan.init_containers
        if not _succeeded(state.of(container.name))
    ]
    if not incomplete or state.outcome == "Succeeded":
        return Condition("Initialized", holds=True, since_ms=now_ms)
    message = f"containers with incomplete status: [{' '.join(incomplete)}]"
    return Condition("Initialized", False, now_ms, "ContainersNotInitialized", message)


def _succeeded(container: ContainerState) -> bool:
    return container.stage is Stage.ENDED and bool(container.ended and container.ended.succeeded)


def _ready(kind: str, plan: PodPlan, state: PodState, now_ms: int, notes: list[str]) -> Condition:
    if state.outcome == "Succeeded":
        return Condition(kind, False, now_ms, "PodCompleted")
    unready = [
        container.name for container in plan.containers if not _is_ready(state.of(container.name))
    ]
    remarks = "; ".join(notes)
    if not unready:
        return Condition(kind, holds=True, since_ms=now_ms, message=remarks)
    because = "; ".join(
        f"{name}: {text}" for name in unready if (text := _why_unready(name, state))
    )
    message = f"containers with unready status: [{' '.join(unready)}]"
    text = "; ".join(part for part in (message, because, remarks) if part)
    return Condition(kind, False, now_ms, "ContainersNotReady", text)


def _is_ready(container: ContainerState) -> bool:
    return container.stage is Stage.RUNNING and container.ready


def _why_unready(name: str, state: PodState) -> str:
    """What the last failed try of a probe said; stable while it says the same."""
    container = state.of(name)
    if container.stage is not Stage.RUNNING:
        return container.waiting_message
    messages = [probe.message for probe in state.probes.get(name, {}).values() if probe.message]
    return messages[0] if messages else ""


def phase(plan: PodPlan, state: PodState) -> str:
    """Pending, Running, Succeeded or Failed."""
    if state.outcome:
        return state.outcome
    if any(not _succeeded(state.of(container.name)) for container in plan.init_containers):
        return "Pending"
    containers = [state.of(container.name) for container in plan.containers]
    if any(container.attempt == NEVER_STARTED for container in containers):
        return "Pending"
    return "Running"


def pod_status(plan: PodPlan, state: PodState, host_address: str) -> dict[str, Any]:
    """The `status` of the Pod object."""
    status: dict[str, Any] = {
        "phase": phase(plan, state),
        "conditions": [_condition(condition) for condition in state.conditions],
        "hostIP": host_address,
        "startTime": format_time(state.created_ms),
    }
    if state.address:
        status |= {"podIP": state.address, "podIPs": [{"ip": state.address}]}
    if state.reason:
        status["reason"] = state.reason
    if state.message:
        status["message"] = state.message
    initialized = all(_succeeded(state.of(other.name)) for other in plan.init_containers)
    if plan.init_containers:
        status["initContainerStatuses"] = [
            container_status(container, state.of(container.name), "PodInitializing", init=True)
            for container in plan.init_containers
        ]
    waiting = "ContainerCreating" if initialized else "PodInitializing"
    status["containerStatuses"] = [
        container_status(container, state.of(container.name), waiting, init=False)
        for container in plan.containers
    ]
    return status


def container_status(
    plan: ContainerPlan, container: ContainerState, waiting: str, *, init: bool
) -> dict[str, Any]:
    """One entry of `containerStatuses`; `waiting` is the reason of one that waits for its turn."""
    over = container.stage is Stage.ENDED and container.ended is not None
    status: dict[str, Any] = {
        "name": plan.name,
        "image": plan.image,
        "imageID": "",
        "state": _container_state(container, waiting),
        "lastState": {},
        "ready": _succeeded(container) if init else _is_ready(container),
        "started": container.stage is Stage.RUNNING and container.started,
        "restartCount": container.restarts,
    }
    if container.ended is not None and not over:
        status["lastState"] = {"terminated": _terminated(container.ended)}
    if container.stage is Stage.RUNNING:
        status["containerID"] = container.process_id
    return status


def _container_state(container: ContainerState, waiting: str) -> dict[str, Any]:
    if container.stage is Stage.RUNNING:
        return {"running": {"startedAt": format_time(container.started_ms)}}
    if container.stage is Stage.ENDED and container.ended is not None:
        return {"terminated": _terminated(container.ended)}
    reason: dict[str, Any] = {"reason": container.waiting_reason or waiting}
    if container.waiting_message:
        reason["message"] = container.waiting_message
    return {"waiting": reason}


def _terminated(ended: Ended) -> dict[str, Any]:
    terminated: dict[str, Any] = {
        "exitCode": _exit_code(ended),
        "reason": ended.reason or _end_reason(ended),
        "startedAt": format_time(ended.started_ms),
        "finishedAt": format_time(ended.finished_ms),
    }
    if ended.signal is not None:
        terminated["signal"] = ended.signal
    if ended.message:
        terminated["message"] = ended.message
    elif ended.code is None and ended.signal is None:
        terminated["message"] = "it ended while nobody watched it; its exit status is not known"
    return terminated


def _exit_code(ended: Ended) -> int:
    if ended.code is not None:
        return ended.code
    return UNKNOWN_CODE if ended.signal is None else _SIGNAL_BASE + ended.signal


def _end_reason(ended: Ended) -> str:
    if ended.code is None and ended.signal is None:
        return "ContainerStatusUnknown"
    return "Completed" if ended.succeeded else "Error"


def failed_status(created_ms: int, reason: str, message: str) -> dict[str, Any]:
    """The status of a pod that can't be run at all."""
    return {
        "phase": "Failed",
        "reason": reason,
        "message": message,
        "startTime": format_time(created_ms),
        "conditions": [
            _condition(Condition("Ready", False, created_ms, reason, message)),
        ],
        "containerStatuses": [],
    }


def _condition(condition: Condition) -> dict[str, Any]:
    result: dict[str, Any] = {
        "type": condition.type,
        "status": "True" if condition.holds else "False",
        "lastTransitionTime": format_time(condition.since_ms),
    }
    if condition.reason:
        result["reason"] = condition.reason
    if condition.message:
        result["message"] = condition.message
    return result
