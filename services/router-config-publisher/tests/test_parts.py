"""What is published of a table: digests, revisions, order, batches."""

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from publisher_builders import route_key, server_key

from inferbus_contracts.canonical import digest
from inferbus_contracts.events.route import (
    EndpointEntry,
    RouteEntry,
    RoutePublished,
    RuleEntry,
    ServerEntry,
    TargetShare,
)
from inferbus_contracts.keys import ObjectKey
from inferbus_router_config_publisher.policy_parts import (
    Batch,
    Part,
    PublishedTable,
)

ROUTE = RouteEntry(
    model_name="m", rules=[RuleEntry(targets=[TargetShare(server="ModelServer/ns/s")])]
)
SERVER = ServerEntry(
    engine="vLLM", endpoints=[EndpointEntry(pod="p", address="10.0.0.1", port=8000)]
)

Wanted = dict[ObjectKey, Part | None]


def empty(position: int = 0) -> PublishedTable:
    return PublishedTable.read([], position)


def batches(table: PublishedTable, wanted: Wanted) -> list[Batch]:
    return list(table.batches(table.changes(wanted)))


def stored(*found: Batch) -> dict[ObjectKey, RoutePublished]:
    """What stands in the log: the last message of every key."""
    return {key: message for batch in found for key, message in batch.messages}


def held_digest(messages: dict[ObjectKey, RoutePublished]) -> str:
    """As a router computes it (see `RoutePublished`)."""
    return digest(
        sorted([str(key), one.digest] for key, one in messages.items() if not one.deleted)
    )


def sha256_half(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def test_digests_are_those_that_routers_know() -> None:
    """Vectors, spelt out: a router and a publisher of different versions must agree on them."""
    route = sha256_half(
        '{"adapters":[],"createdAtMs":0,"modelName":"m","ownedBy":"","rules":[{"name":"",'
        '"targets":[{"server":"ModelServer/ns/s","weight":100}]}]}'
    )
    server = sha256_half(
        '{"endpoints":[{"address":"10.0.0.1","draining":false,"group":"","pod":"p","port":8000,'
        '"ready":true,"role":""}],"engine":"vLLM","protocol":"http","retryAttempts":0,'
        '"retryIntervalMs":100}'
    )
    assert (Part.of(ROUTE).digest, Part.of(SERVER).digest) == (route, server)
    (batch,) = batches(empty(), {route_key(): Part.of(ROUTE), server_key(): Part.of(SERVER)})
    table = sha256_half(f'[["ModelRoute/ns/r","{route}"],["ModelServer/ns/s","{server}"]]')
    assert batch.table.table_digest == table == "ef26c66cc03111cbc1efb97744f650da"
    assert empty().table_digest == sha256_half("[]")


def test_servers_come_before_the_routes_that_lead_to_them_and_go_after_them() -> None:
    (first,) = batches(empty(), {route_key(): Part.of(ROUTE), server_key(): Part.of(SERVER)})
    assert [key.kind for key, _ in first.messages] == ["ModelServer", "ModelRoute"]
    (last,) = batches(first.table, {server_key(): None, route_key(): None})
    assert [(key.kind, one.deleted) for key, one in last.messages] == [
        ("ModelRoute", True),
        ("ModelServer", True),
    ]


def test_what_comes_stands_before_what_goes() -> None:
    (first,) = batches(
        empty(), {route_key("old"): Part.of(ROUTE), server_key("old"): Part.of(SERVER)}
    )
    wanted: Wanted = {
        route_key("old"): None,
        server_key("old"): None,
        route_key("new"): Part.of(ROUTE),
        server_key("new"): Part.of(SERVER),
    }
    (second,) = batches(first.table, wanted)
    assert [key.name for key, _ in second.messages] == ["new", "new", "old", "old"]


def test_every_part_has_a_revision_of_its_own_and_all_of_a_batch_the_digest_it_leads_to() -> None:
    (first,) = batches(empty(), {server_key(): Part.of(SERVER)})
    (second,) = batches(first.table, {route_key(name): Part.of(ROUTE) for name in ("a", "b", "c")})
    assert [one.revision for _, one in (*first.messages, *second.messages)] == [1, 2, 3, 4]
    assert {one.table_digest for _, one in second.messages} == {second.table.table_digest}
    assert second.table.table_digest == held_digest(stored(first, second))
    assert (second.table.revision, second.table.position, second.table.parts) == (4, 4, 4)


def test_nothing_is_published_twice() -> None:
    wanted: Wanted = {route_key(): Part.of(ROUTE), server_key(): None}
    (batch,) = batches(empty(), wanted)
    assert [key for key, _ in batch.messages] == [route_key()], "a tombstone of nothing"
    assert batch.table.changes(wanted) == []
    read_back = PublishedTable.read(stored(batch).items(), 1)
    assert read_back.changes(wanted) == []
    assert read_back.table_digest == batch.table.table_digest


def test_a_tombstone_is_published_once_and_does_not_count() -> None:
    (first,) = batches(empty(), {route_key(): Part.of(ROUTE)})
    (second,) = batches(first.table, {route_key(): None})
    table = PublishedTable.read(stored(first, second).items(), 2)
    assert table.table_digest == digest([])
    assert table.parts == 0
    assert table.changes({route_key(): None}) == []
    (third,) = batches(table, {route_key(): Part.of(ROUTE)})
    assert third.messages[0][1].revision == 3


@pytest.mark.parametrize(("position", "revision"), [(0, 8), (7, 8), (20, 21)])
def test_revisions_go_on_from_the_log_even_when_it_was_emptied(
    position: int, revision: int
) -> None:
    message = RoutePublished(revision=7, digest="d", table_digest="t", route=ROUTE)
    table = PublishedTable.read([(route_key("x"), message)], position)
    assert (
        table.batch(table.changes({route_key(): Part.of(ROUTE)})).messages[0][1].revision
        == revision
    )


def test_many_changes_are_several_batches_that_tell_of_the_table_at_their_end() -> None:
    """A router that starts between two of them doesn't take the part for the whole."""
    wanted: Wanted = {route_key(f"r{number}"): Part.of(ROUTE) for number in range(1500)}
    wanted |= {server_key(f"s{number}"): Part.of(SERVER) for number in range(700)}
    found = batches(empty(), wanted)
    assert [len(batch.messages) for batch in found] == [1000, 1000, 200]
    for number in range(len(found)):
        log = stored(*found[: number + 1])
        assert held_digest(log) == found[number].table.table_digest
    last = found[-1].table.table_digest
    assert {one.table_digest for batch in found for _, one in batch.messages} == {last}
    assert [one.revision for batch in found for _, one in batch.messages] == list(range(1, 2201))
    kinds = [key.kind for batch in found for key, _ in batch.messages]
    assert kinds == ["ModelServer"] * 700 + ["ModelRoute"] * 1500


parts = st.one_of(
    st.none(),
    st.integers(0, 2).map(lambda age: Part.of(ROUTE.model_copy(update={"created_at_ms": age}))),
)


@given(st.lists(st.dictionaries(st.sampled_from("abcd").map(route_key), parts), max_size=8))
def test_a_router_that_follows_and_one_that_starts_hold_the_same_table(
    rounds: list[Wanted],
) -> None:
    table, following, final = empty(), dict[ObjectKey, RoutePublished](), Wanted()
    for wanted in rounds:
        final |= wanted
        for batch in batches(table, wanted):
            following |= stored(batch)
            table = batch.table
        assert held_digest(following) == table.table_digest
    started = PublishedTable.read(following.items(), table.position)
    assert started.table_digest == table.table_digest
    assert started.changes(final) == []
    live = {key: part.digest for key, part in final.items() if part}
    assert {key: one.digest for key, one in following.items() if not one.deleted} == live


def test_a_publication_that_was_broken_off_and_is_wanted_no_more_is_ended_by_a_word() -> None:
    wanted: Wanted = {route_key(f"r{number}"): Part.of(ROUTE) for number in range(1001)}
    first, _ = batches(empty(), wanted)
    left = PublishedTable.read(stored(first).items(), 1000)
    wanted.pop(next(key for key in wanted if key not in dict(first.messages)))

    assert left.changes(wanted) == []
    (retold,) = left.batches(left.retelling(wanted))
    assert len(retold.messages) == 1
    ended = PublishedTable.read(stored(first, retold).items(), 1001)
    assert ended.told_digest == ended.table_digest == left.table_digest
    assert ended.retelling(wanted) == []
