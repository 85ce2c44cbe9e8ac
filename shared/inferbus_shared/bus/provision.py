"""Making the server match the topology: the one step that creates or changes anything on it.

Running it again changes nothing; a stream, durable or bucket that drifted is put right. What the
server cannot change in place is reported with both values, never dropped and made anew.
"""

import json
from dataclasses import dataclass, field
from typing import Any

from inferbus_contracts.errors import ErrorCode, Problem, ProblemsError
from inferbus_contracts.stream_specs import DurableSpec, SourceSpec, StreamSpec, Topology
from inferbus_contracts.topology import ACK_WAIT_SECONDS, CLOCK_BUCKET, MAX_DELIVER
from inferbus_shared.bus.bucket import Bucket, as_json
from inferbus_shared.bus.connection import Connection
from inferbus_shared.bus.jetstream import (
    CONSUMER_NOT_FOUND,
    STREAM_NOT_FOUND,
    JetStreamError,
    api,
)
from inferbus_shared.clock import REAL_TIME, Anchor, real_now_ms

ANCHOR_KEY = "anchor"
_NANOSECONDS = 1_000_000_000


@dataclass(slots=True)
class Report:
    """What was done, by name."""

    created: list[str] = field(default_factory=list)
    updated: list[str] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)


async def provision(connection: Connection, topology: Topology, storage_bytes: int) -> Report:
    """Create and update everything; `storage_bytes` is what the streams' shares are parts of.

    Raises `ProblemsError` when the server refuses, naming the stream or durable.
    """
    report = Report()
    ordered = sorted(topology.streams, key=lambda stream: bool(stream.sources))
    for stream in ordered:
        await _stream(connection, stream_config(stream, storage_bytes), report)
    for durable in topology.durables:
        await _durable(connection, durable, report)
    return report


async def set_clock(connection: Connection, rate: float) -> Anchor:
    """Make virtual time run at `rate` from now on, without a jump; returns the anchor."""
    bucket = Bucket(connection, CLOCK_BUCKET)
    old = await read_anchor(connection)
    if old.rate == rate:
        return old
    now = real_now_ms()
    anchor = Anchor(real_ms=now, virtual_ms=old.to_virtual(now), rate=rate)
    await bucket.put(
        ANCHOR_KEY,
        as_json({"realMs": anchor.real_ms, "virtualMs": anchor.virtual_ms, "rate": anchor.rate}),
    )
    return anchor


async def read_anchor(connection: Connection) -> Anchor:
    """The platform's anchor; real time where none was set."""
    entry = await Bucket(connection, CLOCK_BUCKET).get(ANCHOR_KEY)
    if entry is None or entry.value is None:
        return REAL_TIME
    value = json.loads(entry.value)
    return Anchor(real_ms=value["realMs"], virtual_ms=value["virtualMs"], rate=value["rate"])


def stream_config(stream: StreamSpec, storage_bytes: int) -> dict[str, Any]:
    """The server's configuration of a stream."""
    config: dict[str, Any] = {
        "name": stream.name,
        "storage": "file",
        "retention": "limits",
        "discard": "new" if stream.refuse_when_full else "old",
        "max_age": stream.max_age_seconds * _NANOSECONDS,
        "max_msgs_per_subject": stream.max_per_subject,
        "max_bytes": -1 if stream.share is None else int(stream.share * storage_bytes),
        "duplicate_window": _window(stream) * _NANOSECONDS,
        "allow_direct": True,
        "allow_atomic": stream.atomic,
        "allow_msg_schedules": stream.timers,
        "allow_rollup_hdrs": stream.rollup or stream.timers,
        "allow_msg_ttl": stream.message_ttl,
    }
    if stream.repeated:
        config["persist_mode"] = "async"
    if stream.subjects:
        config["subjects"] = list(stream.subjects)
    if stream.sources:
        config["sources"] = _sources(stream.sources)
    if stream.deletion_marker_ttl_seconds:
        config["subject_delete_marker_ttl"] = stream.deletion_marker_ttl_seconds * _NANOSECONDS
    return config


def _window(stream: StreamSpec) -> int:
    age = stream.max_age_seconds or stream.duplicate_window_seconds
    return min(stream.duplicate_window_seconds, age)


def _sources(sources: tuple[SourceSpec, ...]) -> list[dict[str, Any]]:
    by_stream: dict[str, dict[str, Any]] = {}
    for source in sources:
        entry = by_stream.setdefault(source.stream, {"name": source.stream})
        entry.setdefault("subject_transforms", []).append(
            {"src": source.filter, "dest": source.destination or source.filter}
        )
    return list(by_stream.values())


def durable_config(durable: DurableSpec) -> dict[str, Any]:
    """The server's configuration of a durable."""
    return {
        "durable_name": durable.name,
        "name": durable.name,
        "filter_subject": durable.filter,
        "deliver_policy": "all",
        "ack_policy": "explicit",
        "ack_wait": ACK_WAIT_SECONDS * _NANOSECONDS,
        "max_deliver": MAX_DELIVER,
        "max_ack_pending": 1 if durable.ordered else 64,
    }


async def _stream(connection: Connection, config: dict[str, Any], report: Report) -> None:
    name = config["name"]
    try:
        info = await api(connection, f"STREAM.INFO.{name}")
    except JetStreamError as error:
        if error.code != STREAM_NOT_FOUND:
            raise ProblemsError(_refused(f"stream {name}", error)) from error
        await _ask(connection, f"stream {name}", f"STREAM.CREATE.{name}", config)
        report.created.append(name)
        return
    if _differs(config, info["config"]):
        await _ask(connection, f"stream {name}", f"STREAM.UPDATE.{name}", config)
        report.updated.append(name)
    else:
        report.unchanged.append(name)


async def _durable(connection: Connection, durable: DurableSpec, report: Report) -> None:
    config = durable_config(durable)
    place = f"{durable.stream}.{durable.name}"
    try:
        info = await api(connection, f"CONSUMER.INFO.{place}")
    except JetStreamError as error:
        if error.code != CONSUMER_NOT_FOUND:
            raise ProblemsError(_refused(f"durable {place}", error)) from error
        known: dict[str, Any] | None = None
    else:
        known = info["config"]
    if known is not None and not _differs(config, known):
        report.unchanged.append(durable.name)
        return
    await _ask(
        connection,
        f"durable {place}",
        f"CONSUMER.CREATE.{place}.{durable.filter}",
        {
            "stream_name": durable.stream,
            "config": config,
            "action": "create" if known is None else "update",
        },
    )
    (report.created if known is None else report.updated).append(durable.name)


async def _ask(connection: Connection, what: str, call: str, body: dict[str, Any]) -> None:
    try:
        await api(connection, call, body)
    except JetStreamError as error:
        raise ProblemsError(_refused(what, error)) from error


def _differs(wanted: dict[str, Any], actual: dict[str, Any]) -> bool:
    """Whether a wanted value isn't the actual one; the server leaves out false and zero."""
    return any((value or None) != (actual.get(name) or None) for name, value in wanted.items())


def _refused(what: str, error: JetStreamError) -> Problem:
    return Problem(
        code=ErrorCode.BUS_REFUSED,
        message=f"the server refused {what}: {error.description} ({error.code})",
        remedy="what cannot be changed in place has to be removed by hand, with its data",
    )
