"""The console's queries: `inferbus.v1.api.console.<query>`."""

from enum import StrEnum
from typing import Any

from pydantic import Field

from inferbus_contracts.api.objects import Reply
from inferbus_contracts.base import EventData
from inferbus_contracts.errors import Problem
from inferbus_contracts.subjects import ROOT


class ConsoleQuery(StrEnum):
    """What can be asked for."""

    WHY = "why"
    TOP = "top"
    STATUS = "status"
    ORDER = "order"


def console_subject(query: ConsoleQuery) -> str:
    """Where a query goes."""
    return f"{ROOT}.api.console.{query.value}"


class WhyRequest(EventData):
    """The last decisions about a target, newest first."""

    target: str
    """Key of a target or policy; a bare name where it is unambiguous."""
    limit: int = Field(default=1, ge=1, le=100)


class AnswerRow(EventData):
    """What the reconciler answered about one target."""

    id: str
    """Of the `scaling.applied` event."""
    time_ms: int
    target: str
    body: dict[str, Any]


class DemandRow(EventData):
    """The newest total of a mix; the allocation may be older where it still serves."""

    id: str
    """Of the `scaling.demanded` event."""
    time_ms: int
    body: dict[str, Any]


class FreezeRow(EventData):
    """A freeze in force."""

    scope: str
    who: str
    why: str
    until_ms: int | None = None


class Standing(EventData):
    """What holds about a key now, whatever was decided before."""

    freezes: list[FreezeRow] = Field(default_factory=list)
    problems: list[Problem] = Field(default_factory=list)
    """Why its policy can't be decided by."""
    next_look_ms: int | None = None
    """When it is decided again without a new sample; None: not by itself."""
    next_look_reason: str = ""


class ExplainedDecision(EventData):
    """One decision and what became of it."""

    id: str
    type: str
    time_ms: int
    sequence: int
    key: str
    body: dict[str, Any]
    """The event's body: `ScalingDecided` or `ScalingAllocated`."""
    applied: list[dict[str, Any]] = Field(default_factory=list)
    """Bodies of the `scaling.applied` events that answer it."""
    answers: list[AnswerRow] = Field(default_factory=list)
    """The same with where they come from, oldest first."""
    demand: DemandRow | None = None
    """Of the last allocation of a mix."""
    standing: Standing | None = None
    """Of the last decision of its key."""


class WhyReply(Reply):
    """Decisions, newest first."""

    target: str | None = None
    """Key of what was asked about."""
    decisions: list[ExplainedDecision] = Field(default_factory=list)


class TopRequest(EventData):
    """The live picture of all targets and models."""


class TargetRow(EventData):
    """One workload."""

    target: str
    desired: int
    replicas: int
    ready: int
    policy: str = ""
    last_decision: str = ""
    """What was decided last and by which limiter, in a few words."""
    last_decision_ms: int | None = None
    metrics: dict[str, float] = Field(default_factory=dict)


class ModelRow(EventData):
    """The traffic of one client-facing model over the last ten seconds."""

    model: str
    target: str
    requests_per_second: float
    errors_per_second: float
    output_tokens_per_second: float
    queued: int
    in_flight: int
    ttft_p50_ms: float | None = None
    ttft_p99_ms: float | None = None


class TopReply(Reply):
    """Rows in key order."""

    targets: list[TargetRow] = Field(default_factory=list)
    models: list[ModelRow] = Field(default_factory=list)


class InventoryRequest(EventData):
    """What stands on the bus, and how far behind its readers are (`status`)."""

    nodes: list[str] = Field(default_factory=list)
    """Nodes whose command consumers are to be there."""


class StreamRow(EventData):
    """One stream."""

    name: str
    messages: int
    bytes: int
    max_bytes: int | None = None
    """None: as much as there is."""


class DurableRow(EventData):
    """One durable consumer."""

    name: str
    stream: str
    service: str
    waiting: int
    """Events that were not delivered yet: the lag."""
    in_flight: int
    """Events that were delivered and not answered yet."""
    redelivered: int


class RouterRow(EventData):
    """One router, as it last spoke."""

    router: str
    revision: int
    """Revision of the table that it serves."""
    published_revision: int
    """The newest revision there is."""
    lag_ms: int
    """From publication to being served, at its last change."""
    seen_ms: int
    """When it said so, virtual time."""


class InventoryReply(Reply):
    """The bus as it stands."""

    now_ms: int = 0
    """Virtual time."""
    clock_rate: float = 1.0
    streams: list[StreamRow] = Field(default_factory=list)
    durables: list[DurableRow] = Field(default_factory=list)
    routers: list[RouterRow] = Field(default_factory=list)
    missing: list[str] = Field(default_factory=list)
    """What the platform needs and isn't there, with the reason."""
    dead_letters: int = 0


class OrderVerb(StrEnum):
    """What a person may order."""

    FREEZE = "freeze"
    THAW = "thaw"
    APPROVE = "approve"


class OrderRequest(EventData):
    """An order; it becomes a `control.*` event."""

    verb: OrderVerb
    scope: str
    """Key of a target, `Namespace/_/<name>` or `Platform/_/all`."""
    who: str
    why: str
    until_ms: int | None = None
    decision_id: str | None = None


class OrderReply(Reply):
    """The id of the event that the order became."""

    event_id: str = ""
