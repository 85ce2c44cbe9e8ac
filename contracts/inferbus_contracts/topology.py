"""Streams, inboxes, durables and buckets: everything that stands on the server, from one table.

Pure data: `shared.bus.provision` creates it, services only check that it is there. Every number is
explained beside it. Sizes are shares of the storage limit, see `StreamSpec.share`.
"""

from collections.abc import Iterable

from inferbus_contracts.catalog import (
    EVENTS,
    STATE_CARRIERS,
    Stream,
    state_beside,
    state_or_carrier,
)
from inferbus_contracts.events.scaling import Woken
from inferbus_contracts.events.state import StateStored
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.services import Service
from inferbus_contracts.stream_specs import DurableSpec, SourceSpec, StreamSpec, Topology
from inferbus_contracts.subjects import ROOT, escape, subject, wildcard

PARTITIONS = 8
"""Partitions of an inbox: the most instances of one service that can share its work."""

HOUR = 3600
DAY = 24 * HOUR

FACTS_LAST = "FACTS_LAST"
DEAD_LETTERS = "DLQ"
ADVISORIES = "ADVISORIES"
DEAD_LETTER_ROOT = "dlq"
_TIMER = "timer"
MAX_DELIVER_ADVISORY = "$JS.EVENT.ADVISORY.CONSUMER.MAX_DELIVERIES.>"

OBJECTS_BUCKET = "objects"
MEMBERS_BUCKET = "members"
CLOCK_BUCKET = "clock"
WORKLOADS_BUCKET = "workloads"
"""What the reconciler must remember about a workload that its pods can't tell."""
PAYLOADS_STORE = "payloads"
"""Object store of bodies over `MAX_BODY_BYTES`."""

MAX_BODY_BYTES = 256 * 1024
"""A larger body goes to the object store and the event carries `ce-dataref`."""

MEMBER_TTL_SECONDS = 6
"""An instance that hasn't renewed its membership for that long has left."""

ACK_WAIT_SECONDS = 10
"""Unacknowledged for that long, an event is delivered again (long work calls `Working`)."""

MAX_DELIVER = 12
"""Deliveries before the server gives up on an event whose handler never answers (crash loop)."""


INBOX_EVENTS: dict[Service, tuple[str, ...]] = {
    Service.AUTOSCALER: (
        "metrics.sampled",
        "demand.observed",
        "demand.pending",
        "scaling.applied",
        "woken.autoscaler",
    ),
    Service.OPTIMIZER: ("scaling.demanded", "scaling.applied", "woken.optimizer"),
    Service.WORKLOAD_RECONCILER: (
        "scaling.decided",
        "scaling.allocated",
        "control.approved",
    ),
}
"""Which events a deciding service handles in the total order of their key."""


def inbox_stream(service: Service) -> str:
    """The name of a service's inbox stream."""
    return f"INBOX_{service.value.replace('-', '_').upper()}"


def inbox_filter(service: Service, partition: int) -> str:
    """Everything in one partition of an inbox."""
    return f"inbox.{service.value}.{partition}.>"


def durable_name(service: Service, partition: int | str) -> str:
    """The durable that serves one partition, or one node."""
    suffix = f"p{partition}" if isinstance(partition, int) else escape(partition)
    return f"{service.value}-{suffix}"


def timer_subject(service: Service, key: ObjectKey) -> str:
    """Where a decider schedules its one timer of a key: a new one replaces the old."""
    return subject(f"{_TIMER}.{service.value}", key)


def is_timer(message_subject: str) -> bool:
    """Whether a message is a timer that hasn't fired: no event yet, and perhaps never one."""
    return f"{ROOT}.{_TIMER}." in message_subject


def node_commands_filter(node: str) -> str:
    """The requests for artifacts of one node (its name stands in the namespace token)."""
    return wildcard("model.requested", "Artifact", node)


def bucket_stream(bucket: str) -> str:
    """The stream behind a key-value bucket."""
    return f"KV_{bucket}"


def bucket_subject(bucket: str, key: str = ">") -> str:
    """The subject of one entry of a bucket, or of all."""
    return f"$KV.{bucket}.{key}"


def topology(nodes: Iterable[str] = ()) -> Topology:
    """All there is, with a command consumer for each node of the process substrate."""
    return Topology(
        streams=(
            *_event_streams(),
            StreamSpec(
                name=FACTS_LAST,
                sources=(SourceSpec(stream=Stream.FACTS, filter=f"{ROOT}.>"),),
                max_per_subject=1,
                refuse_when_full=True,
                share=0.08,
            ),
            *(_inbox(service) for service in INBOX_EVENTS),
            StreamSpec(
                name=DEAD_LETTERS,
                subjects=(f"{DEAD_LETTER_ROOT}.>",),
                max_age_seconds=30 * DAY,
                share=0.03,
            ),
            StreamSpec(
                name=ADVISORIES,
                subjects=(MAX_DELIVER_ADVISORY,),
                max_age_seconds=7 * DAY,
                share=0.01,
            ),
            StreamSpec(
                name=f"OBJ_{PAYLOADS_STORE}",
                subjects=(f"$O.{PAYLOADS_STORE}.C.>", f"$O.{PAYLOADS_STORE}.M.>"),
                max_age_seconds=14 * DAY,
                rollup=True,
                refuse_when_full=True,
                share=0.05,
            ),
            *_buckets(),
        ),
        durables=(
            *(
                DurableSpec(
                    name=durable_name(service, partition),
                    stream=inbox_stream(service),
                    service=service,
                    filter=inbox_filter(service, partition),
                )
                for service in INBOX_EVENTS
                for partition in range(PARTITIONS)
            ),
            *(
                DurableSpec(
                    name=durable_name(Service.MODEL_DOWNLOADER, node),
                    stream=Stream.COMMANDS,
                    service=Service.MODEL_DOWNLOADER,
                    filter=node_commands_filter(node),
                    ordered=False,
                )
                for node in nodes
            ),
        ),
    )


def _event_streams() -> tuple[StreamSpec, ...]:
    def subjects(stream: Stream) -> tuple[str, ...]:
        return tuple(wildcard(event.type) for event in EVENTS.values() if event.stream is stream)

    timers = tuple(
        wildcard(event.type.replace(Woken.event_type, "timer", 1))
        for event in EVENTS.values()
        if event.data is Woken
    )
    return (
        StreamSpec(
            name=Stream.FACTS,
            subjects=subjects(Stream.FACTS),
            max_age_seconds=14 * DAY,
            atomic=True,
            share=0.12,
        ),
        StreamSpec(
            name=Stream.TELEMETRY,
            subjects=subjects(Stream.TELEMETRY),
            max_age_seconds=12 * HOUR,
            share=0.1,
        ),
        StreamSpec(
            name=Stream.DEMAND,
            subjects=subjects(Stream.DEMAND),
            max_age_seconds=42 * DAY,
            message_ttl=True,
            share=0.08,
        ),
        StreamSpec(
            name=Stream.DECISIONS,
            subjects=(*subjects(Stream.DECISIONS), *timers),
            atomic=True,
            timers=True,
            rollup=True,
            message_ttl=True,
            share=None,  # a stream with timers cannot refuse, and no decision may be dropped
        ),
        StreamSpec(
            name=Stream.ROUTES,
            subjects=subjects(Stream.ROUTES),
            max_per_subject=1,
            atomic=True,
            refuse_when_full=True,
            share=0.03,
        ),
        StreamSpec(
            name=Stream.COMMANDS,
            subjects=subjects(Stream.COMMANDS),
            max_age_seconds=7 * DAY,
            share=0.02,
        ),
        StreamSpec(name=Stream.AUDIT, subjects=subjects(Stream.AUDIT), share=0.01),
    )


def _inbox(service: Service) -> StreamSpec:
    def source(event_type: str) -> SourceSpec:
        return SourceSpec(
            stream=EVENTS[event_type].stream,
            filter=wildcard(event_type),
            destination=(
                f"inbox.{service.value}.{{{{partition({PARTITIONS},1,2,3)}}}}.{event_type}"
                ".{{wildcard(1)}}.{{wildcard(2)}}.{{wildcard(3)}}"
            ),
        )

    return StreamSpec(
        name=inbox_stream(service),
        sources=tuple(source(event_type) for event_type in INBOX_EVENTS[service]),
        max_age_seconds=3 * DAY,
        share=0.05,
    )


def _buckets() -> tuple[StreamSpec, ...]:
    def bucket(
        name: str, share: float, max_age_seconds: int = 0, marker: int = 0, repeated: bool = False
    ) -> StreamSpec:
        return StreamSpec(
            name=bucket_stream(name),
            subjects=(bucket_subject(name),),
            max_per_subject=1,
            max_age_seconds=max_age_seconds,
            atomic=name == OBJECTS_BUCKET,
            rollup=True,
            message_ttl=marker > 0,
            deletion_marker_ttl_seconds=marker,
            refuse_when_full=True,
            share=share,
            repeated=repeated,
        )

    return (
        bucket(OBJECTS_BUCKET, 0.1, marker=HOUR),
        bucket(MEMBERS_BUCKET, 0.001, max_age_seconds=MEMBER_TTL_SECONDS, repeated=True),
        bucket(CLOCK_BUCKET, 0.005),
        bucket(WORKLOADS_BUCKET, 0.02, marker=HOUR),
    )


def state_type(service: Service) -> str:
    """The event type of a decider's state where no decision carries it; empty for others."""
    carrier = STATE_CARRIERS.get(service)
    return "" if carrier is None else state_beside(carrier)


def former_state_type(service: Service) -> str:
    """The event type of a decider's state before decisions carried it: read, not written."""
    return f"{StateStored.event_type}.{service.value}"


def state_filter(service: Service, key: ObjectKey) -> str:
    """Both places where the state of a decider's key may stand, and nothing else."""
    return subject(state_or_carrier(STATE_CARRIERS[service]), key)


def woken_type(service: Service) -> str:
    """The event type of a decider's fired timer."""
    return f"{Woken.event_type}.{service.value}"
