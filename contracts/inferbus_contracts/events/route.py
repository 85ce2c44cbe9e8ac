"""The routers' tables: one message per ModelRoute and per ModelServer."""

from enum import StrEnum
from typing import ClassVar, Literal

from pydantic import Field

from inferbus_contracts.base import EventData


class StringRule(EventData):
    """How a text must look; exactly one way is set."""

    exact: str | None = None
    prefix: str | None = None
    regex: str | None = None


class MatchRule(EventData):
    """All conditions must hold; an absent one always does."""

    headers: dict[str, StringRule] = Field(default_factory=dict)
    """By lower-case header name."""
    uri: StringRule | None = None
    model: str | None = None
    """The model name in the body."""


class TargetShare(EventData):
    """One target of a rule."""

    server: str
    """Key of the ModelServer."""
    weight: int = 100


class RuleEntry(EventData):
    """One rule of a route; inactive rules are left out by the publisher."""

    name: str = ""
    match: MatchRule | None = None
    targets: list[TargetShare]


class TokenLimit(EventData):
    """Token rate limit of a route."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    unit_seconds: int
    redis: str | None = None
    """`host:port` where the limit is shared between routers."""


class RouteEntry(EventData):
    """A ModelRoute as the router needs it."""

    model_name: str = ""
    adapters: list[str] = Field(default_factory=list)
    """LoRA names that the route serves beside its model name."""
    created_at_ms: int = 0
    owned_by: str = ""
    rules: list[RuleEntry]
    limit: TokenLimit | None = None


class EndpointEntry(EventData):
    """One address that serves a model."""

    pod: str
    address: str
    port: int
    group: str = ""
    role: Literal["", "prefill", "decode"] = ""
    ready: bool = True
    draining: bool = False
    """Finishes what runs, takes nothing new."""


class ServerEntry(EventData):
    """A ModelServer with its endpoints."""

    model: str | None = None
    """The upstream model name; None leaves the client's name in place."""
    engine: str = ""
    prefill_min_tokens: int | None = Field(default=None, ge=0)
    """Requests with a shorter prompt go to a decode endpoint alone; None: none do."""
    bootstrap_port: int | None = Field(default=None, ge=1, le=65535)
    """Where prefill and decode of SGLang meet; None: where the decode engine expects it."""
    protocol: Literal["http", "https"] = "http"
    target: str | None = None
    """Key of the scale target behind the endpoints: demand is reported under it."""
    timeout_ms: int | None = None
    retry_attempts: int = 0
    retry_interval_ms: int = 100
    kv_connector: str | None = None
    endpoints: list[EndpointEntry] = Field(default_factory=list)


class RoutePublished(EventData):
    """One part of the table: a route or a server, whole.

    A router holds the table when the digest over its parts (`digest` of the sorted list of
    `[key, digest]`) equals the `table_digest` of the newest message.
    """

    event_type: ClassVar[str] = "route.published"

    revision: int
    """Grows with every published part."""
    digest: str
    table_digest: str
    deleted: bool = False
    route: RouteEntry | None = None
    server: ServerEntry | None = None


class RouteAcknowledged(EventData):
    """A router serves a revision."""

    event_type: ClassVar[str] = "route.acknowledged"

    revision: int
    table_digest: str
    lag_ms: int
    """From publication to being served."""


class ConditionStatus(StrEnum):
    """Kubernetes' three values."""

    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"


class ConditionFact(EventData):
    """One condition, without its times: the spec-watcher adds them on change."""

    type: str
    status: ConditionStatus
    reason: str
    message: str = ""


class RoutesResolved(EventData):
    """What became of a route or model server: accepted, references resolved, endpoints ready."""

    event_type: ClassVar[str] = "routes.resolved"

    uid: str
    generation: int
    conditions: list[ConditionFact]
    endpoints: int = 0
    ready_endpoints: int = 0
