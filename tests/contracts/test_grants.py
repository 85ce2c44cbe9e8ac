"""The permissions let every service do its part, and no more; a server tries them elsewhere."""

import itertools

import pytest

from inferbus_contracts.catalog import EVENTS, EventSpec, Stream
from inferbus_contracts.permissions import Grants, grants, inbox_prefix
from inferbus_contracts.services import Service
from inferbus_contracts.subjects import wildcard
from inferbus_contracts.topology import FACTS_LAST, topology
from tests.contracts.patterns import covers, overlap

TOPOLOGY = topology(["node-1"])
GRANTS: dict[Service, Grants] = {service: grants(service, TOPOLOGY) for service in Service}
USERS = [service for service in Service if service is not Service.PROVISIONER]
ROWS = pytest.mark.parametrize("event", EVENTS.values(), ids=lambda event: event.type)
EACH = pytest.mark.parametrize("service", USERS)
WHERE_SERVERS_LISTEN = ("$JS.", "$O.", "$KV.")


def may(subjects: tuple[str, ...], subject: str) -> bool:
    return any(covers(allowed, subject) for allowed in subjects)


@ROWS
def test_the_writer_may_write_it_and_nobody_else(event: EventSpec) -> None:
    subject = wildcard(event.type)
    writers = [
        service
        for service in USERS
        if any(overlap(allowed, subject) for allowed in GRANTS[service].publish)
    ]
    assert writers == [event.writer]
    assert may(GRANTS[event.writer].publish, subject)


@ROWS
def test_every_reader_may_follow_it(event: EventSpec) -> None:
    last = [FACTS_LAST] if event.stream is Stream.FACTS else []
    for reader, stream in itertools.product(event.readers, [event.stream.value, *last]):
        allowed = GRANTS[reader].publish
        assert may(allowed, f"$JS.API.CONSUMER.CREATE.{stream}.any.{wildcard(event.type)}")
        assert may(allowed, f"$JS.API.CONSUMER.MSG.NEXT.{stream}.any")
        assert may(allowed, f"$JS.API.STREAM.INFO.{stream}")


@ROWS
def test_who_does_not_read_it_cannot_follow_it(event: EventSpec) -> None:
    create = f"$JS.API.CONSUMER.CREATE.{event.stream}.any.{wildcard(event.type)}"
    allowed = {service for service in USERS if may(GRANTS[service].publish, create)}
    assert allowed == set(event.readers) | {event.writer}


@EACH
def test_nobody_may_do_everything(service: Service) -> None:
    for subject in (*GRANTS[service].publish, *GRANTS[service].subscribe):
        assert subject.split(".")[0] not in (">", "*"), subject
        assert subject not in ("$JS.>", "$JS.API.>", "$KV.>", "$O.>"), subject


def test_the_provisioner_may() -> None:
    assert GRANTS[Service.PROVISIONER].publish == (">",)


@EACH
def test_nobody_creates_streams_or_durables(service: Service) -> None:
    for request in (
        "STREAM.CREATE.FACTS",
        "STREAM.UPDATE.FACTS",
        "STREAM.DELETE.FACTS",
        "STREAM.PURGE.FACTS",
        "CONSUMER.DURABLE.CREATE.FACTS.any",
        "CONSUMER.DELETE.FACTS.any",
    ):
        assert not may(GRANTS[service].publish, f"$JS.API.{request}")


@EACH
def test_replies_to_one_are_heard_by_no_other(service: Service) -> None:
    reply = f"{inbox_prefix(service)}.any.thing"
    hearing = [other for other in USERS if may(GRANTS[other].subscribe, reply)]
    assert hearing == [service]


@EACH
def test_a_service_serves_its_durables_and_polls_no_other(service: Service) -> None:
    mine = GRANTS[service]
    for durable in TOPOLOGY.durables:
        poll = f"$JS.API.CONSUMER.MSG.NEXT.{durable.stream}.{durable.name}"
        polls = may(mine.publish, poll) and not may(mine.publish_denied, poll)
        acknowledges = may(mine.publish, f"$JS.ACK.{durable.stream}.{durable.name}.1.1.1.1.1")
        assert polls is (durable.service is service)
        assert acknowledges is (durable.service is service)


def test_who_is_asked_may_answer() -> None:
    answering = {service for service in USERS if GRANTS[service].responds}
    assert answering == {Service.SPEC_WATCHER, Service.CONSOLE}
