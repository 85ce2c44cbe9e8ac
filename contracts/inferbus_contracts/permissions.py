"""Who may say what on the bus, derived from the catalog and the topology.

A service may publish the events it writes and nothing else, read the events it reads and nothing
else, serve its own durables, and receive replies in an inbox of its own that no other user can
listen to. A test tries every user on every other's subjects.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from inferbus_contracts.api.console import ConsoleQuery, console_subject
from inferbus_contracts.api.objects import OBJECT_CALLERS, ObjectVerb, object_subject
from inferbus_contracts.api.routers import every_router_load_subject
from inferbus_contracts.catalog import EVENTS, Stream, read_by, written_by
from inferbus_contracts.services import Service
from inferbus_contracts.stream_specs import DurableSpec, Topology
from inferbus_contracts.subjects import ROOT, wildcard
from inferbus_contracts.topology import (
    ADVISORIES,
    CLOCK_BUCKET,
    DEAD_LETTER_ROOT,
    DEAD_LETTERS,
    FACTS_LAST,
    INBOX_EVENTS,
    MEMBERS_BUCKET,
    OBJECTS_BUCKET,
    PAYLOADS_STORE,
    WORKLOADS_BUCKET,
    bucket_stream,
    bucket_subject,
    inbox_stream,
    state_type,
)

_API = "$JS.API"


@dataclass(frozen=True)
class Grants:
    """The subjects of one user."""

    publish: tuple[str, ...]
    subscribe: tuple[str, ...]
    publish_denied: tuple[str, ...] = ()
    """Refused though `publish` would allow it: changing durables, and polling those of others."""
    responds: bool = False
    """May answer a request in the asker's inbox."""


def inbox_prefix(service: Service) -> str:
    """Replies to a service arrive below this."""
    return f"_INBOX_{service.value}"


def grants(service: Service, topology: Topology) -> Grants:
    """Everything that `service` may do; the provisioner alone may do everything."""
    if service is Service.PROVISIONER:
        return Grants(publish=(">",), subscribe=(">",), responds=True)
    publish = dict.fromkeys(_publishes(service, topology))
    subscribe = dict.fromkeys(_subscribes(service))
    responds = service in (Service.SPEC_WATCHER, Service.CONSOLE)
    denied = tuple(_denied(service, topology.durables))
    return Grants(tuple(publish), tuple(subscribe), denied, responds)


def _denied(service: Service, durables: Iterable[DurableSpec]) -> Iterator[str]:
    """A follower may have any name but a durable's: creating it anew would change the durable."""
    for durable in durables:
        yield f"{_API}.CONSUMER.CREATE.{durable.stream}.{durable.name}.>"
        if durable.service is not service:
            yield _poll(durable)


def _publishes(service: Service, topology: Topology) -> Iterator[str]:
    for event in written_by(service):
        yield wildcard(event.type)
    yield f"{DEAD_LETTER_ROOT}.{service.value}.>"
    yield bucket_subject(MEMBERS_BUCKET, f"{service.value}.>")
    yield from _requests(service)
    yield from _durables(d for d in topology.durables if d.service is service)
    yield from _decider(service)
    yield from _followers(service)
    yield from _stream_infos(service)
    yield from _inventory(service, topology)
    yield from _payloads()
    if service is Service.SPEC_WATCHER:
        yield bucket_subject(OBJECTS_BUCKET)
    if service is Service.WORKLOAD_RECONCILER:
        yield bucket_subject(WORKLOADS_BUCKET)
        own = bucket_subject(WORKLOADS_BUCKET)
        yield f"{_API}.DIRECT.GET.{bucket_stream(WORKLOADS_BUCKET)}.{own}"


def _requests(service: Service) -> Iterator[str]:
    for verb in sorted(OBJECT_CALLERS.get(service, frozenset())):
        yield object_subject(verb)
    if service is Service.CLI:
        for query in ConsoleQuery:
            yield console_subject(query)
    if service is Service.ROUTER:
        yield every_router_load_subject()


def _durables(durables: Iterable[DurableSpec]) -> Iterator[str]:
    for durable in durables:
        yield f"{_API}.CONSUMER.INFO.{durable.stream}.{durable.name}"
        yield _poll(durable)
        yield f"$JS.ACK.{durable.stream}.{durable.name}.>"


def _poll(durable: DurableSpec) -> str:
    return f"{_API}.CONSUMER.MSG.NEXT.{durable.stream}.{durable.name}"


def _decider(service: Service) -> Iterator[str]:
    if state_type(service) not in EVENTS:
        return
    yield wildcard(f"timer.{service.value}")


def followed(service: Service) -> tuple[tuple[str, str], ...]:
    """(stream, filter) of every ephemeral consumer the service may create."""
    pairs: list[tuple[str, str]] = []
    for event in read_by(service):
        pairs.append((event.stream, wildcard(event.type)))
        if event.stream is Stream.FACTS:
            pairs.append((FACTS_LAST, wildcard(event.type)))
    for event in written_by(service):
        pairs.append((event.stream, wildcard(event.type)))
    pairs += [
        (bucket_stream(bucket), bucket_subject(bucket)) for bucket in (MEMBERS_BUCKET, CLOCK_BUCKET)
    ]
    if service in (Service.SPEC_WATCHER, Service.NODE_AGENT, Service.WORKLOAD_RECONCILER):
        pairs.append((bucket_stream(OBJECTS_BUCKET), bucket_subject(OBJECTS_BUCKET)))
    if service in (Service.CONSOLE, Service.CLI):
        pairs += [
            (DEAD_LETTERS, f"{DEAD_LETTER_ROOT}.>"),
            (ADVISORIES, "$JS.EVENT.ADVISORY.>"),
            *((inbox_stream(decider), f"inbox.{decider.value}.>") for decider in INBOX_EVENTS),
            *((stream, f"{ROOT}.>") for stream in Stream),
        ]
    return tuple(dict.fromkeys(pairs))


def _followers(service: Service) -> Iterator[str]:
    for stream, filter_ in followed(service):
        yield f"{_API}.CONSUMER.CREATE.{stream}.*.{filter_}"
        yield f"{_API}.CONSUMER.MSG.NEXT.{stream}.*"
        yield f"{_API}.DIRECT.GET.{stream}.{filter_}"


def _stream_infos(service: Service) -> Iterator[str]:
    for stream in sorted({stream for stream, _ in followed(service)}):
        yield f"{_API}.STREAM.INFO.{stream}"


def _inventory(service: Service, topology: Topology) -> Iterator[str]:
    """The console tells how full each stream is, and how far behind each durable."""
    if service is not Service.CONSOLE:
        return
    for stream in topology.streams:
        yield f"{_API}.STREAM.INFO.{stream.name}"
    for durable in topology.durables:
        yield f"{_API}.CONSUMER.INFO.{durable.stream}.{durable.name}"


def _payloads() -> Iterator[str]:
    stream = f"OBJ_{PAYLOADS_STORE}"
    yield f"{_API}.STREAM.NAMES"
    yield f"$O.{PAYLOADS_STORE}.>"
    yield f"{_API}.STREAM.INFO.{stream}"
    yield f"{_API}.DIRECT.GET.{stream}.>"
    yield f"{_API}.STREAM.MSG.GET.{stream}"
    yield f"{_API}.CONSUMER.CREATE.{stream}"
    yield f"{_API}.CONSUMER.CREATE.{stream}.>"
    yield f"{_API}.CONSUMER.DELETE.{stream}.*"


def _subscribes(service: Service) -> Iterator[str]:
    yield f"{inbox_prefix(service)}.>"
    if service is Service.SPEC_WATCHER:
        for verb in ObjectVerb:
            yield object_subject(verb)
    if service is Service.CONSOLE:
        for query in ConsoleQuery:
            yield console_subject(query)
    if service is Service.ROUTER:
        yield every_router_load_subject()
    if service in (Service.CONSOLE, Service.CLI):
        yield f"{ROOT}.>"
        yield f"{DEAD_LETTER_ROOT}.>"
