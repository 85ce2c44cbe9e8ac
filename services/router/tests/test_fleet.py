"""What is remembered from table to table: endpoints with their load, and turns."""

from collections import Counter
from typing import Any

from inferbus_contracts.events.route import EndpointEntry, RouteEntry, ServerEntry
from inferbus_contracts.keys import ObjectKey
from inferbus_router.adapters_static import published
from inferbus_router.fleet import Fleet
from inferbus_router.policy_ask import Ask
from inferbus_router.policy_ejection import EJECT_AFTER_FAILURES
from inferbus_router.policy_load import EndpointLoad
from inferbus_router.table import RoutingTable, Rule
from inferbus_router.transport import Transport
from services.router.tests.builders import (
    endpoint,
    route,
    route_key,
    rule,
    server,
    server_key,
    table_of,
)

Entries = dict[ObjectKey, RouteEntry | ServerEntry]


def make_endpoint(entry: EndpointEntry, transport: Transport) -> EndpointLoad:
    del transport
    return EndpointLoad(entry.pod)


def fleet_of(entries: Entries) -> tuple[Fleet[EndpointLoad], RoutingTable]:
    fleet, table = Fleet(make_endpoint), table_of(entries)
    fleet.sync(table, 0)
    return fleet, table


def only_rule(table: RoutingTable) -> Rule:
    return table.routes[0].rules[0]


def drawn(fleet: Fleet[EndpointLoad], table: RoutingTable) -> str | None:
    state = fleet.draw(only_rule(table), now_ms=0)
    return state.server.key.name if state else None


def weighted(**endpoints: ServerEntry) -> Entries:
    """A rule over `a` (weight 3) and `b` (weight 1)."""
    entries: Entries = {route_key("r"): route(rule(("a", 3), ("b", 1)))}
    return entries | {server_key(name): entry for name, entry in endpoints.items()}


def test_only_ready_endpoints_that_do_not_drain_take_requests() -> None:
    entries: Entries = {
        server_key("ms"): server(
            endpoint(1),
            endpoint(2, ready=False),
            endpoint(3, draining=True),
        )
    }
    fleet, _ = fleet_of(entries)
    state = fleet.server(server_key("ms"))

    assert state is not None
    assert [each.pod for each in state.candidates] == ["pod-1"]


def test_rt_24_a_target_without_a_ready_endpoint_is_not_drawn() -> None:
    fleet, table = fleet_of(weighted(a=server(endpoint(1, ready=False)), b=server(endpoint(2))))

    assert {drawn(fleet, table) for _ in range(10)} == {"b"}


def test_rt_24_a_target_whose_endpoints_all_keep_failing_is_not_drawn_while_another_works() -> None:
    fleet, table = fleet_of(weighted(a=server(endpoint(1), endpoint(3)), b=server(endpoint(2))))
    failing = fleet.server(server_key("a"))
    assert failing is not None
    for each in failing.endpoints:
        assert "a" in {drawn(fleet, table) for _ in range(8)}
        for _ in range(EJECT_AFTER_FAILURES):
            each.health.failed(now_ms=0)

    assert {drawn(fleet, table) for _ in range(8)} == {"b"}
    other = fleet.server(server_key("b"))
    assert other is not None
    for _ in range(EJECT_AFTER_FAILURES):
        other.endpoints[0].health.failed(now_ms=0)
    assert {drawn(fleet, table) for _ in range(8)} == {"a", "b"}, "then any is as good"


def test_a_target_that_does_not_exist_is_not_drawn() -> None:
    fleet, table = fleet_of(weighted(b=server(endpoint(2))))

    assert {drawn(fleet, table) for _ in range(10)} == {"b"}


def test_nothing_is_drawn_where_nothing_is_ready() -> None:
    fleet, table = fleet_of(weighted(a=server(), b=server(endpoint(2, draining=True))))

    assert drawn(fleet, table) is None


def test_turns_go_on_over_tables_that_leave_the_rule_alone() -> None:
    fleet, table = fleet_of(weighted(a=server(endpoint(1)), b=server(endpoint(2))))
    counts: Counter[Any] = Counter()
    for port in range(40):
        counts[drawn(fleet, table)] += 1
        table = table.with_parts(
            table_parts(weighted(a=server(endpoint(100 + port)), b=server(endpoint(2))))
        )
        fleet.sync(table, 0)

    assert counts == {"a": 30, "b": 10}


def table_parts(entries: Entries) -> Any:
    return published(entries)


def test_an_endpoint_that_stays_keeps_its_load() -> None:
    fleet, table = fleet_of({server_key("ms"): server(endpoint(1), endpoint(2))})
    state = fleet.server(server_key("ms"))
    assert state is not None
    state.candidates[0].started(Ask("m", 500), 0)

    gone = fleet.sync(
        table.with_parts(
            table_parts(
                {server_key("ms"): server(endpoint(3), endpoint(1, draining=True), model="x")}
            )
        ),
        0,
    )
    after = fleet.server(server_key("ms"))

    assert after is not None
    assert after.endpoints[1] is state.endpoints[0]
    assert after.endpoints[1].in_flight == 1
    assert [each.pod for each in after.candidates] == ["pod-3"]
    assert [each.pod for each in gone] == ["pod-2"]


def test_an_endpoint_of_two_servers_is_one() -> None:
    fleet, _ = fleet_of(
        {server_key("a"): server(endpoint(1)), server_key("b"): server(endpoint(1))}
    )
    first, second = fleet.server(server_key("a")), fleet.server(server_key("b"))

    assert first is not None
    assert second is not None
    assert first.candidates[0] is second.candidates[0]


def test_a_pod_that_takes_over_an_address_starts_afresh() -> None:
    fleet, table = fleet_of({server_key("ms"): server(endpoint(1))})
    table = table.with_parts(table_parts({server_key("ms"): server(endpoint(1, pod="new"))}))
    gone = fleet.sync(table, 0)

    assert [each.pod for each in gone] == ["pod-1"]
    assert [each.pod for each in fleet.endpoints()] == ["new"]


def test_what_is_waited_for_is_the_heaviest_target_that_can_be_scaled() -> None:
    fleet, table = fleet_of(weighted(a=server(target=None), b=server()))
    state = fleet.to_wait_for(only_rule(table))
    assert state is not None
    assert state.server.key.name == "b"

    fleet, table = fleet_of(weighted(a=server(), b=server()))
    state = fleet.to_wait_for(only_rule(table))
    assert state is not None
    assert state.server.key.name == "a"


def test_nothing_is_waited_for_where_nothing_can_be_scaled() -> None:
    fleet, table = fleet_of(weighted(a=server(target=None)))

    assert fleet.to_wait_for(only_rule(table)) is None
