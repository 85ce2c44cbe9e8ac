"""The table: digests, completeness, order, and what is carried over."""

from hypothesis import given
from hypothesis import strategies as st

from inferbus_contracts.canonical import digest
from inferbus_contracts.events.route import RouteEntry, RoutePublished, ServerEntry
from inferbus_contracts.keys import ObjectKey
from inferbus_router.adapters_static import published
from inferbus_router.core import match_request
from inferbus_router.fleet import Fleet
from inferbus_router.policy_choice import EndpointLoad
from inferbus_router.table import RoutingTable, Rule
from services.router.tests.builders import (
    endpoint,
    head_of,
    route,
    route_key,
    rule,
    server,
    server_key,
    table_of,
)

Messages = list[tuple[ObjectKey, RoutePublished]]

ENTRIES: dict[ObjectKey, RouteEntry | ServerEntry] = {
    route_key("a"): route(rule("ms"), model="m", created_at_ms=2),
    route_key("b"): route(rule("other"), model="m", created_at_ms=1),
    server_key("ms"): server(endpoint(8001)),
    server_key("other"): server(endpoint(8002)),
}


def changed(key: ObjectKey, entry: RouteEntry | ServerEntry | None, revision: int) -> Messages:
    """The message that replaces one part of `ENTRIES`, or takes it out."""
    entries = {other: part for other, part in ENTRIES.items() if other != key}
    if entry is not None:
        entries[key] = entry
        return [pair for pair in published(entries, revision) if pair[0] == key]
    table_digest = published(entries)[0][1].table_digest
    message = RoutePublished(revision=revision, digest="", table_digest=table_digest, deleted=True)
    return [(key, message)]


def served_by(table: RoutingTable) -> str:
    found = match_request(table, "m", head_of())
    assert found
    return found[1].servers[0].name


def test_an_empty_table_is_not_complete() -> None:
    assert not RoutingTable().is_complete
    assert match_request(RoutingTable(), "m", head_of()) is None


def test_the_digest_is_the_one_the_event_documents() -> None:
    table = table_of(ENTRIES)
    parts = [[str(key), digest(entry.to_dict())] for key, entry in ENTRIES.items()]

    assert table.digest == digest(sorted(parts))
    assert table.is_complete


def test_a_part_that_is_missing_shows() -> None:
    assert not RoutingTable().with_parts(published(ENTRIES)[1:]).is_complete


@given(st.permutations(published(ENTRIES)), st.integers(0, 4))
def test_the_order_and_grouping_of_parts_makes_no_difference(messages: Messages, cut: int) -> None:
    table = RoutingTable().with_parts(messages[:cut]).with_parts(messages[cut:])

    assert table.is_complete
    assert table.digest == table_of(ENTRIES).digest
    assert served_by(table) == "other"


def test_a_deleted_part_is_gone() -> None:
    table = table_of(ENTRIES).with_parts(changed(route_key("b"), None, 2))

    assert table.is_complete
    assert table.revision == 2
    assert served_by(table) == "ms"


def test_an_older_message_changes_nothing() -> None:
    newer = changed(route_key("b"), route(rule("newest"), model="m", created_at_ms=1), 5)
    older = changed(route_key("b"), route(rule("stale"), model="m", created_at_ms=1), 4)
    table = table_of(ENTRIES).with_parts(newer).with_parts(older)

    assert served_by(table) == "newest"
    assert table.revision == 5
    assert table.is_complete


def test_a_table_does_not_change_once_it_is_made() -> None:
    table = table_of(ENTRIES)
    table.with_parts(changed(route_key("b"), None, 2))

    assert served_by(table) == "other"
    assert table.is_complete


def test_what_did_not_change_is_carried_over() -> None:
    table = table_of(ENTRIES)
    after = table.with_parts(changed(server_key("ms"), server(endpoint(9000)), 2))

    assert after.routes is table.routes
    assert after.servers[server_key("other")] is table.servers[server_key("other")]
    assert after.servers[server_key("ms")] is not table.servers[server_key("ms")]


def test_a_part_published_again_unchanged_is_the_same_part() -> None:
    table = table_of(ENTRIES)
    after = table.with_parts(published(ENTRIES, revision=7))

    assert after.routes is table.routes
    assert after.servers == table.servers
    assert after.revision == 7


def test_names_are_listed_once_and_sorted() -> None:
    table = table_of(
        {
            route_key("z"): route(model="z", adapters=["b", "a"], created_at_ms=5),
            route_key("y"): route(model="b", owned_by="us", created_at_ms=1),
        }
    )

    assert list(table.indexes.names) == ["a", "b", "z"]
    assert table.indexes.names["b"].owned_by == "us"


Step = dict[ObjectKey, RouteEntry | ServerEntry]

PARTS: st.SearchStrategy[Step] = st.fixed_dictionaries(
    {},
    optional={
        **{
            route_key(name): st.builds(
                lambda model, adapters, at, target: route(
                    rule(target), model=model, adapters=adapters, created_at_ms=at
                ),
                st.sampled_from(["m", "n", ""]),
                st.lists(st.sampled_from(["m", "la", "lb"]), max_size=2),
                st.integers(0, 2),
                st.sampled_from(["s", "t"]),
            )
            for name in ("a", "b", "c")
        },
        **{
            server_key(name): st.builds(
                lambda ports: server(*(endpoint(port) for port in ports)),
                st.lists(st.integers(1, 4), max_size=3),
            )
            for name in ("s", "t")
        },
    },
)


def difference(before: Step, after: Step, revision: int) -> Messages:
    """What a publisher says when one set of parts takes the place of the other."""
    said = [pair for pair in published(after, revision) if before.get(pair[0]) != after[pair[0]]]
    whole = published(after)[0][1].table_digest if after else digest([])
    gone = RoutePublished(revision=revision, digest="", table_digest=whole, deleted=True)
    return [*said, *((key, gone) for key in before.keys() - after.keys())]


def shape(table: RoutingTable) -> dict[str, object]:
    """What requests meet, whichever objects it is made of."""

    def rules(candidates: object) -> object:
        assert isinstance(candidates, tuple)
        return [(each.name, one.servers) for each, one in candidates]

    return {
        "model": {name: rules(found) for name, found in table.indexes.by_model.items()},
        "adapter": {name: rules(found) for name, found in table.indexes.by_adapter.items()},
        "names": [(name, found.name) for name, found in table.indexes.names.items()],
        "servers": {key: one.endpoints for key, one in table.servers.items()},
        "digest": table.digest,
    }


@given(st.lists(PARTS, min_size=1, max_size=6))
def test_however_a_table_came_about_it_is_the_table_of_its_parts(steps: list[Step]) -> None:
    table, held = RoutingTable(), Step()
    fleet: Fleet[EndpointLoad] = Fleet(lambda entry, protocol: EndpointLoad(entry.pod))
    for revision, step in enumerate(steps, 1):
        table = table.with_parts(difference(held, step, revision))
        fleet.sync(table, 0)
        held = step
        fresh = RoutingTable().with_parts(published(step))
        assert shape(table) == shape(fresh)
        pods = {entry.pod for one in fresh.servers.values() for entry in one.endpoints}
        assert {each.pod for each in fleet.endpoints()} == pods
        for each in table.routes:
            for one in each.rules:
                assert fleet.draw(one, 0) is (
                    fleet.server(one.servers[0]) if _is_ready(one, table) else None
                )


def _is_ready(one: Rule, table: RoutingTable) -> bool:
    found = table.servers.get(one.servers[0])
    return found is not None and bool(found.endpoints)


@given(PARTS, PARTS)
def test_a_log_that_begins_anew_replaces_the_table_whatever_its_revisions(
    before: Step, after: Step
) -> None:
    table = RoutingTable().with_parts(published(before, revision=900))
    replaced = table.replaced_by(published(after, revision=1))

    assert shape(replaced) == shape(RoutingTable().with_parts(published(after)))
    assert replaced.revision == (1 if after else 0)


def test_one_change_is_told_as_such() -> None:
    table = table_of(ENTRIES)
    after = table.with_parts(changed(server_key("ms"), server(endpoint(9000)), 2))

    assert after.change.base is table.identity
    assert after.change.servers == (server_key("ms"),)
    assert not after.change.has_routes
    after = after.with_parts(changed(route_key("a"), route(rule("other"), model="m"), 3))
    assert [each.key for each in after.change.gone] == [route_key("a")]
    assert [each.key for each in after.change.new] == [route_key("a")]
    assert after.change.servers == ()
