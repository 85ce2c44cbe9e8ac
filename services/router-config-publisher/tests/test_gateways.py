"""Gateways, HTTPRoutes and InferencePools: which listeners take a route, what is left out of it,
and which pods a pool has.
"""

from typing import Any

import pytest
from publisher_builders import NAMESPACE, Document, World, document, pod, route, route_key, server

from inferbus_contracts.events.route import (
    GatewayEntry,
    ListenerEntry,
    ParentEntry,
    PathType,
    RouteEntry,
    ServerEntry,
    StringRule,
    UrlRewrite,
)
from inferbus_contracts.keys import ObjectKey
from inferbus_router_config_publisher.policy_parts import PublishedTable

GATEWAY_API = "gateway.networking.k8s.io/v1"
POOL_API = "inference.networking.k8s.io/v1"
POOL_REF = {"group": "inference.networking.k8s.io", "kind": "InferencePool", "name": "p"}
LABELS = {"app": "p"}

ROUTE_KEY = ObjectKey("HTTPRoute", NAMESPACE, "h")
GATEWAY_KEY = ObjectKey("Gateway", NAMESPACE, "g")
POOL_KEY = ObjectKey("InferencePool", NAMESPACE, "p")


def gateway(
    *listeners: Document, class_name: str = "kthena-router", namespace: str = NAMESPACE
) -> Document:
    spec = {"gatewayClassName": class_name, "listeners": list(listeners or [listener()])}
    return document(GATEWAY_API, "Gateway", "g", spec, namespace=namespace)


def listener(name: str = "web", port: int = 8080, **fields: Any) -> Document:
    return {"name": name, "port": port, "protocol": "HTTP"} | fields


def http_route(*rules: Document, parents: list[Document] | None = None, **spec: Any) -> Document:
    own = {"parentRefs": parents or [{"name": "g"}], "rules": list(rules or [rule()])}
    return document(
        GATEWAY_API, "HTTPRoute", "h", own | spec, creationTimestamp="2026-01-01T00:00:00Z"
    )


def rule(*references: Document, **fields: Any) -> Document:
    return {"backendRefs": list(references or [POOL_REF])} | fields


def pool(*ports: int) -> Document:
    spec = {
        "selector": {"matchLabels": LABELS},
        "targetPorts": [{"number": port} for port in ports or (8000,)],
        "endpointPickerRef": {"name": "epp", "port": {"number": 9002}},
    }
    return document(POOL_API, "InferencePool", "p", spec)


def entry(world: World, key: ObjectKey = ROUTE_KEY) -> RouteEntry:
    part = world.join.part(key)
    assert part is not None
    assert isinstance(part.entry, RouteEntry)
    return part.entry


def reason(world: World, type_: str, key: ObjectKey = ROUTE_KEY) -> tuple[str, str, str]:
    return world.condition(key, type_)


def test_a_gateway_of_the_routers_class_is_published_with_its_http_listeners() -> None:
    world = World(
        gateway(listener(hostname="*.Example.com"), listener("tls", 8443, protocol="HTTPS"))
    )
    part = world.join.part(GATEWAY_KEY)

    assert part is not None
    web = ListenerEntry(name="web", port=8080, hostname="*.example.com")
    assert part.entry == GatewayEntry(listeners=[web])
    status, word, message = world.condition(GATEWAY_KEY, "Accepted")
    assert (status, word) == ("True", "ListenersNotValid")
    assert "tls" in message


def test_a_gateway_of_another_class_is_nobodys_business_here() -> None:
    world = World(gateway(class_name="istio"), http_route(), pool())

    assert world.join.part(GATEWAY_KEY) is None
    assert world.join.resolved(GATEWAY_KEY) is None
    assert entry(world).parents == []
    assert "of the class istio" in reason(world, "Accepted")[2]


def test_t096_a_route_is_attached_once_its_gateway_is_there() -> None:
    world = World(http_route(), pool())
    assert entry(world).parents == []
    assert reason(world, "Accepted")[:2] == ("False", "NoMatchingParent")

    affected = world.apply(gateway())
    assert {ROUTE_KEY, GATEWAY_KEY} <= affected.parts
    assert entry(world).parents == [ParentEntry(gateway=str(GATEWAY_KEY), section="web")]
    assert reason(world, "Accepted")[0] == "True"

    assert ROUTE_KEY in world.apply(gateway(), deleted=True).parts
    assert entry(world).parents == []


@pytest.mark.parametrize(
    ("namespace", "allowed", "taken"),
    [
        (NAMESPACE, {}, True),
        ("infra", {}, False),
        ("infra", {"namespaces": {"from": "All"}}, True),
        ("infra", {"namespaces": {"from": "Same"}}, False),
        (NAMESPACE, {"namespaces": {"from": "None"}}, False),
        ("infra", {"namespaces": {"from": "Selector", "selector": {}}}, False),
        (NAMESPACE, {"kinds": [{"kind": "GRPCRoute"}]}, False),
        (NAMESPACE, {"kinds": [{"kind": "HTTPRoute"}]}, True),
    ],
)
def test_a_listener_says_which_routes_it_takes(
    namespace: str, allowed: Document, taken: bool
) -> None:
    world = World(
        gateway(listener(allowedRoutes=allowed), namespace=namespace),
        http_route(parents=[{"name": "g", "namespace": namespace}]),
    )

    assert bool(entry(world).parents) is taken
    assert reason(world, "Accepted")[0] == str(taken)


@pytest.mark.parametrize(
    ("own", "hostnames", "taken"),
    [
        ("api.x", ["api.x"], True),
        ("*.x", ["api.x"], True),
        ("api.x", ["*.x"], True),
        ("*.x", ["*.a.x"], True),
        ("api.x", ["other.x"], False),
        ("*.x", ["x"], False),
        ("", ["x"], True),
        ("api.x", [], True),
    ],
)
def test_hostnames_of_route_and_listener_must_meet(
    own: str, hostnames: list[str], taken: bool
) -> None:
    world = World(gateway(listener(hostname=own)), http_route(hostnames=hostnames))

    assert bool(entry(world).parents) is taken


def test_a_parent_names_a_listener_by_section_or_port() -> None:
    both = gateway(listener("a", 1), listener("b", 2))
    for parent in ({"name": "g", "sectionName": "b"}, {"name": "g", "port": 2}):
        world = World(both, http_route(parents=[parent]))
        assert entry(world).parents == [ParentEntry(gateway=str(GATEWAY_KEY), section="b")]
    world = World(both, http_route(parents=[{"name": "g", "sectionName": "c"}]))
    assert entry(world).parents == []
    assert "no such HTTP listener" in reason(world, "Accepted")[2]


def test_a_rule_with_everything_is_read() -> None:
    match = {
        "path": {"type": "Exact", "value": "/chat"},
        "method": "POST",
        "headers": [{"name": "Tier", "value": "gold"}],
        "queryParams": [{"name": "beta", "type": "RegularExpression", "value": "1|2"}],
    }
    rewrite = {
        "hostname": "e.x",
        "path": {"type": "ReplaceFullPath", "replaceFullPath": "/v1/chat/completions"},
    }
    world = World(
        gateway(),
        http_route(
            rule(
                POOL_REF | {"weight": 3},
                name="chat",
                matches=[match],
                filters=[{"type": "URLRewrite", "urlRewrite": rewrite}],
            )
        ),
    )
    (read,) = entry(world).rules
    assert read.http is not None
    (found,) = read.http

    assert (found.path_type, found.path, found.method) == (PathType.EXACT, "/chat", "POST")
    assert found.headers == {"tier": StringRule(exact="gold")}
    assert found.query == {"beta": StringRule(regex="^(?:1|2)$")}
    assert read.rewrite == UrlRewrite(hostname="e.x", full_path="/v1/chat/completions")
    assert [(one.server, one.weight) for one in read.targets] == [(str(POOL_KEY), 3)]
    assert entry(world).created_at_ms == 1_767_225_600_000


@pytest.mark.parametrize(
    "fields",
    [
        {"filters": [{"type": "RequestRedirect"}]},
        {"matches": [{"path": {"type": "RegularExpression", "value": "["}}]},
        {"matches": [{"path": {"type": "Glob", "value": "*"}}]},
        {
            "matches": [{"path": {"type": "Exact", "value": "/a"}}],
            "filters": [
                {
                    "type": "URLRewrite",
                    "urlRewrite": {
                        "path": {"type": "ReplacePrefixMatch", "replacePrefixMatch": "/b"}
                    },
                }
            ],
        },
    ],
)
def test_rt_28_what_can_not_be_done_as_it_says_is_left_out_and_told(fields: Document) -> None:
    """The reference ignores such filters, and serves the request as if they weren't there."""
    world = World(gateway(), pool(), http_route(rule(**fields), rule(name="good")))

    assert [one.name for one in entry(world).rules] == ["good"]
    status, word, message = reason(world, "Accepted")
    assert (status, word) == ("True", "PartiallyInvalid")
    assert "rules[0]" in message


@pytest.mark.parametrize(
    "reference",
    [
        {"name": "p", "port": 80},
        POOL_REF | {"namespace": "other"},
        POOL_REF | {"filters": [{"type": "URLRewrite"}]},
    ],
)
def test_a_backend_that_leads_nowhere_is_told_and_gets_nothing(reference: Document) -> None:
    world = World(gateway(), pool(), http_route(rule(reference), rule(name="good")))

    assert [[one.server for one in rule.targets] for rule in entry(world).rules] == [
        [],
        [str(POOL_KEY)],
    ]
    assert reason(world, "ResolvedRefs")[:2] == ("False", "InvalidKind")


def test_rt_28_a_pool_has_pods_of_its_own_without_a_model_server() -> None:
    world = World(gateway(), http_route(), pool(8000, 8001))
    assert reason(world, "ResolvedRefs")[0] == "True"
    assert reason(world, "Ready")[:2] == ("False", "NoReadyEndpoint")

    affected = world.observe(pod("a", LABELS, address="10.0.0.1"), pod("b", {"app": "other"}))
    part = world.join.part(POOL_KEY)
    assert affected.parts == {POOL_KEY}
    assert ROUTE_KEY in affected.conditions
    assert part is not None
    assert isinstance(part.entry, ServerEntry)
    assert [(one.pod, one.port) for one in part.entry.endpoints] == [("a", 8000), ("a", 8001)]
    assert part.entry.target == "ModelServing/ns/w"
    assert reason(world, "Ready")[0] == "True"
    assert reason(world, "Ready", POOL_KEY)[0] == "True"


def test_a_missing_pool_is_told() -> None:
    world = World(gateway(), http_route())

    assert reason(world, "ResolvedRefs")[:2] == ("False", "BackendNotFound")


def test_what_can_not_be_read_keeps_its_part() -> None:
    world = World(gateway(), http_route(), pool())
    world.apply(http_route({"backendRefs": [{"weight": "many"}]}))

    assert not world.join.is_settled(ROUTE_KEY)
    assert reason(world, "Accepted")[:2] == ("False", "Invalid")
    assert world.join.is_settled(POOL_KEY)


def test_a_gateway_comes_after_its_routes_and_goes_before_them() -> None:
    world = World(gateway(), http_route(), pool())
    keys = (GATEWAY_KEY, ROUTE_KEY, POOL_KEY)
    table = PublishedTable.read([], 0)
    coming = table.changes({key: world.join.part(key) for key in keys})

    assert [change.key for change in coming] == [POOL_KEY, ROUTE_KEY, GATEWAY_KEY]
    going = table.batch(coming).table.changes(dict.fromkeys(keys))
    assert [change.key for change in going] == [GATEWAY_KEY, ROUTE_KEY, POOL_KEY]


def test_a_model_route_takes_its_parents_along() -> None:
    world = World(
        route(
            parentRefs=[
                {"name": "g", "sectionName": "web", "port": 8080},
                {"name": "s", "kind": "Service", "group": ""},
            ]
        ),
        server(),
    )
    assert world.route().parents == [
        ParentEntry(gateway=str(GATEWAY_KEY), section="web", port=8080)
    ]
    message = world.condition(route_key(), "Accepted")[2]
    assert "Gateway ns/g does not exist" in message
    assert "Service s is no Gateway" in message

    assert route_key() in world.apply(gateway()).conditions
    assert "does not exist" not in world.condition(route_key(), "Accepted")[2]


def test_a_model_route_without_parents_says_so() -> None:
    assert World(route(), server()).route().parents is None
