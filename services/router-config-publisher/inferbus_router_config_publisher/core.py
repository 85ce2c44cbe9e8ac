"""The join: from the last facts about routes, servers and workloads to parts and conditions.

Invariant: `part` and `resolved` are functions of the last fact of each key, whatever order the
facts came in; and whenever either of them changes for a key, the fact that changed it said so.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from inferbus_contracts.conditions import condition
from inferbus_contracts.events.route import RoutesResolved
from inferbus_contracts.events.spec import SpecChanged
from inferbus_contracts.events.workload import WorkloadObserved
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.resources import kinds
from inferbus_contracts.resources.external_provider import ExternalModelProvider
from inferbus_contracts.resources.metadata import Resource
from inferbus_contracts.resources.networking import ModelRoute, ModelServer
from inferbus_router_config_publisher.policy_conditions import (
    ROUTE_TYPES,
    SERVER_TYPES,
    ServerCounts,
    route_conditions,
    server_conditions,
    unreadable_conditions,
)
from inferbus_router_config_publisher.policy_objects import Stored, doubts_about, read_object
from inferbus_router_config_publisher.policy_origin import ORIGIN_KINDS
from inferbus_router_config_publisher.policy_parts import Part
from inferbus_router_config_publisher.policy_providers import READY, Providers
from inferbus_router_config_publisher.policy_routes import Routes, RouteView
from inferbus_router_config_publisher.policy_servers import Servers
from inferbus_router_config_publisher.policy_templates import WORKLOAD_KINDS, template_labels

_NOTHING: frozenset[ObjectKey] = frozenset()

_NO_GATEWAY = "spec.parentRefs: the routers are no Gateways; the route holds on their own port"


@dataclass(frozen=True, slots=True, kw_only=True)
class Affected:
    """What a fact may have changed."""

    parts: frozenset[ObjectKey] = _NOTHING
    """Keys whose part of the table may differ now."""
    conditions: frozenset[ObjectKey] = _NOTHING
    """Keys whose conditions may differ now."""
    urgent: bool = False
    """An endpoint that routers send requests to takes none any more."""


class Join:
    """The state of the publisher."""

    def __init__(self) -> None:
        self._routes = Routes()
        self._servers = Servers()
        self._providers = Providers()
        self._deleted: set[ObjectKey] = set()

    def keys(self) -> frozenset[ObjectKey]:
        """Every route, server and provider that exists."""
        stored = (self._routes.stored, self._servers.stored, self._providers.stored)
        return frozenset().union(*stored)

    def fold_object(self, key: ObjectKey, fact: SpecChanged) -> Affected:
        """An object changed or was deleted; kinds that routing doesn't read change nothing."""
        if key.kind == kinds.MODEL_ROUTE:
            self._note_deletion(key, fact)
            return self._fold_route(key, read_object(key, fact, ModelRoute))
        if key.kind == kinds.MODEL_SERVER:
            self._note_deletion(key, fact)
            return self._fold_server(key, read_object(key, fact, ModelServer))
        if key.kind == kinds.EXTERNAL_MODEL_PROVIDER:
            self._note_deletion(key, fact)
            return self._fold_provider(key, read_object(key, fact, ExternalModelProvider))
        if key.kind in WORKLOAD_KINDS:
            templates = {} if fact.deleted else template_labels(key, fact.object)
            return self._of_servers(self._servers.set_templates(key, templates))
        if key.kind in ORIGIN_KINDS:
            stored = read_object(key, fact, Resource)
            routes, others = self._routes.set_origin(key, stored.resource if stored else None)
            return Affected(parts=routes, conditions=routes | others)
        return Affected()

    def fold_workload(self, key: ObjectKey, observed: WorkloadObserved) -> Affected:
        """A workload was observed."""
        servers, lost = self._servers.set_pods(key, observed)
        return self._of_servers(servers, urgent=lost)

    def report_credentials(
        self, missing: Mapping[ObjectKey, frozenset[ObjectKey]]
    ) -> frozenset[ObjectKey]:
        """By router, the providers whose credential it can't read; returns those concerned."""
        return self._providers.report(missing)

    def is_settled(self, key: ObjectKey) -> bool:
        """Whether the facts say what the part of a route or server should be.

        They don't where the object can't be read, or was never heard of: what is published of it
        then stays as it is (DESIGN 1, freeze rather than guess).
        """
        stored = self._stored(key)
        return key in self._deleted if stored is None else stored.resource is not None

    def part(self, key: ObjectKey) -> Part | None:
        """The part of the table that a key should have now; None where it should have none."""
        server = self._servers.view(key) or self._providers.view(key)
        if server is not None:
            return Part.of(server.entry)
        route = self._routes.view(key)
        if route is None or self._routes.names.replaced_by(key) is not None:
            return None
        return Part.of(route.entry)

    def resolved(self, key: ObjectKey) -> RoutesResolved | None:
        """What is to be said about a route or server; None when it doesn't exist."""
        stored = self._stored(key)
        if stored is None:
            return None
        known: dict[str, Any] = {"uid": stored.uid, "generation": stored.generation}
        server, route = self._servers.view(key), self._routes.view(key)
        if server is not None:
            assert isinstance(stored.resource, ModelServer)
            doubts = doubts_about(key, stored.resource)
            return RoutesResolved(
                **known,
                conditions=server_conditions(stored.resource, server, doubts),
                endpoints=server.endpoints,
                ready_endpoints=server.ready_endpoints,
            )
        if route is not None:
            return self._resolved_route(key, known, route)
        provider = self._providers.view(key)
        if provider is not None:
            return RoutesResolved(
                **known,
                conditions=self._providers.conditions(key, provider),
                endpoints=1,
                ready_endpoints=1,
            )
        if key.kind == kinds.EXTERNAL_MODEL_PROVIDER:
            return RoutesResolved(
                **known, conditions=[condition(READY, False, "ConfigurationInvalid", stored.fault)]
            )
        types = SERVER_TYPES if key.kind == kinds.MODEL_SERVER else ROUTE_TYPES
        return RoutesResolved(**known, conditions=unreadable_conditions(types, stored.fault))

    def _stored(self, key: ObjectKey) -> Stored[Resource] | None:
        return (
            self._routes.stored.get(key)
            or self._servers.stored.get(key)
            or self._providers.stored.get(key)
        )

    def _note_deletion(self, key: ObjectKey, fact: SpecChanged) -> None:
        if fact.deleted:
            self._deleted.add(key)
        else:
            self._deleted.discard(key)

    def _fold_route(self, key: ObjectKey, stored: Stored[ModelRoute] | None) -> Affected:
        concerned = self._routes.set_route(key, stored) | {key}
        return Affected(parts=concerned, conditions=concerned)

    def _fold_server(self, key: ObjectKey, stored: Stored[ModelServer] | None) -> Affected:
        self._servers.set_server(key, stored)
        return self._of_servers(frozenset({key}))

    def _fold_provider(
        self, key: ObjectKey, stored: Stored[ExternalModelProvider] | None
    ) -> Affected:
        resource = stored.resource if stored else None
        doubts = doubts_about(key, resource) if resource is not None else []
        self._providers.set_provider(key, stored, doubts)
        return self._of_servers(frozenset({key}))

    def _of_servers(self, servers: frozenset[ObjectKey], *, urgent: bool = False) -> Affected:
        routes = (self._routes.leading_to(server) for server in servers)
        return Affected(parts=servers, conditions=servers.union(*routes), urgent=urgent)

    def _resolved_route(
        self, key: ObjectKey, known: dict[str, Any], route: RouteView
    ) -> RoutesResolved:
        doubts = [*doubts_about(key, route.resource), *route.rules.doubts]
        if route.resource.spec.parent_refs:
            doubts.append(_NO_GATEWAY)
        servers = [self._counts(server) for server in route.rules.servers]
        replaced_by = self._routes.names.replaced_by(key)
        conflicts = [] if replaced_by else self._routes.names.conflicts(key)
        return RoutesResolved(
            **known,
            conditions=route_conditions(route.rules, servers, doubts, conflicts, replaced_by),
            endpoints=sum(server.endpoints for server in servers),
            ready_endpoints=sum(server.ready_endpoints for server in servers),
        )

    def _counts(self, key: ObjectKey) -> ServerCounts:
        if self._providers.view(key) is not None:
            return ServerCounts(
                key=key, exists=True, endpoints=1, ready_endpoints=1, is_served=True
            )
        view = self._servers.view(key)
        if view is None:
            return ServerCounts(key=key, exists=self._stored(key) is not None)
        return ServerCounts(
            key=key,
            exists=True,
            endpoints=view.endpoints,
            ready_endpoints=view.ready_endpoints,
            is_served=view.is_served,
        )
