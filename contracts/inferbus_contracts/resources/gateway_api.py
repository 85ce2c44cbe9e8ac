"""Gateway, HTTPRoute and InferencePool: kinds of others that say how requests come in.

Read with `model_validate` from documents that pass through admission as they are: these kinds have
owners and admission of their own. Invariant: only fields that are read stand here; whatever else a
document holds is left alone and is no error (Gateway API v1, Inference Extension v1).
"""

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from inferbus_contracts.resources.document import ResourcePart
from inferbus_contracts.resources.kinds import GATEWAY_GROUP
from inferbus_contracts.resources.metadata import LabelSelector, Resource
from inferbus_contracts.resources.networking import ParentReference
from inferbus_contracts.resources.scalars import Integer, Port


class ForeignPart(ResourcePart, extra="ignore"):
    """A mapping of a kind of others."""


class FromNamespaces(StrEnum):
    """From which namespaces a listener takes routes."""

    ALL = "All"
    SAME = "Same"
    SELECTOR = "Selector"
    NONE = "None"


class RouteNamespaces(ForeignPart):
    """Namespaces of routes."""

    from_: FromNamespaces = Field(default=FromNamespaces.SAME, alias="from")
    selector: LabelSelector | None = None


class RouteKind(ForeignPart):
    """A kind of routes."""

    group: str = GATEWAY_GROUP
    kind: str


class AllowedRoutes(ForeignPart):
    """Which routes a listener takes."""

    namespaces: RouteNamespaces = Field(default_factory=RouteNamespaces)
    kinds: list[RouteKind] = Field(default_factory=list)
    """None: whatever the listener's protocol has."""


class GatewayListener(ForeignPart):
    """Where a Gateway listens."""

    name: str
    hostname: str = ""
    """Empty: any."""
    port: Port
    protocol: str
    allowed_routes: AllowedRoutes = Field(default_factory=AllowedRoutes)


class GatewaySpec(ForeignPart):
    """What a Gateway offers."""

    gateway_class_name: str
    listeners: list[GatewayListener] = Field(default_factory=list)


class Gateway(Resource, extra="ignore"):
    """A Gateway."""

    spec: GatewaySpec


class PathMatch(ForeignPart):
    """How a path must look."""

    type: str = "PathPrefix"
    value: str = "/"


class NamedValueMatch(ForeignPart):
    """How a header or a query parameter must look."""

    type: str = "Exact"
    name: str
    value: str


class HTTPRouteMatch(ForeignPart):
    """All of it must hold."""

    path: PathMatch = Field(default_factory=PathMatch)
    headers: list[NamedValueMatch] = Field(default_factory=list)
    query_params: list[NamedValueMatch] = Field(default_factory=list)
    method: str = ""


class PathModifier(ForeignPart):
    """What becomes of a path."""

    type: str
    replace_full_path: str | None = None
    replace_prefix_match: str | None = None


class URLRewriteFilter(ForeignPart):
    """What an engine is asked for instead."""

    hostname: str | None = None
    path: PathModifier | None = None


class HTTPRouteFilter(ForeignPart):
    """Something done to a request."""

    type: str
    url_rewrite: URLRewriteFilter | None = None


class HTTPBackendRef(ForeignPart):
    """Where a share of a rule's requests goes."""

    group: str = ""
    kind: str = "Service"
    name: str
    namespace: str | None = None
    """Absent: the route's."""
    weight: Annotated[Integer, Field(ge=0, le=1_000_000)] = 1
    filters: list[HTTPRouteFilter] = Field(default_factory=list)


class HTTPRouteRule(ForeignPart):
    """Matches of which one must hold, and what then happens."""

    name: str = ""
    matches: list[HTTPRouteMatch] = Field(default_factory=list)
    """None: everything."""
    filters: list[HTTPRouteFilter] = Field(default_factory=list)
    backend_refs: list[HTTPBackendRef] = Field(default_factory=list)


class HTTPRouteSpec(ForeignPart):
    """Where a route is attached, and its rules."""

    parent_refs: list[ParentReference] = Field(default_factory=list)
    hostnames: list[str] = Field(default_factory=list)
    rules: list[HTTPRouteRule] = Field(default_factory=lambda: [HTTPRouteRule()])


class HTTPRoute(Resource, extra="ignore"):
    """An HTTPRoute."""

    spec: HTTPRouteSpec


class PoolPort(ForeignPart):
    """A port of a pool's pods."""

    number: Port


class PoolSelector(ForeignPart):
    """Which pods belong to a pool."""

    match_labels: dict[str, str] = Field(default_factory=dict)


class InferencePoolSpec(ForeignPart):
    """Pods that serve."""

    selector: PoolSelector
    target_ports: list[PoolPort] = Field(default_factory=list)
    """The pods' ports, each an endpoint of its own."""


class InferencePool(Resource, extra="ignore"):
    """An InferencePool."""

    spec: InferencePoolSpec
