"""The routers' tables: one message per ModelRoute and per ModelServer."""

from enum import StrEnum
from typing import ClassVar, Literal

from pydantic import Field

from inferbus_contracts.base import EventData

Authentication = Literal["required", "none"]
"""Whether a route serves only clients that prove who they are, or everybody."""


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
    """Key of the ModelServer, InferencePool or ExternalModelProvider."""
    weight: int = 100


class PathType(StrEnum):
    """How a path is compared, in the order of precedence."""

    EXACT = "Exact"
    PREFIX = "PathPrefix"
    """By whole segments; a slash at the end means nothing."""
    REGEX = "RegularExpression"


class HttpMatch(EventData):
    """One match of an HTTPRoute's rule; all of it must hold."""

    path_type: PathType = PathType.PREFIX
    path: str = "/"
    method: str = ""
    """Empty: any."""
    headers: dict[str, StringRule] = Field(default_factory=dict)
    """By lower-case header name."""
    query: dict[str, StringRule] = Field(default_factory=dict)
    """By parameter name, whose case counts."""


class UrlRewrite(EventData):
    """What an engine gets in place of what the client asked for."""

    hostname: str | None = None
    full_path: str | None = None
    prefix: str | None = None
    """In place of the prefix that matched."""


class RuleEntry(EventData):
    """One rule of a route; inactive rules are left out by the publisher."""

    name: str = ""
    match: MatchRule | None = None
    targets: list[TargetShare]
    http: list[HttpMatch] | None = None
    """Of an HTTPRoute: one of them must hold."""
    rewrite: UrlRewrite | None = None


class TokenLimit(EventData):
    """Token rate limit of a route."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    unit_seconds: int
    redis: str | None = None
    """`host:port` where the limit is shared between routers."""
    per: list[Literal["name", "principal"]] | None = None
    """For each of what it holds: the name that clients use, and who sends the request; empty: for
    the route as a whole; None: for each of both.
    """


class ParentEntry(EventData):
    """A Gateway that a route is attached to, or one listener of it."""

    gateway: str
    """Key of the Gateway."""
    section: str = ""
    """Name of the listener; empty: all."""
    port: int | None = None
    """Port of the listener; None: any."""


class RouteEntry(EventData):
    """A ModelRoute, or an HTTPRoute, as the router needs it; the key tells which."""

    model_name: str = ""
    adapters: list[str] = Field(default_factory=list)
    """LoRA names that the route serves beside its model name."""
    created_at_ms: int = 0
    owned_by: str = ""
    rules: list[RuleEntry]
    limit: TokenLimit | None = None
    authentication: Authentication | None = None
    """None: as the router is set up."""
    parents: list[ParentEntry] | None = None
    """None: attached to no Gateway. An HTTPRoute names the listeners that take it."""
    hostnames: list[str] | None = None
    """Of an HTTPRoute; none: any host of its listeners."""


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


class SessionSource(EventData):
    """Where a request says which session it belongs to."""

    kind: Literal["Header", "Query", "Cookie", "JWTClaim"]
    name: str


class SessionAffinity(EventData):
    """Sessions stay with the endpoint that served them."""

    seconds: int
    """Without a request for that long a session may go elsewhere."""
    sources: list[SessionSource]
    """In order: the first that gives a value decides."""


class ProviderEntry(EventData):
    """What an external provider needs beside a server of the fleet (routing spec 6.5)."""

    kind: Literal["OpenAI", "Anthropic"] = "OpenAI"
    """Whose API it speaks."""
    host: str
    """As its address has it, with the port where one is given."""
    base_path: str = ""
    """Of the address; without a slash at its end."""
    insecure_skip_verify: bool = False
    """Its certificate isn't checked."""
    auth: Literal["Bearer", "APIKey"] = "Bearer"
    """How the credential is sent."""
    secret_name: str = ""
    """The Secret of its namespace with the credential; empty: it takes none."""
    secret_key: str = ""
    headers: dict[str, str] = Field(default_factory=dict)
    """Sent with each request."""


class ServerEntry(EventData):
    """A ModelServer or an InferencePool with its endpoints, or an ExternalModelProvider with its
    address.
    """

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
    """Until the first byte of the response, all attempts together."""
    try_timeout_ms: int | None = None
    """The same for each attempt."""
    retry_attempts: int = 0
    retry_interval_ms: int = 100
    kv_connector: str | None = None
    session: SessionAffinity | None = None
    """None: requests of a session may go anywhere."""
    provider: ProviderEntry | None = None
    """None: endpoints are of the fleet."""
    endpoints: list[EndpointEntry] = Field(default_factory=list)


class ListenerEntry(EventData):
    """One listener of a Gateway that speaks HTTP."""

    name: str
    port: int
    hostname: str = ""
    """Exact, or `*.` before a suffix; empty: any."""


class GatewayEntry(EventData):
    """A Gateway of the routers' class."""

    listeners: list[ListenerEntry] = Field(default_factory=list)


class RoutePublished(EventData):
    """One part of the table: a route, a server or a gateway, whole.

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
    gateway: GatewayEntry | None = None


class RouteAcknowledged(EventData):
    """A router serves a revision."""

    event_type: ClassVar[str] = "route.acknowledged"

    revision: int
    table_digest: str
    lag_ms: int
    """From publication to being served."""
    without_credential: list[str] | None = None
    """Keys of the ExternalModelProviders whose credential the router can't read; None: of none."""


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
