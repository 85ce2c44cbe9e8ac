"""All ModelRoutes: what routers get of each, and whom a change concerns.

Invariant: a route's entry depends on its object, the objects it was expanded from, and whether a
user's own route takes its place; never on servers, so that a route needs no word when they change.
"""

from dataclasses import dataclass, replace

from inferbus_contracts.events.route import RouteEntry
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.resources.metadata import Resource
from inferbus_contracts.resources.networking import ModelRoute
from inferbus_router_config_publisher.policy_access import authentication, token_limit
from inferbus_router_config_publisher.policy_http_routes import declared_parents, gateway_of
from inferbus_router_config_publisher.policy_links import Links
from inferbus_router_config_publisher.policy_names import Claim, Names
from inferbus_router_config_publisher.policy_objects import Stored
from inferbus_router_config_publisher.policy_origin import Origin, origin_of
from inferbus_router_config_publisher.policy_rules import ReadRules, read_rules


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteView:
    """A ModelRoute with everything that follows from its object and its origin."""

    resource: ModelRoute
    namespace: str
    rules: ReadRules
    origin: Origin

    @property
    def gateways(self) -> list[ObjectKey]:
        """That it names as parents."""
        named = (gateway_of(one, self.namespace) for one in self.resource.spec.parent_refs)
        return [key for key in named if key is not None]

    @property
    def entry(self) -> RouteEntry:
        """What routers get, unless another route takes its place."""
        spec = self.resource.spec
        return RouteEntry(
            model_name=spec.model_name or "",
            adapters=_adapters(self.resource),
            created_at_ms=self.origin.created_at_ms,
            owned_by=self.origin.owned_by,
            rules=[rule.entry for rule in self.rules.active],
            limit=token_limit(spec.rate_limit, self.resource.metadata.annotations),
            authentication=authentication(self.resource.metadata.annotations),
            parents=declared_parents(spec.parent_refs, self.namespace),
        )


class Routes:
    """Routes, the objects they come from, and the names they claim."""

    def __init__(self) -> None:
        self.stored: dict[ObjectKey, Stored[ModelRoute]] = {}
        self.names = Names()
        self._origins: dict[ObjectKey, Resource] = {}
        self._views: dict[ObjectKey, RouteView] = {}
        self._servers = Links()
        self._consulted = Links()
        self._gateways = Links()

    def view(self, key: ObjectKey) -> RouteView | None:
        """A route; None when it doesn't exist or can't be read."""
        return self._views.get(key)

    def leading_to(self, server: ObjectKey) -> frozenset[ObjectKey]:
        """The routes that name a server, whether it exists or not."""
        return self._servers.naming(server)

    def attached_to(self, gateway: ObjectKey) -> frozenset[ObjectKey]:
        """The routes that name a Gateway, whether it exists or not."""
        return self._gateways.naming(gateway)

    def set_route(self, key: ObjectKey, stored: Stored[ModelRoute] | None) -> frozenset[ObjectKey]:
        """A route is now like this (None: it is gone); returns the other routes it concerns."""
        if stored is None:
            self.stored.pop(key, None)
        else:
            self.stored[key] = stored
        resource = stored.resource if stored else None
        if resource is None:
            return self._set_view(key, None)
        view = RouteView(
            resource=resource,
            namespace=key.namespace,
            rules=read_rules(resource.spec, key.namespace),
            origin=origin_of(resource.metadata, key.namespace, self._origins.get),
        )
        return self._set_view(key, view)

    def set_origin(
        self, key: ObjectKey, resource: Resource | None
    ) -> tuple[frozenset[ObjectKey], frozenset[ObjectKey]]:
        """An object that routes come from is now like this; None: it is gone or can't be read.

        Returns the routes that come from it, and the other routes that are concerned.
        """
        if resource is None:
            self._origins.pop(key, None)
        else:
            self._origins[key] = resource
        routes = self._consulted.naming(key)
        concerned: set[ObjectKey] = set()
        for route in routes:
            view = self._views[route]
            origin = origin_of(view.resource.metadata, route.namespace, self._origins.get)
            concerned |= self._set_view(route, replace(view, origin=origin))
        return routes, frozenset(concerned - routes)

    def _set_view(self, key: ObjectKey, view: RouteView | None) -> frozenset[ObjectKey]:
        self._servers.set(key, view.rules.servers if view else ())
        self._consulted.set(key, view.origin.consulted if view else ())
        self._gateways.set(key, view.gateways if view else ())
        if view is None:
            self._views.pop(key, None)
            return self.names.set(key, None)
        self._views[key] = view
        return self.names.set(key, _claim(key, view))


def _claim(key: ObjectKey, view: RouteView) -> Claim:
    return Claim(
        key=key,
        model_name=view.resource.spec.model_name or "",
        adapters=tuple(_adapters(view.resource)),
        created_at_ms=view.origin.created_at_ms,
        gives_way=view.origin.gives_way,
    )


def _adapters(route: ModelRoute) -> list[str]:
    return [name for name in dict.fromkeys(route.spec.lora_adapters) if name]
