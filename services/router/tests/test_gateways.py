"""Listeners, HTTPRoutes and where routes hold: the cases of the Gateway API by number."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferbus_contracts.events.route import (
    ParentEntry,
    PathType,
    RouteEntry,
    StringRule,
    UrlRewrite,
)
from inferbus_router.adapters_static import published
from inferbus_router.errors import RequestError
from inferbus_router.gateway_matching import match_arrival
from inferbus_router.gateways import GatewayListener, Gateways, host_name
from inferbus_router.request import Request, read_head
from inferbus_router.table import RoutingTable
from services.router.tests.builders import (
    Entries,
    gateway,
    gateway_key,
    http_route,
    http_route_key,
    http_rule,
    listener,
    route,
    route_key,
    rule,
    table_of,
)

PORT = 8080


class At:
    """A connection to a port."""

    def __init__(self, port: int) -> None:
        self.local_port = port


def request_for(path: str, host: str = "router", method: str = "POST", **headers: str) -> Request:
    lines = "".join(f"\r\n{name}: {value}" for name, value in headers.items())
    head = f"{method} {path} HTTP/1.1\r\nhost: {host}{lines}"
    return Request(read_head(head.encode()), keep_alive=True)


def served(table: RoutingTable, request: Request, *, model: str = "m", port: int = PORT) -> str:
    """`route → server`; empty where nothing matches."""
    found = match_arrival(table, model, request, At(port))
    return f"{found[0].key.name} → {found[1].servers[0].name}" if found else ""


def with_gateway(*listeners: Any, **routes: RouteEntry) -> Entries:
    """HTTPRoutes by name behind the Gateway `g`."""
    own = {http_route_key(name): entry for name, entry in routes.items()}
    return {gateway_key("g"): gateway(*(listeners or [listener()])), **own}


@pytest.mark.parametrize(
    ("path", "fits"),
    [("/chat", True), ("/chat/", True), ("/chat/x", True), ("/chatty", False), ("/Chat", False)],
)
def test_t090_prefixes_are_compared_by_segments(path: str, fits: bool) -> None:
    table = table_of(with_gateway(a=http_route(http_rule("p", path="/chat"))))

    assert bool(served(table, request_for(path))) is fits


@pytest.mark.parametrize("prefix", ["/chat/", "/chat"])
def test_a_slash_at_the_end_of_a_prefix_means_nothing(prefix: str) -> None:
    table = table_of(with_gateway(a=http_route(http_rule("p", path=prefix))))

    assert served(table, request_for("/chat"))
    assert served(table, request_for("/chat/x"))


def test_t091_the_longer_prefix_wins_with_its_rewrite() -> None:
    rewrite = UrlRewrite(prefix="/v2", hostname="engine.example")
    table = table_of(
        with_gateway(
            a=http_route(
                http_rule("all", path="/"), http_rule("chat", rewrite=rewrite, path="/chat")
            )
        )
    )
    request = request_for("/chat/x?y=1")

    assert served(table, request) == "a → chat"
    assert request.rewritten is not None
    assert (request.rewritten.target, request.rewritten.host) == (b"/v2/x?y=1", b"engine.example")
    other = request_for("/other")
    assert served(table, other) == "a → all"
    assert other.rewritten is None


def test_t092_the_more_specific_host_wins_over_the_longer_path() -> None:
    table = table_of(
        with_gateway(
            a=http_route(http_rule("p", path="/"), hostnames=["chat.example.com"]),
            b=http_route(http_rule("q", path="/chat/long"), hostnames=["*.example.com"]),
        )
    )

    assert served(table, request_for("/chat/long", "chat.example.com")) == "a → p"
    assert served(table, request_for("/chat/long", "other.example.com")) == "b → q"


@pytest.mark.parametrize(
    ("host", "name"),
    [
        ("api.example.com", "exact"),
        ("API.example.com:8080", "exact"),
        ("foo.example.com", "wildcard"),
        ("a.b.example.com", "wildcard"),
        ("example.com", "any"),
        ("other", "any"),
        ("[::1]:8080", "any"),
    ],
)
def test_t093_a_listener_by_the_most_specific_host(host: str, name: str) -> None:
    listeners = Gateways(
        GatewayListener(gateway_key("g"), each, PORT, hostname)
        for each, hostname in (
            ("exact", "api.example.com"),
            ("wildcard", "*.example.com"),
            ("any", ""),
        )
    )
    found = listeners.listener(PORT, host_name(host.encode()))

    assert found is not None
    assert found.name == name
    assert listeners.listener(9, "x") is None


def test_a_host_that_no_listener_takes_finds_nothing() -> None:
    entries = with_gateway(
        listener(hostname="api.example.com"), a=http_route(http_rule("p", path="/"))
    )
    table = table_of({**entries, route_key("r"): route()})

    assert served(table, request_for("/v1/completions", "elsewhere")) == ""
    assert served(table, request_for("/v1/completions", "api.example.com")) == "r → ms"


def test_t094_rt_28_a_match_of_another_method_is_passed_over() -> None:
    """Where the reference skips a match with a method altogether, it is compared here."""
    table = table_of(
        with_gateway(
            a=http_route(http_rule("get", path="/chat", method="GET")),
            b=http_route(http_rule("post", path="/chat", method="POST")),
        )
    )
    assert served(table, request_for("/chat")) == "b → post"
    alone = table_of(with_gateway(a=http_route(http_rule("get", path="/chat", method="GET"))))
    assert served(alone, request_for("/chat")) == ""


def test_rt_28_headers_and_queries_are_compared() -> None:
    table = table_of(
        with_gateway(
            a=http_route(
                http_rule("plain", path="/"),
                http_rule("gold", path="/", headers={"tier": StringRule(exact="gold")}),
                http_rule("beta", path="/", query={"beta": StringRule(exact="1")}),
            )
        )
    )

    assert served(table, request_for("/x")) == "a → plain"
    assert served(table, request_for("/x", tier="gold")) == "a → gold"
    assert served(table, request_for("/x?a=2&beta=1")) == "a → beta"
    assert served(table, request_for("/x?beta=2&beta=1")) == "a → plain"


def test_t095_pools_by_weight_and_none_of_weight_0() -> None:
    table = table_of(with_gateway(a=http_route(http_rule(("p", 3), ("q", 1), path="/"))))
    found = match_arrival(table, "m", request_for("/chat"), At(PORT))
    assert found is not None
    assert dict(zip([key.name for key in found[1].servers], found[1].weights, strict=True)) == {
        "p": 3,
        "q": 1,
    }

    none = table_of(with_gateway(a=http_route(http_rule(("p", 0), path="/"))))
    with pytest.raises(RequestError) as raised:
        served(none, request_for("/chat"))
    assert raised.value.status == 503
    assert "ns/a has no eligible InferencePool backend" in raised.value.message


def test_t087_a_model_has_a_route_for_each_gateway() -> None:
    table = table_of(
        {
            gateway_key("first"): gateway(listener(8080)),
            gateway_key("second"): gateway(listener(8081)),
            route_key("a"): route(rule("s1"), parents=parents("first")),
            route_key("b"): route(rule("s2"), parents=parents("second")),
        }
    )

    assert served(table, request_for("/v1/completions"), port=8080) == "a → s1"
    assert served(table, request_for("/v1/completions"), port=8081) == "b → s2"


def parents(*names: str, **fields: Any) -> list[ParentEntry]:
    return [ParentEntry(gateway=str(gateway_key(name)), **fields) for name in names]


def test_t088_a_route_of_another_gateway_does_not_hold() -> None:
    for other in (parents("other"), [ParentEntry(gateway="Service/ns/g")], []):
        table = table_of(
            {gateway_key("g"): gateway(listener()), route_key("r"): route(parents=other)}
        )
        assert served(table, request_for("/v1/completions")) == ""


def test_t089_a_route_without_parents_holds_at_gateways_of_its_namespace() -> None:
    for namespace, found in (("ns", "r → ms"), ("other", "")):
        table = table_of(
            {gateway_key("g", namespace): gateway(listener()), route_key("r"): route()}
        )
        assert served(table, request_for("/v1/completions")) == found


def test_rt_30_a_route_of_one_listener_does_not_hold_at_another() -> None:
    """The reference asks only whether such a listener exists, and looks at no port."""
    listeners = (listener(8080, "public"), listener(8081, "internal"))
    for bound in (parents("g", section="internal"), parents("g", port=8081)):
        table = table_of(
            {gateway_key("g"): gateway(*listeners), route_key("r"): route(parents=bound)}
        )
        assert served(table, request_for("/v1/completions"), port=8081) == "r → ms"
        assert served(table, request_for("/v1/completions"), port=8080) == ""


def test_routes_with_parents_do_not_hold_on_the_routers_own_port() -> None:
    table = table_of({route_key("a"): route(parents=parents("g")), route_key("b"): route()})
    assert served(table, request_for("/v1/completions")) == "b → ms"

    behind = table_of(
        {
            gateway_key("g"): gateway(listener(9000)),
            route_key("a"): route(parents=parents("g")),
            route_key("b"): route(),
        }
    )
    assert served(behind, request_for("/v1/completions"), port=8080) == "b → ms"


def test_a_model_route_comes_first_for_model_paths_alone() -> None:
    table = table_of(
        {**with_gateway(a=http_route(http_rule("p", path="/"))), route_key("r"): route(model="m")}
    )

    assert served(table, request_for("/v1/completions")) == "r → ms"
    assert served(table, request_for("/v1/completions"), model="unlisted") == "a → p"
    assert served(table, request_for("/chat")) == "a → p"


def test_exact_before_prefix_before_pattern() -> None:
    table = table_of(
        with_gateway(
            a=http_route(http_rule("regex", path="/ch.*", path_type=PathType.REGEX)),
            b=http_route(http_rule("prefix", path="/")),
            c=http_route(http_rule("exact", path="/chat", path_type=PathType.EXACT)),
        )
    )
    assert served(table, request_for("/chat")) == "c → exact"
    assert served(table, request_for("/chat/x")) == "b → prefix"
    alone = table_of(
        with_gateway(a=http_route(http_rule("regex", path="/ch.*", path_type=PathType.REGEX)))
    )
    assert served(alone, request_for("/chat/x")) == "a → regex"
    assert served(alone, request_for("/x/chat")) == ""
    broken = table_of(
        with_gateway(a=http_route(http_rule("regex", path="[", path_type=PathType.REGEX)))
    )
    assert served(broken, request_for("/[")) == ""


def test_the_older_route_comes_first_then_the_name() -> None:
    table = table_of(
        with_gateway(
            b=http_route(http_rule("p", path="/"), created_at_ms=1),
            a=http_route(http_rule("q", path="/"), created_at_ms=2),
        )
    )
    assert served(table, request_for("/x")) == "b → p"
    equal = table_of(
        with_gateway(b=http_route(http_rule("p", path="/")), a=http_route(http_rule("q", path="/")))
    )
    assert served(equal, request_for("/x")) == "a → q"


@pytest.mark.parametrize(
    ("prefix", "replacement", "path", "target"),
    [
        ("/", "/v2", "/chat", b"/v2/chat"),
        ("/chat", "/", "/chat/x", b"/x"),
        ("/chat", "/", "/chat", b"/"),
        ("/chat", "/v1", "/chat", b"/v1"),
        ("/chat", "/v1/", "/chat/x", b"/v1/x"),
        ("/chat/", "/v1", "/chat/x?q", b"/v1/x?q"),
        ("/chat", "", "/chat/x", b"/x"),
    ],
)
def test_rt_28_prefixes_are_replaced_with_one_slash(
    prefix: str, replacement: str, path: str, target: bytes
) -> None:
    rewrite = UrlRewrite(prefix=replacement)
    table = table_of(with_gateway(a=http_route(http_rule("p", rewrite=rewrite, path=prefix))))
    request = request_for(path)

    assert served(table, request)
    assert request.rewritten is not None
    assert request.rewritten.target == target


def test_a_whole_path_is_replaced_but_for_the_query() -> None:
    rewrite = UrlRewrite(full_path="/v1/completions")
    table = table_of(with_gateway(a=http_route(http_rule("p", rewrite=rewrite, path="/x"))))
    request = request_for("/x/y?z=1")

    assert served(table, request)
    assert request.rewritten is not None
    assert request.rewritten.target == b"/v1/completions?z=1"


def test_t096_a_route_that_came_before_its_gateway_holds_once_there_is_one() -> None:
    entries = with_gateway(a=http_route(http_rule("p", path="/")))
    without = {key: entry for key, entry in entries.items() if key.kind != "Gateway"}
    table = table_of(without)
    assert served(table, request_for("/chat")) == ""
    table = table.with_parts(published(entries, 2))
    assert served(table, request_for("/chat")) == "a → p"
    table = table.replaced_by(published(without, 3))
    assert served(table, request_for("/chat")) == ""


HOSTS = st.sampled_from(["", "a.x", "*.x", "b.a.x", "*.a.x"])
ROUTES = st.dictionaries(
    st.sampled_from(["p", "q", "r"]),
    st.tuples(HOSTS, st.sampled_from(["/", "/a", "/a/b"]), st.integers(0, 1)),
)


def routed(spec: dict[str, tuple[str, str, int]]) -> Entries:
    return with_gateway(
        **{
            name: http_route(
                http_rule(name, path=path),
                hostnames=[host] if host else [],
                created_at_ms=at,
            )
            for name, (host, path, at) in spec.items()
        }
    )


@given(ROUTES, ROUTES, st.sampled_from(["a.x", "b.a.x", "x", "c"]), st.sampled_from(["/a/b", "/c"]))
def test_routes_that_come_and_go_leave_no_trace(
    before: dict[str, tuple[str, str, int]],
    after: dict[str, tuple[str, str, int]],
    host: str,
    path: str,
) -> None:
    table = table_of(routed(before)).replaced_by(published(routed(after), 2))
    expected = table_of(routed(after))

    assert served(table, request_for(path, host)) == served(expected, request_for(path, host))
