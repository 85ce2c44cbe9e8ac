"""The table of events holds together, and the streams are exactly what it needs."""

import itertools

import pytest

from inferbus_contracts import events
from inferbus_contracts.base import EventData
from inferbus_contracts.catalog import (
    EVENTS,
    STATE_CARRIERS,
    EventSpec,
    Stream,
    read_by,
    written_by,
)
from inferbus_contracts.events.scaling import Woken
from inferbus_contracts.events.state import StateStored
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.services import Service
from inferbus_contracts.stream_specs import StreamSpec
from inferbus_contracts.subjects import subject, wildcard
from inferbus_contracts.topology import (
    INBOX_EVENTS,
    PARTITIONS,
    inbox_filter,
    inbox_stream,
    state_filter,
    state_type,
    topology,
    woken_type,
)
from tests.contracts.patterns import covers, overlap

PEOPLE = {Service.CONSOLE, Service.CLI}
FOR_PEOPLE_ALONE = {"spec.rejected", "audit.sealed"}
ROWS = pytest.mark.parametrize("event", EVENTS.values(), ids=lambda event: event.type)
STREAMS = {stream.name: stream for stream in topology(["node-1"]).streams}


def event_models() -> set[type[EventData]]:
    """Every class below the folder of events that names an event type."""
    found, waiting = set(), [EventData]
    while waiting:
        for model in waiting.pop().__subclasses__():
            waiting.append(model)
            if "event_type" in vars(model) and model.__module__.startswith(events.__name__):
                found.add(model)
    return found


def test_every_type_has_one_writer() -> None:
    rows = [row for service in Service for row in written_by(service)]
    assert sorted(row.type for row in rows) == sorted(EVENTS)


def test_every_event_that_is_typed_is_in_the_table() -> None:
    assert {row.data for row in EVENTS.values()} == event_models()


@ROWS
def test_a_type_is_named_by_its_model(event: EventSpec) -> None:
    named = {event.data.event_type, f"{event.data.event_type}.{event.writer.value}"}
    if event.data is StateStored:
        named.add(state_type(event.writer))
    assert event.type in named
    assert len(event.type.split(".")) == 2


@ROWS
def test_somebody_reads_it_and_a_service_writes_it(event: EventSpec) -> None:
    others = event.readers - PEOPLE
    assert event.readers >= PEOPLE
    assert bool(others) is (event.type not in FOR_PEOPLE_ALONE)
    assert Service.PROVISIONER not in {event.writer, *event.readers}
    assert event.writer is not Service.CLI


def test_every_service_reads_what_people_want() -> None:
    assert EVENTS["spec.changed"].readers == set(Service) - {Service.PROVISIONER}


def test_no_subject_belongs_to_two_types() -> None:
    for one, other in itertools.combinations(EVENTS, 2):
        assert not overlap(wildcard(one), wildcard(other))


@ROWS
def test_its_stream_alone_keeps_it(event: EventSpec) -> None:
    keeping = [
        stream.name
        for stream in STREAMS.values()
        if any(covers(subject, wildcard(event.type)) for subject in stream.subjects)
    ]
    assert keeping == [event.stream.value]


def test_no_subject_stands_in_two_streams() -> None:
    for one, other in itertools.combinations(STREAMS.values(), 2):
        for pair in itertools.product(one.subjects, other.subjects):
            assert not overlap(*pair), f"{one.name} and {other.name}: {pair}"


def test_nothing_but_events_and_timers_stands_in_the_streams_of_events() -> None:
    wanted = {wildcard(row.type) for row in EVENTS.values()}
    wanted |= {
        wildcard(f"timer.{row.writer.value}") for row in EVENTS.values() if row.data is Woken
    }
    assert {subject for name in Stream for subject in STREAMS[name].subjects} == wanted


@ROWS
def test_its_stream_can_do_what_it_asks_for(event: EventSpec) -> None:
    stream = STREAMS[event.stream]
    assert stream.message_ttl or event.ttl_seconds is None
    assert stream.rollup or not event.rollup
    assert stream.timers or event.data is not Woken
    if event.ttl_seconds is not None and stream.max_age_seconds:
        assert event.ttl_seconds < stream.max_age_seconds


def test_streams_leave_room_on_the_disk() -> None:
    shares = [stream.share for stream in STREAMS.values() if stream.share is not None]
    assert all(0 < share < 1 for share in shares)
    assert sum(shares) < 1


@pytest.mark.parametrize("service", INBOX_EVENTS)
def test_an_inbox_holds_what_the_service_reads_from_where_it_stands(service: Service) -> None:
    inbox = STREAMS[inbox_stream(service)]
    assert {(source.stream, source.filter) for source in inbox.sources} == {
        (EVENTS[type_].stream.value, wildcard(type_)) for type_ in INBOX_EVENTS[service]
    }
    assert {EVENTS[type_] for type_ in INBOX_EVENTS[service]} <= set(read_by(service))


def test_every_source_is_a_stream() -> None:
    assert {source.stream for stream in STREAMS.values() for source in stream.sources} <= set(
        STREAMS
    )


@pytest.mark.parametrize("service", INBOX_EVENTS)
def test_every_partition_of_an_inbox_has_one_durable(service: Service) -> None:
    durables = [item for item in topology().durables if item.stream == inbox_stream(service)]
    assert sorted(item.filter for item in durables) == sorted(
        inbox_filter(service, partition) for partition in range(PARTITIONS)
    )
    assert all(item.service is service and item.ordered for item in durables)


def test_no_name_is_given_twice() -> None:
    everything = topology(["node-1", "node-2"])
    durables = [(item.stream, item.name) for item in everything.durables]
    streams = [stream.name for stream in everything.streams]
    assert len(set(durables)) == len(durables)
    assert len(set(streams)) == len(streams)
    assert {stream for stream, _ in durables} <= set(streams)


@pytest.mark.parametrize("decider", STATE_CARRIERS)
def test_the_filter_of_a_state_is_that_of_its_two_places_and_nothing_else(
    decider: Service,
) -> None:
    """A commit is conditional on all that the filter means: more would fail it for no reason."""
    key = ObjectKey("ModelServing", "default", "sample.dotted", "prefill")
    everything = {*EVENTS, *(f"timer.{one.value}" for one in STATE_CARRIERS)}
    meant = {
        type_ for type_ in everything if overlap(state_filter(decider, key), subject(type_, key))
    }
    assert meant == {state_type(decider), STATE_CARRIERS[decider].event_type}
    assert {EVENTS[type_].writer for type_ in meant} == {decider}
    assert {EVENTS[type_].stream for type_ in meant} == {Stream.DECISIONS}
    assert not overlap(state_filter(decider, key), subject(min(meant), key._replace(role="")))


def test_who_keeps_state_is_woken_by_its_own_timers() -> None:
    deciders = {row.writer for row in EVENTS.values() if row.type == state_type(row.writer)}
    assert deciders
    for decider in deciders:
        assert EVENTS[woken_type(decider)].writer is decider
        assert woken_type(decider) in INBOX_EVENTS[decider]


def test_a_bucket_keeps_the_last_value_of_each_entry() -> None:
    buckets: list[StreamSpec] = [
        stream for name, stream in STREAMS.items() if name.startswith("KV_")
    ]
    assert buckets
    assert all(stream.max_per_subject == 1 and stream.rollup for stream in buckets)
