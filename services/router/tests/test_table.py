"""The table: digests, completeness, order, and what is carried over."""

from hypothesis import given
from hypothesis import strategies as st

from inferbus_contracts.canonical import digest
from inferbus_contracts.events.route import RouteEntry, RoutePublished, ServerEntry
from inferbus_contracts.keys import ObjectKey
from inferbus_router.adapters_static import published
from inferbus_router.core import match_request
from inferbus_router.table import RoutingTable
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
