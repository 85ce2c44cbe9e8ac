"""One line for people about every type of event. Pure.

Invariant: every type in the catalog has a line of its own; a body is never shown whole.
"""

from collections.abc import Callable
from typing import Any

from inferbus_cli.units import number, size
from inferbus_contracts.base import EventData
from inferbus_contracts.events.audit import AuditSealed
from inferbus_contracts.events.control import ControlApproved, ControlFrozen, ControlThawed, Order
from inferbus_contracts.events.demand import DemandObserved, DemandPending, DemandSummed
from inferbus_contracts.events.metrics import MetricsAssessed, MetricsSampled, TargetSample
from inferbus_contracts.events.model import ModelFailed, ModelProgressed, ModelReady, ModelRequested
from inferbus_contracts.events.route import (
    ConditionStatus,
    RouteAcknowledged,
    RoutePublished,
    RoutesResolved,
)
from inferbus_contracts.events.scaling import (
    DecisionRecord,
    Limiter,
    Mode,
    ScalingAllocated,
    ScalingApplied,
    ScalingDecided,
    ScalingDemanded,
    ScalingRefused,
    Woken,
)
from inferbus_contracts.events.spec import SpecChanged, SpecRejected
from inferbus_contracts.events.state import StateStored
from inferbus_contracts.events.workload import WorkloadActed, WorkloadObserved

MAX_LENGTH = 160


def summary(data: EventData) -> str:
    """What an event says, at most `MAX_LENGTH` characters on one line."""
    text = " ".join(_SUMMARIES[type(data)](data).split())
    return text if len(text) <= MAX_LENGTH else f"{text[: MAX_LENGTH - 1]}…"


def _spec_changed(data: SpecChanged) -> str:
    by = f" by {data.changed_by}" if data.changed_by else ""
    if data.deleted:
        return f"deleted{by}"
    replicas = (data.object.get("spec") or {}).get("replicas")
    wanted = "" if replicas is None else f", {replicas} replicas"
    return f"generation {data.generation}{by}{wanted}"


def _spec_rejected(data: SpecRejected) -> str:
    first = str(data.problems[0]) if data.problems else "without a reason"
    rest = f" (and {len(data.problems) - 1} more)" if len(data.problems) > 1 else ""
    return f"refused from {data.manager}: {first}{rest}"


def _workload_observed(data: WorkloadObserved) -> str:
    if data.deleted:
        return "gone"
    rolling = f", {data.updated} updated" if data.updated != data.replicas else ""
    frozen = ", frozen" if data.frozen else ""
    problem = f": {data.problem}" if data.problem else ""
    return f"{data.ready} of {data.desired} ready{rolling}{frozen}{problem}"


def _workload_acted(data: WorkloadActed) -> str:
    error = f": {data.error}" if data.error else ""
    outcome = data.outcome.value
    return f"{data.action.value} {data.object}, {data.reason} ({data.cause}) {outcome}{error}"


def _scaling_applied(data: ScalingApplied) -> str:
    message = f": {data.message}" if data.message else ""
    return f"{data.outcome.value}, {data.replicas} replicas, generation {data.generation}{message}"


def _sample(sample: TargetSample) -> str:
    metrics = ", ".join(f"{one.name} {number(one.value)}" for one in sample.metrics)
    missing = f", {len(sample.missing)} missing" if sample.missing else ""
    failed = f", {sample.failed_pods} failed" if sample.failed_pods else ""
    problems = f", {sample.problems[0]}" if sample.problems else ""
    return f"{metrics or 'no metric'} from {sample.ready_pods} pods{missing}{failed}{problems}"


def _metrics_assessed(data: MetricsAssessed) -> str:
    if not data.problems:
        return "the samples are whole again"
    more = f" (and {len(data.problems) - 1} more)" if len(data.problems) > 1 else ""
    return f"samples are not whole: {data.problems[0]}{more}"


def _metrics_sampled(data: MetricsSampled) -> str:
    if len(data.targets) == 1:
        return _sample(data.targets[0])
    return "; ".join(f"{one.target}: {_sample(one)}" for one in data.targets) or "no target"


def _demand_observed(data: DemandObserved) -> str:
    seconds = data.interval_ms / 1000 or 1.0
    models = (
        f"{one.model} {number(one.arrivals / seconds)}/s, {one.in_flight} in flight, "
        f"{one.queued} queued" + (f", {one.errors} errors" if one.errors else "")
        for one in data.models
    )
    return "; ".join(models) or "no traffic"


def _demand_pending(data: DemandPending) -> str:
    return f"{data.waiting} requests for {data.model} held at {data.router}"


def _held(record: DecisionRecord) -> str:
    return "" if record.binding is Limiter.NONE else f", held by {record.binding.value}"


def _mode(mode: Mode, apply: str) -> str:
    panic = ", panic" if mode is Mode.PANIC else ""
    return f"{panic}{'' if apply == 'auto' else f', {apply}'}"


def _wants(record: DecisionRecord) -> str:
    known = (one for one in record.metrics if one.want is not None)
    return "".join(
        f", {one.name} {number(one.value)} / {number(one.target)} wants {one.want}" for one in known
    )


def _scaling_demanded(data: ScalingDemanded) -> str:
    units = f"{number(data.capacity)} units, {data.replicas} replicas (now {data.current})"
    return f"{units}{_held(data.record)}{_mode(data.mode, data.apply)}{_wants(data.record)}"


def _scaling_decided(data: ScalingDecided) -> str:
    step = f"{data.current} → {data.desired}"
    return f"{step}{_held(data.record)}{_mode(data.mode, data.apply)}{_wants(data.record)}"


def _scaling_allocated(data: ScalingAllocated) -> str:
    shares = ", ".join(f"{one.target} {one.current} → {one.desired}" for one in data.allocations)
    cost = f"cost {data.cost}, at least {data.optimal_cost}"
    return f"{shares or 'nothing to give'}; {cost}{_held(data.record)}"


def _scaling_refused(data: ScalingRefused) -> str:
    told = "; ".join(map(str, data.problems))
    return f"the policy can't be used: {told}" if told else "the policy can be used again"


def _state_stored(data: StateStored) -> str:
    last = f"last decision {data.decision_id}" if data.decision_id else "no decision yet"
    return f"state after inbox event {data.applied_sequence}, {last}"


def _woken(data: Woken) -> str:
    return f"timer: {data.reason or 'no reason'}"


def _route_published(data: RoutePublished) -> str:
    if data.deleted:
        return f"revision {data.revision}: withdrawn"
    if data.route is not None:
        return f"revision {data.revision}: {data.route.model_name}, {len(data.route.rules)} rules"
    endpoints = data.server.endpoints if data.server else []
    ready = sum(one.ready and not one.draining for one in endpoints)
    return f"revision {data.revision}: {ready} of {len(endpoints)} endpoints ready"


def _route_acknowledged(data: RouteAcknowledged) -> str:
    return f"serves revision {data.revision}, {data.lag_ms} ms after it was published"


def _routes_resolved(data: RoutesResolved) -> str:
    unmet = [one for one in data.conditions if _is_unmet(one.type, one.status)]
    endpoints = f"{data.ready_endpoints} of {data.endpoints} endpoints ready"
    return "; ".join([endpoints, *(f"{one.type}: {one.reason} {one.message}" for one in unmet)])


def _is_unmet(type_: str, status: ConditionStatus) -> bool:
    good = ConditionStatus.FALSE if type_ == "Conflicted" else ConditionStatus.TRUE
    return status is not good


def _model_requested(data: ModelRequested) -> str:
    wanted = f", for {data.requested_by}" if data.requested_by else ""
    return f"{data.source} wanted on {data.node}{wanted}"


def _model_progressed(data: ModelProgressed) -> str:
    total = f" of {size(data.bytes_total)}" if data.bytes_total else ""
    return f"{size(data.bytes_done)}{total}, {size(round(data.bytes_per_second))}/s"


def _model_ready(data: ModelReady) -> str:
    return f"ready at {data.path}: {data.files} files, {size(data.bytes)}"


def _model_failed(data: ModelFailed) -> str:
    again = "" if data.retry_at_ms is None else "; it is tried again"
    return f"failed on {data.node}: {data.problem}{again}"


def _order(verb: str) -> Callable[[Order], str]:
    return lambda data: f"{verb} by {data.who}: {data.why or 'without a reason'}"


def _approved(data: ControlApproved) -> str:
    return f"decision {data.decision_id} approved by {data.who}: {data.why or 'without a reason'}"


def _audit_sealed(data: AuditSealed) -> str:
    span = f"{data.first_sequence} to {data.last_sequence}"
    return f"{data.stream} {span}, {data.messages} messages, {data.hash[:16]}"


_SUMMARIES: dict[type[EventData], Callable[[Any], str]] = {
    SpecChanged: _spec_changed,
    SpecRejected: _spec_rejected,
    WorkloadObserved: _workload_observed,
    WorkloadActed: _workload_acted,
    ScalingApplied: _scaling_applied,
    MetricsSampled: _metrics_sampled,
    MetricsAssessed: _metrics_assessed,
    DemandObserved: _demand_observed,
    DemandSummed: _demand_observed,
    DemandPending: _demand_pending,
    ScalingDemanded: _scaling_demanded,
    ScalingDecided: _scaling_decided,
    ScalingAllocated: _scaling_allocated,
    ScalingRefused: _scaling_refused,
    StateStored: _state_stored,
    Woken: _woken,
    RoutePublished: _route_published,
    RouteAcknowledged: _route_acknowledged,
    RoutesResolved: _routes_resolved,
    ModelRequested: _model_requested,
    ModelProgressed: _model_progressed,
    ModelReady: _model_ready,
    ModelFailed: _model_failed,
    ControlFrozen: _order("frozen"),
    ControlThawed: _order("thawed"),
    ControlApproved: _approved,
    AuditSealed: _audit_sealed,
}
