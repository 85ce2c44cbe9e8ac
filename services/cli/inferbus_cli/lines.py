"""Messages of the bus as lines: for people, and as JSON for programs. Pure."""

import json
from collections.abc import Callable
from typing import Any

from inferbus_cli.documents import as_line
from inferbus_cli.reading import Read
from inferbus_cli.summaries import summary
from inferbus_cli.units import clock_time
from inferbus_contracts.envelope import format_time
from inferbus_contracts.subjects import ROOT
from inferbus_contracts.topology import DEAD_LETTER_ROOT

REQUEST_ROOT = f"{ROOT}.api."
TIMER_ROOT = f"{ROOT}.timer."

_TYPE_WIDTH = 18
_KEY_WIDTH = 34
_REASON = "inferbus-reason"

Form = Callable[[Read], str]
"""A line, ended."""


def short(read: Read) -> str:
    """`time type key summary`."""
    time_ms = read.event.time_ms if read.event else read.message.stamp_ms
    return f"{clock_time(time_ms)}  {_about(read)}\n"


def dated(read: Read) -> str:
    """The same with the date, for what is older than a day."""
    time_ms = read.event.time_ms if read.event else read.message.stamp_ms
    return f"{format_time(time_ms)}  {_about(read)}\n"


def wide(read: Read) -> str:
    """With the place in the log, the writer, the id and the cause."""
    message = read.message
    place = f"{message.stream}:{message.sequence}" if message.stream else message.subject
    said = [dated(read).rstrip("\n"), f"[{place}]"]
    if read.event is not None:
        envelope = read.event.envelope
        said += [f"id={envelope.id}", f"from={envelope.source}"]
        said += [f"cause={envelope.causation_id}"] if envelope.causation_id else []
    return "  ".join(said) + "\n"


def as_json_line(read: Read) -> str:
    """One JSON object on one line."""
    message = read.message
    told: dict[str, Any] = {"subject": message.subject}
    if message.stream:
        told |= {"stream": message.stream, "sequence": message.sequence}
    if read.event is not None:
        envelope = read.event.envelope
        told |= {
            "time": format_time(envelope.time_ms),
            "type": envelope.type,
            "key": str(envelope.key),
            "id": envelope.id,
            "source": envelope.source,
            "causationId": envelope.causation_id,
            "correlationId": envelope.correlation_id,
            "data": read.event.data.to_dict(),
        }
    else:
        told |= {"time": format_time(message.stamp_ms), "body": _body(message.data)}
        if _is_event(read) and read.problem is not None:
            told["problem"] = read.problem.to_dict()
    if _REASON in message.headers:
        told["reason"] = message.headers[_REASON]
    return as_line(told)


def _about(read: Read) -> str:
    type_, key, said = _parts(read)
    return f"{type_:<{_TYPE_WIDTH}}  {key:<{_KEY_WIDTH}}  {said}"


def _parts(read: Read) -> tuple[str, str, str]:
    message, event = read.message, read.event
    reason = message.headers.get(_REASON)
    if message.subject.startswith(REQUEST_ROOT):
        return "request", message.subject.removeprefix(REQUEST_ROOT), _request(message.data)
    if event is None:
        told = reason or (read.problem.message if read.problem else "")
        return "unreadable", message.subject, told
    if reason is not None:
        service = message.subject.removeprefix(f"{DEAD_LETTER_ROOT}.").partition(".")[0]
        return event.envelope.type, str(event.key), f"refused by {service}: {reason}"
    if message.subject.startswith(TIMER_ROOT):
        due = message.headers.get("Nats-Schedule", "").removeprefix("@at ")
        return "timer", str(event.key), f"{summary(event.data)}, due {due}"
    return event.envelope.type, str(event.key), summary(event.data)


def _request(body: bytes) -> str:
    """What a request is about, as far as it says so at its top level."""
    content = _body(body)
    if not isinstance(content, dict):
        return ""
    plain = (f"{name}={value}" for name, value in content.items() if isinstance(value, str | int))
    lists = (f"{len(value)} {name}" for name, value in content.items() if isinstance(value, list))
    return ", ".join((*plain, *lists))


def _body(body: bytes) -> Any:
    try:
        return json.loads(body)
    except ValueError:
        return body.decode(errors="replace")


def _is_event(read: Read) -> bool:
    return not read.message.subject.startswith(REQUEST_ROOT)
