"""One line per request, as text or JSON, in the reference's format (routing spec 2.6).

Pure: a record in, a line out; writing is `log_writer`'s. Invariant: a line is one line, whatever
clients and engines sent.
"""

import json
from collections.abc import Callable
from functools import lru_cache

from inferbus_contracts.envelope import format_time
from inferbus_router.record import Destination, RequestRecord

LineFormat = Callable[[RequestRecord], str]

_UNREADABLE = '"- - HTTP/1.1"'
"""Stands for the request line of what wasn't understood."""


def text_line(record: RequestRecord) -> str:
    """`[time] "METHOD PATH PROTO" STATUS key=value … tokens=IN/OUT timings=…`; empty keys are left
    out.
    """
    request = record.request
    line = _UNREADABLE
    request_id = ""
    if request is not None:
        head = request.head
        line = f'"{head.method.decode()} {head.path} HTTP/1.{head.minor_version}"'
        request_id = f" request_id={request.request_id.decode()}"
    error = ""
    if record.error_type is not None:
        error = f" error={record.error_type}:{_one_line(record.error_message)}"
    model = f" model_name={_one_line(record.model)}" if record.model else ""
    route, backend = _destination(record.destination)
    pod = f" selected_pod={record.pod}" if record.pod else ""
    if record.prefill_pod:
        pod += f" prefill_pod={record.prefill_pod}"
    upstream = ""
    if record.attempts:
        status = record.upstream_status
        code = f" upstream_status_code={status}" if status else ""
        upstream = f"{backend}{code} upstream_attempts={record.attempts}"
    ended_ms = record.ended_ms
    request_ms, upstream_ms, response_ms = phases_ms(record)
    return (
        f"[{_second(ended_ms // 1000)}{ended_ms % 1000:03d}Z] {line} {record.status}{error}"
        f"{model}{route}{pod}{request_id}{upstream}{_rare(record)}"
        f" tokens={record.input_tokens}/{record.output_tokens}"
        f" timings={ended_ms - record.arrived_ms}ms({request_ms}+{upstream_ms}+{response_ms})\n"
    )


def _rare(record: RequestRecord) -> str:
    """The pairs that most requests don't have, in the reference's order."""
    if record.error_type is None and not record.gateway:
        return ""
    pairs = (
        ("error_origin", record.error_origin),
        ("gateway", record.gateway),
        ("http_route", record.http_route),
        ("inference_pool", record.inference_pool),
    )
    return "".join(f" {key}={value}" for key, value in pairs if value)


@lru_cache(maxsize=1024)
def _destination(destination: Destination) -> tuple[str, str]:
    """The pairs that depend on nothing else: before and behind the pod."""
    _, route, backend, upstream_model, _ = destination
    pairs = (("model_route", route), ("model_server", backend))
    return (
        "".join(f" {key}={value}" for key, value in pairs if value),
        f" backend_type=model_server backend_name={backend}"
        f" upstream_model={_one_line(upstream_model)}",
    )


def _one_line(text: str) -> str:
    if text.isprintable():
        return text
    return "".join(character if character.isprintable() else " " for character in text)


@lru_cache(maxsize=8)
def _second(second: int) -> str:
    """RFC 3339 up to the milliseconds, which are all that differs within a second."""
    return format_time(second * 1000)[: -len("000Z")]


def json_line(record: RequestRecord) -> str:
    """One JSON object with the reference's keys; absent where the reference leaves them out."""
    request = record.request
    request_ms, upstream_ms, response_ms = phases_ms(record)
    line: dict[str, object] = {"timestamp": format_time(record.ended_ms)}
    if request is not None:
        line |= {
            "method": request.head.method.decode(),
            "path": request.head.path,
            "protocol": f"HTTP/1.{request.head.minor_version}",
            "request_id": request.request_id.decode(),
        }
    line["status_code"] = record.status
    if record.error_type is not None:
        line["error"] = {"type": record.error_type, "message": record.error_message}
    _, route, backend, upstream_model, _ = record.destination
    optional = {
        "model_name": record.model,
        "model_route": route,
        "model_server": backend,
        "selected_pod": record.pod,
        "prefill_pod": record.prefill_pod,
        "backend_type": "model_server" if backend else "",
        "backend_name": backend,
        "upstream_model": upstream_model,
        "upstream_status_code": record.upstream_status,
        "upstream_attempts": record.attempts,
        "error_origin": record.error_origin,
        "gateway": record.gateway,
        "http_route": record.http_route,
        "inference_pool": record.inference_pool,
    }
    line |= {key: value for key, value in optional.items() if value}
    line |= {
        "input_tokens": record.input_tokens,
        "output_tokens": record.output_tokens,
        "duration_total": record.ended_ms - record.arrived_ms,
        "duration_request_processing": request_ms,
        "duration_upstream_processing": upstream_ms,
        "duration_response_processing": response_ms,
    }
    return json.dumps(line) + "\n"


def phases_ms(record: RequestRecord) -> tuple[int, int, int]:
    """Milliseconds in the router until it was sent, until the first byte came back, and to the
    end.
    """
    ended_ms = record.ended_ms
    sent_ms = record.sent_ms or ended_ms
    first_byte_ms = record.first_byte_ms or ended_ms
    return sent_ms - record.arrived_ms, first_byte_ms - sent_ms, ended_ms - first_byte_ms
