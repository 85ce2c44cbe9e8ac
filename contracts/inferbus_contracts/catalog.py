"""The table of events: who writes each, in which stream it stands, who reads it.

DESIGN section 4 as data. Streams, inboxes, permissions, schemas and AsyncAPI documents derive from
it, so an event is added here and nowhere else.
"""

from dataclasses import dataclass
from enum import StrEnum

from inferbus_contracts.base import EventData
from inferbus_contracts.events.audit import AuditSealed
from inferbus_contracts.events.control import ControlApproved, ControlFrozen, ControlThawed
from inferbus_contracts.events.demand import DemandObserved, DemandPending, DemandSummed
from inferbus_contracts.events.metrics import MetricsAssessed, MetricsSampled
from inferbus_contracts.events.model import (
    ModelFailed,
    ModelProgressed,
    ModelReady,
    ModelRequested,
)
from inferbus_contracts.events.route import RouteAcknowledged, RoutePublished, RoutesResolved
from inferbus_contracts.events.scaling import (
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
from inferbus_contracts.services import Service


class Stream(StrEnum):
    """The streams events are written to."""

    FACTS = "FACTS"
    TELEMETRY = "TELEMETRY"
    DEMAND = "DEMAND"
    DECISIONS = "DECISIONS"
    ROUTES = "ROUTES"
    COMMANDS = "COMMANDS"
    AUDIT = "AUDIT"


@dataclass(frozen=True, kw_only=True)
class EventSpec:
    """One row of the table."""

    data: type[EventData]
    type: str
    """`<domain>.<fact>`."""
    writer: Service
    stream: Stream
    readers: frozenset[Service]
    key: str
    """What the event is keyed by, in words."""
    ttl_seconds: int | None = None
    """Removed from the stream after that long, though the stream keeps longer; None: never."""
    rollup: bool = False
    """True where a message replaces all earlier ones of its subject."""


_S = Service
_EVERYONE = frozenset(_S) - {_S.PROVISIONER}
_DECIDERS = (_S.AUTOSCALER, _S.OPTIMIZER)
_DECISION_SECONDS = 90 * 24 * 3600

STATE_CARRIERS: dict[Service, type[EventData]] = {
    _S.AUTOSCALER: ScalingDecided,
    _S.OPTIMIZER: ScalingAllocated,
}
"""By decider, the decision that its state may ride on (ADR 0018)."""


def state_beside(carrier: type[EventData]) -> str:
    """The type of a state that rides on no decision.

    It shares its second token with the carrier's, so that one filter means these two and nothing
    else: `*.decided` is `scaling.decided` and `state.decided`.
    """
    return f"{StateStored.event_type}.{_fact(carrier)}"


def state_or_carrier(carrier: type[EventData]) -> str:
    """The filter for both, in the place of a type."""
    return f"*.{_fact(carrier)}"


def _fact(carrier: type[EventData]) -> str:
    return carrier.event_type.partition(".")[2]


_PEOPLE = frozenset({_S.CONSOLE, _S.CLI})


def _event(
    data: type[EventData],
    writer: Service,
    stream: Stream,
    *readers: Service,
    key: str,
    type_: str = "",
    ttl_seconds: int | None = None,
    rollup: bool = False,
) -> EventSpec:
    return EventSpec(
        type=type_ or data.event_type,
        data=data,
        writer=writer,
        stream=stream,
        readers=frozenset(readers) | _PEOPLE,
        key=key,
        ttl_seconds=ttl_seconds,
        rollup=rollup,
    )


_ROWS = (
    _event(SpecChanged, _S.SPEC_WATCHER, Stream.FACTS, *_EVERYONE, key="object"),
    _event(SpecRejected, _S.SPEC_WATCHER, Stream.FACTS, key="object"),
    _event(
        WorkloadObserved,
        _S.WORKLOAD_RECONCILER,
        Stream.FACTS,
        _S.SPEC_WATCHER,
        _S.METRICS_COLLECTOR,
        *_DECIDERS,
        _S.ROUTER_CONFIG_PUBLISHER,
        _S.WORKLOAD_RECONCILER,
        key="workload",
    ),
    _event(WorkloadActed, _S.WORKLOAD_RECONCILER, Stream.FACTS, _S.SPEC_WATCHER, key="workload"),
    _event(
        ScalingApplied,
        _S.WORKLOAD_RECONCILER,
        Stream.FACTS,
        *_DECIDERS,
        _S.SPEC_WATCHER,
        key="target",
    ),
    _event(
        MetricsSampled,
        _S.METRICS_COLLECTOR,
        Stream.TELEMETRY,
        _S.AUTOSCALER,
        _S.SPEC_WATCHER,
        key="target, or policy of a mix",
    ),
    _event(
        MetricsAssessed,
        _S.METRICS_COLLECTOR,
        Stream.FACTS,
        _S.SPEC_WATCHER,
        _S.METRICS_COLLECTOR,
        key="policy, or binding",
    ),
    _event(
        DemandObserved,
        _S.ROUTER,
        Stream.DEMAND,
        *_DECIDERS,
        key="target",
        ttl_seconds=3600,
    ),
    _event(DemandSummed, _S.ROUTER, Stream.DEMAND, _S.AUTOSCALER, key="target"),
    _event(DemandPending, _S.ROUTER, Stream.DEMAND, _S.AUTOSCALER, key="target", ttl_seconds=3600),
    _event(
        ScalingDemanded,
        _S.AUTOSCALER,
        Stream.DECISIONS,
        _S.OPTIMIZER,
        _S.SPEC_WATCHER,
        key="policy",
        ttl_seconds=_DECISION_SECONDS,
    ),
    _event(
        ScalingRefused, _S.AUTOSCALER, Stream.FACTS, _S.SPEC_WATCHER, _S.AUTOSCALER, key="policy"
    ),
    _event(
        ScalingDecided,
        _S.AUTOSCALER,
        Stream.DECISIONS,
        _S.WORKLOAD_RECONCILER,
        _S.SPEC_WATCHER,
        key="target",
        ttl_seconds=_DECISION_SECONDS,
    ),
    _event(
        ScalingAllocated,
        _S.OPTIMIZER,
        Stream.DECISIONS,
        _S.WORKLOAD_RECONCILER,
        _S.SPEC_WATCHER,
        key="policy",
        ttl_seconds=_DECISION_SECONDS,
    ),
    *(
        _event(
            data,
            service,
            Stream.DECISIONS,
            service,
            key="target or policy",
            type_=f"{data.event_type}.{service.value}",
            rollup=data is StateStored,
        )
        for service in _DECIDERS
        for data in (StateStored, Woken)
    ),
    *(
        _event(
            StateStored,
            service,
            Stream.DECISIONS,
            service,
            key="target or policy",
            type_=state_beside(carrier),
            rollup=True,
        )
        for service, carrier in STATE_CARRIERS.items()
    ),
    _event(
        RoutePublished,
        _S.ROUTER_CONFIG_PUBLISHER,
        Stream.ROUTES,
        _S.ROUTER,
        _S.ROUTER_CONFIG_PUBLISHER,
        key="route or model server",
    ),
    _event(
        RouteAcknowledged, _S.ROUTER, Stream.TELEMETRY, _S.ROUTER_CONFIG_PUBLISHER, key="router"
    ),
    _event(
        RoutesResolved,
        _S.ROUTER_CONFIG_PUBLISHER,
        Stream.FACTS,
        _S.SPEC_WATCHER,
        _S.ROUTER_CONFIG_PUBLISHER,
        key="route or model server",
    ),
    _event(
        ModelRequested,
        _S.WORKLOAD_RECONCILER,
        Stream.COMMANDS,
        _S.MODEL_DOWNLOADER,
        key="artifact and node",
    ),
    _event(
        ModelProgressed,
        _S.MODEL_DOWNLOADER,
        Stream.TELEMETRY,
        _S.SPEC_WATCHER,
        _S.WORKLOAD_RECONCILER,
        key="artifact and node",
    ),
    *(
        _event(
            data,
            _S.MODEL_DOWNLOADER,
            Stream.FACTS,
            _S.SPEC_WATCHER,
            _S.WORKLOAD_RECONCILER,
            _S.NODE_AGENT,
            _S.MODEL_DOWNLOADER,
            key="artifact and node",
        )
        for data in (ModelReady, ModelFailed)
    ),
    *(
        _event(
            data,
            _S.CONSOLE,
            Stream.FACTS,
            _S.WORKLOAD_RECONCILER,
            *_DECIDERS,
            _S.SPEC_WATCHER,
            key="scope",
        )
        for data in (ControlFrozen, ControlThawed, ControlApproved)
    ),
    _event(AuditSealed, _S.CONSOLE, Stream.AUDIT, key="stream"),
)

EVENTS: dict[str, EventSpec] = {row.type: row for row in _ROWS}
"""Every event by type."""


def written_by(service: Service) -> tuple[EventSpec, ...]:
    """The events of one writer, in table order."""
    return tuple(row for row in _ROWS if row.writer is service)


def read_by(service: Service) -> tuple[EventSpec, ...]:
    """The events that a service reads, in table order."""
    return tuple(row for row in _ROWS if service in row.readers)
