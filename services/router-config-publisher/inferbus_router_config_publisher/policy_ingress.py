"""All Gateways and HTTPRoutes: what routers get of each, and whom a change concerns.

Invariant: a route's entry depends on its object and on the Gateways that it names, whichever came
first: a route that came before its Gateway is attached once that is there.
"""

from inferbus_contracts.conditions import condition
from inferbus_contracts.events.route import ConditionFact, ConditionStatus, GatewayEntry
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.resources.gateway_api import Gateway, HTTPRoute
from inferbus_contracts.resources.metadata import Resource
from inferbus_router_config_publisher.policy_http_routes import (
    HTTP,
    HttpRouteView,
    gateway_entry,
    http_route_view,
    is_ours,
)
from inferbus_router_config_publisher.policy_links import Links
from inferbus_router_config_publisher.policy_objects import Stored


class Ingress:
    """Gateways and HTTPRoutes, and who names whom."""

    def __init__(self) -> None:
        self.stored: dict[ObjectKey, Stored[Resource]] = {}
        self._gateways: dict[ObjectKey, Gateway] = {}
        self._views: dict[ObjectKey, HttpRouteView] = {}
        self._by_gateway = Links()
        self._by_pool = Links()

    def gateway(self, key: ObjectKey) -> Gateway | None:
        """A Gateway, whoever's it is; None when there is none, or it can't be read."""
        return self._gateways.get(key)

    def gateway_entry(self, key: ObjectKey) -> GatewayEntry | None:
        """What routers get of a Gateway; None for one that they are not."""
        gateway = self._gateways.get(key)
        return gateway_entry(gateway) if gateway is not None and is_ours(gateway) else None

    def view(self, key: ObjectKey) -> HttpRouteView | None:
        """An HTTPRoute; None when it doesn't exist or can't be read."""
        return self._views.get(key)

    def leading_to(self, pool: ObjectKey) -> frozenset[ObjectKey]:
        """The HTTPRoutes that name a pool, whether it exists or not."""
        return self._by_pool.naming(pool)

    def set_gateway(self, key: ObjectKey, stored: Stored[Gateway] | None) -> frozenset[ObjectKey]:
        """A Gateway is now like this (None: it is gone); returns the HTTPRoutes that name it.

        One that can't be read keeps its last form.
        """
        self._keep(key, stored)
        if stored is None:
            self._gateways.pop(key, None)
        elif stored.resource is not None:
            self._gateways[key] = stored.resource
        concerned = self._by_gateway.naming(key)
        for route in concerned:
            view = self._views[route]
            self._views[route] = http_route_view(view.resource, route.namespace, self.gateway)
        return concerned

    def set_route(self, key: ObjectKey, stored: Stored[HTTPRoute] | None) -> None:
        """An HTTPRoute is now like this; None: it is gone."""
        self._keep(key, stored)
        resource = stored.resource if stored else None
        view = http_route_view(resource, key.namespace, self.gateway) if resource else None
        self._by_gateway.set(key, view.gateways if view else ())
        self._by_pool.set(key, view.pools if view else ())
        if view is None:
            self._views.pop(key, None)
        else:
            self._views[key] = view

    def _keep(self, key: ObjectKey, stored: Stored[Resource] | None) -> None:
        if stored is None:
            self.stored.pop(key, None)
        else:
            self.stored[key] = stored


def gateway_conditions(gateway: Gateway) -> list[ConditionFact]:
    """Accepted and Programmed of a Gateway of the routers' class."""
    others = [
        f"listener {one.name}: protocol {one.protocol} is not served"
        for one in gateway.spec.listeners
        if one.protocol != HTTP
    ]
    served = len(gateway.spec.listeners) - len(others)
    told = "; ".join(others)
    return [
        condition("Accepted", True, "ListenersNotValid" if others else "Accepted", told),
        condition("Programmed", bool(served), "Programmed" if served else "Invalid", told),
    ]


def http_route_conditions(
    view: HttpRouteView, existing: frozenset[ObjectKey], ready: frozenset[ObjectKey]
) -> list[ConditionFact]:
    """Accepted, ResolvedRefs and Ready of an HTTPRoute, by the pools that exist and are ready."""
    told = "; ".join((*view.refused, *view.left_out))
    attached = bool(view.entry.parents)
    missing = [
        f"InferencePool {key.namespace}/{key.name} does not exist"
        for key in view.pools
        if key not in existing
    ]
    names = {str(key) for key in ready}
    unserved = [
        rule
        for rule in view.entry.rules
        if not any(target.weight and target.server in names for target in rule.targets)
    ]
    if not attached:
        accepted = condition("Accepted", False, "NoMatchingParent", told)
    elif not view.entry.rules:
        accepted = condition("Accepted", False, "UnsupportedValue", told)
    else:
        accepted = condition("Accepted", True, "PartiallyInvalid" if told else "Accepted", told)
    broken = "; ".join((*missing, *view.unusable))
    reason = "BackendNotFound" if missing else "InvalidKind"
    is_served = accepted.status is ConditionStatus.TRUE and not unserved
    return [
        accepted,
        condition("ResolvedRefs", not broken, reason if broken else "ResolvedRefs", broken),
        condition("Ready", is_served, "EndpointsReady" if is_served else "NoReadyEndpoint"),
    ]
