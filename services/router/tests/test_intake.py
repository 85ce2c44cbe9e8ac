"""When parts become the table: whole tables at first and anew, changes one by one in between."""

from inferbus_contracts.canonical import digest
from inferbus_contracts.events.route import RoutePublished
from inferbus_contracts.keys import ObjectKey
from inferbus_router.adapters_static import published
from inferbus_router.intake import MOST_TOGETHER, PATIENCE_MS, READ_AGAIN_MS, Intake
from inferbus_router.ports import Parts
from inferbus_router.table import RoutingTable
from services.router.tests.builders import Entries, endpoint, route, route_key, server, server_key

Message = tuple[ObjectKey, RoutePublished]

ENTRIES: Entries = {
    route_key("r"): route(),
    server_key("ms"): server(endpoint(1)),
    server_key("other"): server(endpoint(2)),
}


class Sink:
    """Keeps the table, and how often it was handed one."""

    def __init__(self) -> None:
        self.table = RoutingTable()
        self.handed = 0
        self.ready = 0

    def apply(self, parts: Parts) -> None:
        self.table = self.table.with_parts(parts)
        self.handed += 1

    def replace(self, parts: Parts) -> None:
        self.table = self.table.replaced_by(parts)
        self.handed += 1

    @property
    def table_digest(self) -> str:
        return self.table.digest

    def snapshot_ended(self) -> None:
        self.ready += 1


def take_all(intake: Intake, messages: list[Message], now_ms: int = 0) -> None:
    for left, message in zip(range(len(messages) - 1, -1, -1), messages, strict=True):
        intake.take(message, more=left > 0, now_ms=now_ms)


def started() -> tuple[Intake, Sink]:
    """With the table of `ENTRIES`."""
    sink = Sink()
    intake = Intake(sink)
    take_all(intake, published(ENTRIES))
    intake.look(0)
    return intake, sink


def one_changed(revision: int = 2) -> list[Message]:
    key = server_key("other")
    entries = {**ENTRIES, key: server(endpoint(3))}
    return [pair for pair in published(entries, revision) if pair[0] == key]


def test_the_first_table_is_served_when_it_is_whole() -> None:
    sink = Sink()
    intake = Intake(sink)
    messages = published(ENTRIES)

    assert not intake.take(messages[0], more=True, now_ms=0)
    assert not intake.take(messages[1], more=False, now_ms=0), "a part is still missing"
    assert (sink.handed, sink.ready) == (0, 0)
    assert intake.take(messages[2], more=False, now_ms=0)
    assert (sink.handed, sink.ready) == (1, 1)
    assert sink.table.is_complete


def test_a_first_table_that_does_not_become_whole_is_served_all_the_same() -> None:
    sink = Sink()
    intake = Intake(sink)
    intake.take(published(ENTRIES)[0], more=True, now_ms=0)
    intake.take(None, more=False, now_ms=10)

    assert not intake.is_settled
    intake.look(PATIENCE_MS)
    assert sink.ready == 0
    intake.look(PATIENCE_MS + 10)
    assert sink.ready == 1
    assert len(sink.table.routes) + len(sink.table.servers) == 1


def test_a_router_that_reads_slowly_waits_for_the_rest() -> None:
    sink = Sink()
    intake = Intake(sink)
    messages = published(ENTRIES)
    intake.take(messages[0], more=True, now_ms=0)

    assert not intake.look(100 * PATIENCE_MS)
    assert sink.handed == 0
    take_all(intake, messages[1:], now_ms=200 * PATIENCE_MS)
    assert sink.table.is_complete


def test_an_empty_log_is_an_empty_table_once() -> None:
    sink = Sink()
    intake = Intake(sink)
    intake.nothing_to_read()
    intake.nothing_to_read()

    assert (sink.handed, sink.ready) == (0, 1)
    take_all(intake, published(ENTRIES))
    assert sink.table.is_complete
    assert sink.ready == 1


def test_what_comes_together_is_served_together() -> None:
    intake, sink = started()
    before = sink.handed
    take_all(intake, published({**ENTRIES, server_key("third"): server()}, 2))

    assert sink.handed == before + 1
    assert sink.table.is_complete


def test_an_endless_stream_of_changes_is_served_in_steps() -> None:
    intake, sink = started()
    before = sink.handed
    for revision in range(2, 2 + MOST_TOGETHER):
        intake.take(one_changed(revision)[0], more=True, now_ms=0)

    assert sink.handed == before + 1


def test_the_last_good_table_serves_until_the_new_one_is_whole() -> None:
    """A log that begins anew has lower revisions, and comes in pieces."""
    intake, sink = started()
    take_all(intake, one_changed(900))
    intake.begin_anew()
    messages = published({**ENTRIES, server_key("third"): server()}, 1)
    intake.take(messages[0], more=False, now_ms=0)
    intake.look(0)

    assert sink.table.revision == 900
    assert server_key("ms") in sink.table.servers
    for message in messages[1:]:
        intake.take(message, more=False, now_ms=0)
    assert sink.table.revision == 1
    assert sink.table.is_complete
    assert set(sink.table.servers) == {server_key(name) for name in ("ms", "other", "third")}
    assert sink.ready == 1


def test_an_emptied_log_changes_nothing() -> None:
    intake, sink = started()
    intake.begin_anew()
    intake.nothing_to_read()
    assert not intake.look(10 * PATIENCE_MS)

    assert sink.table.is_complete
    assert sink.ready == 1


def test_a_table_that_is_not_whole_is_read_again_but_not_all_the_time() -> None:
    intake, sink = started()
    foreign = RoutePublished(revision=2, digest="d", table_digest=digest("x"), server=server())
    intake.take((server_key("s"), foreign), more=False, now_ms=0)

    assert not intake.look(0)
    assert not intake.look(PATIENCE_MS - 1)
    assert intake.look(PATIENCE_MS)
    assert not intake.is_settled
    assert not intake.look(PATIENCE_MS + READ_AGAIN_MS - 1)
    assert intake.look(PATIENCE_MS + READ_AGAIN_MS)
    intake.begin_anew()
    take_all(intake, published(ENTRIES, 3))
    assert not intake.look(PATIENCE_MS + READ_AGAIN_MS)
    assert intake.is_settled
    assert sink.table.is_complete


def test_a_batch_that_is_half_here_is_no_reason_to_read_again() -> None:
    intake, _ = started()
    messages = published({**ENTRIES, server_key("x"): server(), server_key("y"): server()}, 2)
    intake.take(messages[-2], more=False, now_ms=0)
    assert not intake.look(0)
    intake.take(messages[-1], more=False, now_ms=100)

    assert not intake.look(PATIENCE_MS)
    assert intake.is_settled
