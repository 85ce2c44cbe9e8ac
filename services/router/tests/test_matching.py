"""Which rule serves a request (routing spec 2.3; cases RT_n of its section 8)."""

import pytest

from inferbus_contracts.events.route import RouteEntry, StringRule
from inferbus_router.core import match_request
from inferbus_router.table import RoutingTable
from services.router.tests.builders import (
    endpoint,
    exact,
    head_of,
    prefix,
    regex,
    route,
    route_key,
    rule,
    server,
    server_key,
    table_of,
)

CHAT = "/v1/chat/completions"


def routed(table: RoutingTable, model: str = "m", path: str = CHAT, **headers: str) -> str | None:
    """The server of the rule that applies, by name."""
    found = match_request(table, model, head_of(path, headers))
    return found[1].servers[0].name if found else None


def table_with(*routes: RouteEntry) -> RoutingTable:
    """Routes r0, r1, … in the order given."""
    return table_of({route_key(f"r{index}"): entry for index, entry in enumerate(routes)})


def test_t010_an_unknown_model_has_no_rule() -> None:
    assert routed(table_with(route()), "nope") is None


def test_names_are_case_sensitive() -> None:
    assert routed(table_with(route(model="Llama")), "llama") is None


def test_t014_an_adapter_is_found_where_no_route_names_it_as_its_model() -> None:
    table = table_with(route(rule("ms7"), model="m", adapters=["la"]))

    assert routed(table, "la") == "ms7"


def test_a_route_that_names_the_model_wins_over_an_older_one_that_lists_it_as_adapter() -> None:
    older = route(rule("old"), model="base", adapters=["m"], created_at_ms=1)
    newer = route(rule("new"), model="m", created_at_ms=2)

    assert routed(table_with(older, newer), "m") == "new"


def test_t015_adapters_alone_make_a_route() -> None:
    table = table_with(route(model="", adapters=["a", "b"]))

    assert routed(table, "b") == "ms"
    assert routed(table, "c") is None
    assert routed(table, "") is None


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({"user-type": "premium"}, "ms7"),
        ({"User-Type": "premium"}, "ms7"),
        ({"user-type": "basic"}, "ms1"),
        ({"user-type": ""}, "ms1"),
        ({"user-type": "Premium"}, "ms1"),
        ({}, "ms1"),
    ],
)
def test_t016_t017_a_header_chooses_the_rule(headers: dict[str, str], expected: str) -> None:
    table = table_with(route(rule("ms7", headers={"user-type": exact("premium")}), rule("ms1")))

    assert routed(table, "m", CHAT, **headers) == expected


def test_the_first_value_of_a_repeated_header_counts() -> None:
    table = table_with(route(rule("ms7", headers={"tier": exact("gold")}), rule("ms1")))
    request = head_of(headers={"tier": "gold\r\ntier: basic"})
    found = match_request(table, "m", request)

    assert found is not None
    assert found[1].servers[0].name == "ms7"


@pytest.mark.parametrize(("value", "expected"), [("gold-eu", "ms7"), ("eu-gold", None), ("", None)])
def test_t018_a_pattern_is_searched_for(value: str, expected: str | None) -> None:
    table = table_with(route(rule("ms7", headers={"tier": regex("^gold")})))

    assert routed(table, "m", CHAT, tier=value) == expected


def test_a_pattern_need_not_match_from_the_beginning() -> None:
    table = table_with(route(rule("ms7", headers={"tier": regex("gold")})))

    assert routed(table, "m", CHAT, tier="eu-gold-2") == "ms7"


def test_t019_a_pattern_that_does_not_compile_never_matches() -> None:
    table = table_with(route(rule("broken", headers={"tier": regex("[")}), rule("ms1")))

    assert routed(table, "m", CHAT, tier="[") == "ms1"


def test_t020_t021_the_path_chooses_the_rule_and_its_query_does_not_count() -> None:
    table = table_with(
        route(rule("chat", uri=exact(CHAT)), rule("v1", uri=prefix("/v1/")), rule("other"))
    )

    assert routed(table, "m", CHAT) == "chat"
    assert routed(table, "m", f"{CHAT}?x=1") == "chat"
    assert routed(table, "m", "/v1/completions") == "v1"
    assert routed(table, "m", "/v2/x") == "other"


def test_t022_the_model_of_a_rule_is_the_clients() -> None:
    table = table_with(route(rule("one", model="la"), rule("two"), model="", adapters=["la", "lb"]))

    assert routed(table, "la") == "one"
    assert routed(table, "lb") == "two"


def test_t023_a_condition_without_a_text_holds_always() -> None:
    empty = StringRule()
    table = table_with(route(rule("ms7", uri=empty, headers={"x": empty})))

    assert routed(table, "m") == "ms7"


def test_all_conditions_of_a_rule_must_hold() -> None:
    table = table_with(
        route(
            rule("ms7", uri=prefix("/v1/chat"), headers={"a": exact("1"), "b": exact("2")}),
            rule("ms1"),
        )
    )

    assert routed(table, "m", CHAT, a="1", b="2") == "ms7"
    assert routed(table, "m", CHAT, a="1") == "ms1"
    assert routed(table, "m", "/v1/completions", a="1", b="2") == "ms1"


def test_exact_wins_over_prefix_and_prefix_over_pattern() -> None:
    table = table_with(route(rule("ms7", uri=StringRule(exact="/v1/a", prefix="/v1/b", regex="c"))))

    assert routed(table, "m", "/v1/a") == "ms7"
    assert routed(table, "m", "/v1/bc") is None


def test_t027_the_older_route_wins_and_the_newer_takes_over_when_it_is_gone() -> None:
    older = route(rule("ms1"), created_at_ms=1)
    newer = route(rule("ms7"), created_at_ms=2)

    assert routed(table_with(newer, older)) == "ms1"
    assert routed(table_with(newer)) == "ms7"


def test_t028_routes_of_one_age_are_tried_by_namespace_and_name() -> None:
    entries = {route_key("b"): route(rule("second")), route_key("a"): route(rule("first"))}

    assert routed(table_of(entries)) == "first"


def test_a_route_none_of_whose_rules_applies_falls_through_to_the_next() -> None:
    older = route(rule("ms1", headers={"x": exact("y")}), created_at_ms=1)
    newer = route(rule("ms7"), created_at_ms=2)

    assert routed(table_with(older, newer)) == "ms7"


@pytest.mark.parametrize("targets", [[], [("ms1", 0), ("ms2", 0)]])
def test_t029_a_rule_without_a_target_of_any_weight_is_passed_over(
    targets: list[tuple[str, int]],
) -> None:
    older = route(rule(*targets), created_at_ms=1)
    newer = route(rule("ms7"), created_at_ms=2)

    assert routed(table_with(older, newer)) == "ms7"


def test_a_name_whose_routes_have_no_rule_left_is_not_looked_up_as_an_adapter() -> None:
    empty = RouteEntry(model_name="m", rules=[], created_at_ms=5)
    other = route(rule("ms7"), model="base", adapters=["m"])

    assert routed(table_with(empty, other), "m") is None


def test_servers_in_the_table_make_no_difference_to_matching() -> None:
    entries = {route_key("r"): route(), server_key("ms"): server(endpoint())}

    assert routed(table_of(entries)) == "ms"
