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
from inferbus_contracts.resources.gateway_api import Gateway, HTTPRoute, InferencePool
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
from inferbus_router_config_publisher.policy_http_routes import is_ours, parent_fault
from inferbus_router_config_publisher.policy_ingress import (
    Ingress,
    gateway_conditions,
    http_route_conditions,
)
from inferbus_router_config_publisher.policy_objects import (
    Stored,
    doubts_about,
    read_foreign,
    read_object,
)
from inferbus_router_config_publisher.policy_origin import ORIGIN_KINDS
from inferbus_router_config_publisher.policy_parts import Part
from inferbus_router_config_publisher.policy_pools import as_server, further_ports
from inferbus_router_config_publisher.policy_providers import READY, Providers
from inferbus_router_config_publisher.policy_routes import Routes, RouteView
from inferbus_router_config_publisher.policy_servers import Servers
from inferbus_router_config_publisher.policy_templates import WORKLOAD_KINDS, template_labels

_NOTHING: frozenset[ObjectKey] = frozenset()


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
        self._ingress = Ingress()
        self._providers = Providers()
        self._deleted: set[ObjectKey] = set()

    def keys(self) -> frozenset[ObjectKey]:
        """Every route, server and provider that exists."""
        stored = (
            self._routes.stored,
            self._servers.stored,
            self._ingress.stored,
            self._providers.stored,
        )
        return frozenset().union(*stored)

    def fold_object(self, key: ObjectKey, fact: SpecChanged) -> Affected:
        """An object changed or was deleted; kinds that routing doesn't read change nothing."""
        if key.kind == kinds.MODEL_ROUTE:
            self._note_deletion(key, fact)
            return self._fold_route(key, read_object(key, fact, ModelRoute))
        if key.kind == kinds.MODEL_SERVER:
            self._note_deletion(key, fact)
            return self._fold_server(key, read_object(key, fact, ModelServer))
        if key.kind in kinds.INGRESS_KINDS:
            self._note_deletion(key, fact)
            return self._fold_ingress(key, fact)
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
        http_route = self._ingress.view(key)
        if http_route is not None:
            return Part.of(http_route.entry)
        gateway = self._ingress.gateway_entry(key)
        if gateway is not None:
            return Part.of(gateway)
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
            is_own = key.kind == kinds.MODEL_SERVER
            doubts = doubts_about(key, stored.resource) if is_own else []
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
        if stored.resource is not None:
            return self._resolved_ingress(key, known)
        types = SERVER_TYPES if key.kind == kinds.MODEL_SERVER else ROUTE_TYPES
        return RoutesResolved(**known, conditions=unreadable_conditions(types, stored.fault))

    def _stored(self, key: ObjectKey) -> Stored[Resource] | None:
        return (
            self._routes.stored.get(key)
            or self._servers.stored.get(key)
            or self._ingress.stored.get(key)
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

    def _fold_ingress(self, key: ObjectKey, fact: SpecChanged) -> Affected:
        if key.kind == kinds.INFERENCE_POOL:
            pool = read_foreign(key, fact, InferencePool)
            server = as_server(pool) if pool else None
            self._servers.set_server(key, server, further_ports(pool))
            return self._of_servers(frozenset({key}))
        if key.kind == kinds.HTTP_ROUTE:
            self._ingress.set_route(key, read_foreign(key, fact, HTTPRoute))
            return Affected(parts=frozenset({key}), conditions=frozenset({key}))
        routes = self._ingress.set_gateway(key, read_foreign(key, fact, Gateway)) | {key}
        return Affected(parts=routes, conditions=routes | self._routes.attached_to(key))

    def _fold_provider(
        self, key: ObjectKey, stored: Stored[ExternalModelProvider] | None
    ) -> Affected:
        resource = stored.resource if stored else None
        doubts = doubts_about(key, resource) if resource is not None else []
        self._providers.set_provider(key, stored, doubts)
        return self._of_servers(frozenset({key}))

    def _of_servers(self, servers: frozenset[ObjectKey], *, urgent: bool = False) -> Affected:
        routes = (
            self._routes.leading_to(server) | self._ingress.leading_to(server) for server in servers
        )
        return Affected(parts=servers, conditions=servers.union(*routes), urgent=urgent)

    def _resolved_route(
        self, key: ObjectKey, known: dict[str, Any], route: RouteView
    ) -> RoutesResolved:
        doubts = [*doubts_about(key, route.resource), *route.rules.doubts]
        for parent in route.resource.spec.parent_refs:
            fault = parent_fault(parent, key.namespace, self._ingress.gateway)
            doubts += [f"spec.parentRefs: {fault}"] if fault else []
        servers = [self._counts(server) for server in route.rules.servers]
        replaced_by = self._routes.names.replaced_by(key)
        conflicts = [] if replaced_by else self._routes.names.conflicts(key)
        return RoutesResolved(
            **known,
            conditions=route_conditions(route.rules, servers, doubts, conflicts, replaced_by),
            endpoints=sum(server.endpoints for server in servers),
            ready_endpoints=sum(server.ready_endpoints for server in servers),
        )

    def _resolved_ingress(self, key: ObjectKey, known: dict[str, Any]) -> RoutesResolved | None:
        """None for a Gateway of another class: it is somebody else's to speak about."""
        view = self._ingress.view(key)
        if view is None:
            gateway = self._ingress.gateway(key)
            if gateway is None or not is_ours(gateway):
                return None
            return RoutesResolved(**known, conditions=gateway_conditions(gateway))
        pools = {pool: self._counts(pool) for pool in view.pools}
        existing = frozenset(pool for pool, counts in pools.items() if counts.exists)
        ready = frozenset(pool for pool, counts in pools.items() if counts.is_served)
        return RoutesResolved(
            **known,
            conditions=http_route_conditions(view, existing, ready),
            endpoints=sum(counts.endpoints for counts in pools.values()),
            ready_endpoints=sum(counts.ready_endpoints for counts in pools.values()),
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
