"""ModelRoute and ModelServer: which requests go where, and which pods answer them.

Invariant: the union of all versions (routing spec 1.1 and 1.2) and of the engines of both
platforms (ruling "engine enum").
"""

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from inferbus_contracts.resources.document import ResourcePart
from inferbus_contracts.resources.metadata import Resource
from inferbus_contracts.resources.scalars import Count, Duration, Integer, Port, parse_duration_ms


class StringMatch(ResourcePart):
    """How a text must look; when several are given exact counts before prefix before regex."""

    exact: str | None = None
    """The whole text."""
    prefix: str | None = None
    """How the text begins."""
    regex: str | None = None
    """An unanchored RE2 pattern."""


class BodyMatch(ResourcePart):
    """What the body of a request must say."""

    model: str | None = None
    """The model's name, exact; absent means any."""


class ModelMatch(ResourcePart):
    """All given conditions must hold."""

    headers: dict[str, StringMatch] = Field(default_factory=dict)
    """By header name, whatever its case."""
    uri: StringMatch | None = None
    """The path without the query."""
    body: BodyMatch | None = None


class TargetModel(ResourcePart):
    """Where a rule sends a share of its requests."""

    model_server_name: str | None = None
    """Name of a ModelServer of the same namespace."""
    external_model_provider_name: str | None = None
    """After v1.0.0."""
    weight: Annotated[Integer, Field(ge=0, le=100)] = 100
    """Share of the rule's requests, relative to its other targets."""


class RouteRule(ResourcePart):
    """The first rule that matches decides."""

    name: str | None = None
    """A name for people."""
    model_match: ModelMatch | None = None
    """Absent matches every request."""
    target_models: list[TargetModel] = Field(max_length=16)
    """Where requests go, each with its share."""


class RateUnit(StrEnum):
    """The unit of time of a rate limit."""

    SECOND = "second"
    MINUTE = "minute"
    HOUR = "hour"
    DAY = "day"
    MONTH = "month"


class RedisAddress(ResourcePart):
    """Where shared limits are counted."""

    address: str
    """host:port."""


class GlobalRateLimit(ResourcePart):
    """Limits that all routers count together."""

    redis: RedisAddress | None = None


class RateLimit(ResourcePart):
    """Tokens per unit of time; an absent limit is none."""

    input_tokens_per_unit: Annotated[Integer, Field(ge=1, le=2**32 - 1)] | None = None
    """Tokens of prompts per unit of time."""
    output_tokens_per_unit: Annotated[Integer, Field(ge=1, le=2**32 - 1)] | None = None
    """Tokens of answers per unit of time."""
    unit: RateUnit = RateUnit.SECOND
    global_: GlobalRateLimit | None = Field(default=None, alias="global")


class ParentReference(ResourcePart):
    """A Gateway that the route is attached to (v0.2.0)."""

    name: str = Field(min_length=1, max_length=253)
    """Name of the Gateway."""
    group: str = "gateway.networking.k8s.io"
    """Group of the Gateway's kind."""
    kind: str = "Gateway"
    """Kind of the Gateway."""
    namespace: str | None = None
    """Namespace of the Gateway; absent means the route's."""
    section_name: str | None = None
    """Name of a listener."""
    port: Port | None = None
    """Port of a listener."""


class ModelRouteSpec(ResourcePart):
    """The models a route answers for and its rules."""

    model_name: str | None = None
    """The model that clients ask for; stays once it is set."""
    lora_adapters: list[str] = Field(default_factory=list, max_length=10)
    """Adapters that clients may ask for by name."""
    parent_refs: list[ParentReference] = Field(default_factory=list)
    """Gateways that the route is attached to."""
    rules: list[RouteRule] = Field(max_length=16)
    """In order; the first that matches decides."""
    rate_limit: RateLimit | None = None


class ModelRoute(Resource):
    """A route."""

    spec: ModelRouteSpec


class InferenceEngine(StrEnum):
    """The engine behind a ModelServer; `OpenAI` is anything that speaks that API."""

    VLLM = "vLLM"
    SGLANG = "SGLang"
    LLAMA_CPP = "LlamaCpp"
    TGI = "TGI"
    TENSORRT_LLM = "TensorRTLLM"
    OLLAMA = "Ollama"
    MINDIE = "MindIE"
    OPENAI = "OpenAI"


class PDGroup(ResourcePart):
    """How prefill and decode pods of one group are told apart."""

    group_key: str
    """The label whose value pods of one group share."""
    prefill_labels: dict[str, str]
    """Labels of prefill pods."""
    decode_labels: dict[str, str]
    """Labels of decode pods."""


class WorkloadSelector(ResourcePart):
    """Which pods serve."""

    match_labels: dict[str, str] = Field(default_factory=dict)
    """Labels of the pods; empty selects all of the namespace."""
    pd_group: PDGroup | None = None


class WorkloadProtocol(StrEnum):
    """How to speak to the pods."""

    HTTP = "http"
    HTTPS = "https"


class WorkloadPort(ResourcePart):
    """The port the pods serve on."""

    port: Port
    """Port of the pods."""
    protocol: WorkloadProtocol = WorkloadProtocol.HTTP


class Retry(ResourcePart):
    """Further attempts after a failed one."""

    attempts: Count = 0
    """Attempts after the first."""
    retry_interval: Duration = "100ms"
    """Pause before each of them."""

    @property
    def retry_interval_ms(self) -> int:
        """`retryInterval` in milliseconds."""
        return parse_duration_ms(self.retry_interval)


class SessionSourceType(StrEnum):
    """Which part of a request names its session."""

    HEADER = "Header"
    QUERY = "Query"
    COOKIE = "Cookie"
    JWT_CLAIM = "JWTClaim"


class SessionKeySource(ResourcePart):
    """Where a request says which session it belongs to."""

    type: SessionSourceType
    """Which part of the request."""
    name: str = Field(min_length=1, max_length=253)
    """Name of the header, query parameter, cookie or claim."""


class SessionSticky(ResourcePart):
    """Requests of a session go to the pod that served it before (after v1.0.0)."""

    session_affinity_seconds: Annotated[Integer, Field(ge=1, le=2**31 - 1)] = 300
    """Without a request for that long a session may go elsewhere."""
    sources: list[SessionKeySource] = Field(min_length=1, max_length=16)
    """In order; the first that gives a value decides."""


class TrafficPolicy(ResourcePart):
    """How long to wait, how often to try, and which requests stay together."""

    timeout: Duration | None = None
    """How long an answer may take; absent means for ever."""
    retry: Retry | None = None
    session_sticky: SessionSticky | None = None

    @property
    def timeout_ms(self) -> int | None:
        """`timeout` in milliseconds; None means no limit."""
        return None if self.timeout is None else parse_duration_ms(self.timeout)


class KVConnectorType(StrEnum):
    """How the key-value cache goes from prefill to decode pods."""

    HTTP = "http"
    LMCACHE = "lmcache"
    NIXL = "nixl"
    MOONCAKE = "mooncake"
    SGLANG = "sglang"
    """SGLang's own; what its engines use where nothing else is said."""


class KVConnector(ResourcePart):
    """The transfer of the key-value cache."""

    type: KVConnectorType = KVConnectorType.HTTP


class ModelServerSpec(ResourcePart):
    """Pods that serve one model."""

    model: str | None = Field(default=None, max_length=256)
    """The name the engine knows the model by; absent passes on what the client wrote."""
    inference_engine: InferenceEngine
    workload_selector: WorkloadSelector
    workload_port: WorkloadPort | None = None
    """Optional in v0.1.0, required later."""
    traffic_policy: TrafficPolicy | None = None
    kv_connector: KVConnector | None = None


class ModelServer(Resource):
    """A set of pods that serve one model."""

    spec: ModelServerSpec
