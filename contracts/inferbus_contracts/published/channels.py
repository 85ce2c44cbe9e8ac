"""What each service says and hears on the bus: channels with their subjects, and who uses them.

Invariant: derived from catalog, topology, permissions and calls alone. The server's own subjects
(`$JS`, acknowledgements, the object store of large bodies) are left out.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from inferbus_contracts.catalog import EventSpec, Stream, read_by, written_by
from inferbus_contracts.events.scaling import Woken
from inferbus_contracts.permissions import followed, grants
from inferbus_contracts.published.calls import CALLS, WORDS, Call
from inferbus_contracts.published.messages import (
    DEAD_LETTER,
    Message,
    entry_message,
    event_message,
    reply_message,
    request_message,
    word_message,
)
from inferbus_contracts.services import Service
from inferbus_contracts.subjects import ROOT
from inferbus_contracts.topology import (
    CLOCK_BUCKET,
    DEAD_LETTER_ROOT,
    DEAD_LETTERS,
    FACTS_LAST,
    INBOX_EVENTS,
    MEMBERS_BUCKET,
    OBJECTS_BUCKET,
    WORKLOADS_BUCKET,
    bucket_stream,
    bucket_subject,
    inbox_stream,
    topology,
)

_KEY = "{kind}.{namespace}.{name}"
_BUCKETS = {
    CLOCK_BUCKET: ("{entry}", "What virtual time is counted from."),
    MEMBERS_BUCKET: (
        "{service}.{instance}",
        "Which instances are there; an entry that isn't renewed is gone.",
    ),
    OBJECTS_BUCKET: (_KEY, "All objects with their status."),
    WORKLOADS_BUCKET: (_KEY, "What the reconciler remembers of each workload."),
}
"""Key and meaning of each bucket."""

_PARAMETER = re.compile(r"\{(\w+)\}")


class Direction(StrEnum):
    """AsyncAPI's two actions."""

    SEND = "send"
    RECEIVE = "receive"


@dataclass(frozen=True, kw_only=True)
class Channel:
    """One place on the bus."""

    id: str
    subject: str | None
    """With `{parameters}` in the place of tokens; None: the asker's own place for replies."""
    message: Message
    description: str
    streams: tuple[str, ...] = ()
    """Where what is said here is kept; empty for core NATS."""

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the parameters of the subject, in order."""
        return tuple(_PARAMETER.findall(self.subject or ""))


@dataclass(frozen=True, kw_only=True)
class Use:
    """A service uses a channel."""

    direction: Direction
    channel: Channel
    reply: Channel | None = None
    """Where the answer goes; None where nobody answers."""


def uses(service: Service) -> tuple[Use, ...]:
    """Everything that a service says and hears, each once."""
    found = (
        *_events(service),
        *_calls(service),
        *_words(service),
        *_dead_letters(service),
        *_buckets(service),
    )
    return tuple(dict.fromkeys(found))


def _send(channel: Channel, reply: Channel | None = None) -> Use:
    return Use(direction=Direction.SEND, channel=channel, reply=reply)


def _receive(channel: Channel, reply: Channel | None = None) -> Use:
    return Use(direction=Direction.RECEIVE, channel=channel, reply=reply)


def _events(service: Service) -> Iterator[Use]:
    for event in written_by(service):
        yield _send(_timer(event) if event.data is Woken else _event(event))
    inbox = INBOX_EVENTS.get(service, ())
    for event in read_by(service):
        yield _receive(_inbox(service, event) if event.type in inbox else _event(event))


def _event(event: EventSpec) -> Channel:
    last = (FACTS_LAST,) if event.stream is Stream.FACTS else ()
    return Channel(
        id=event.type,
        subject=f"{ROOT}.{event.type}.{_KEY}",
        message=event_message(event),
        description=f"Keyed by {event.key}. Written by the {event.writer.value} alone.",
        streams=(event.stream.value, *last),
    )


def _timer(event: EventSpec) -> Channel:
    type_ = event.type.replace(Woken.event_type, "timer", 1)
    return Channel(
        id=type_,
        subject=f"{ROOT}.{type_}.{_KEY}",
        message=event_message(event),
        description=f"Scheduled messages: the server moves each to {event.type} when it is due.",
        streams=(event.stream.value,),
    )


def _inbox(service: Service, event: EventSpec) -> Channel:
    return Channel(
        id=f"inbox.{event.type}",
        subject=f"inbox.{service.value}.{{partition}}.{event.type}.{_KEY}",
        message=event_message(event),
        description=f"{event.type} in the total order of its key, one durable for each partition.",
        streams=(inbox_stream(service),),
    )


def _calls(service: Service) -> Iterator[Use]:
    for call in CALLS:
        if service in call.callers:
            yield _send(_request(call), _reply(call))
        if service is call.server:
            yield _receive(_request(call), _reply(call))


def _request(call: Call) -> Channel:
    return Channel(
        id=call.id,
        subject=call.subject,
        message=request_message(call),
        description=f"Answered by any one instance of the {call.server.value}.",
    )


def _reply(call: Call) -> Channel:
    return Channel(
        id=f"{call.id}.reply",
        subject=None,
        message=reply_message(call),
        description="The inbox that the asker names in its request.",
    )


def _words(service: Service) -> Iterator[Use]:
    for word in WORDS:
        if service is word.service:
            channel = Channel(
                id=word.id,
                subject=word.subject,
                message=word_message(word),
                description=f"Told by each instance of the {service.value} to the others.",
            )
            yield from (_send(channel), _receive(channel))


def _dead_letters(service: Service) -> Iterator[Use]:
    yield _send(_letters("own-dead-letters", service.value))
    if (DEAD_LETTERS, f"{DEAD_LETTER_ROOT}.>") in followed(service):
        yield _receive(_letters("dead-letters", "{service}"))


def _letters(channel_id: str, writer: str) -> Channel:
    return Channel(
        id=channel_id,
        subject=f"{DEAD_LETTER_ROOT}.{writer}.{{subject}}",
        message=DEAD_LETTER,
        description="Events that could not be handled, with the reason.",
        streams=(DEAD_LETTERS,),
    )


def _buckets(service: Service) -> Iterator[Use]:
    own = _bucket(MEMBERS_BUCKET, f"{service.value}.{{instance}}", ".own")
    yield _send(own)
    allowed = grants(service, topology()).publish
    for bucket, (key, _) in _BUCKETS.items():
        every = bucket_subject(bucket)
        if every in allowed:
            yield _send(_bucket(bucket, key))
        if f"$JS.API.DIRECT.GET.{bucket_stream(bucket)}.{every}" in allowed:
            yield _receive(_bucket(bucket, key))


def _bucket(bucket: str, key: str, part: str = "") -> Channel:
    return Channel(
        id=f"bucket.{bucket}{part}",
        subject=bucket_subject(bucket, key),
        message=entry_message(bucket),
        description=_BUCKETS[bucket][1],
        streams=(bucket_stream(bucket),),
    )
