"""Requests as OpenTelemetry spans, in OTLP's JSON form (OTLP 1, encoding of protobuf as JSON).

A request is a server span; what an engine did for it is a client span below, whose id the engine
was told. Attributes follow the semantic conventions for HTTP and for generative AI where they have
a name. Invariant: nothing of a prompt or an answer stands in a span.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from inferbus_router.policy_trace_context import Trace
from inferbus_router.record import RequestRecord

_SERVER, _CLIENT = 2, 3
_ERROR = 2
_NS_PER_MS = 1_000_000

Span = dict[str, Any]


def export_request(
    records: Iterable[tuple[RequestRecord, Trace]], service: str, instance: str
) -> dict[str, Any]:
    """The body of one export: the spans of requests that have ended."""
    resource = {"service.name": service, "service.instance.id": instance}
    spans = [span for record, trace in records for span in spans_of(record, trace)]
    scope = {"scope": {"name": "inferbus_router"}, "spans": spans}
    return {
        "resourceSpans": [
            {"resource": {"attributes": _attributes(resource)}, "scopeSpans": [scope]}
        ]
    }


def spans_of(record: RequestRecord, trace: Trace) -> Iterator[Span]:
    """The request's own span, and the engine's where one was asked."""
    span = _span(record, trace, trace.span_id, trace.parent_id, record.arrived_ms)
    request = record.request
    if request is not None:
        method = request.head.method.decode()
        span["name"] = f"{method} {request.head.path}"
        span["attributes"] = _attributes(
            {
                "http.request.method": method,
                "url.path": request.head.path,
                "http.response.status_code": record.status,
                "inferbus.request_id": request.request_id.decode(),
                "inferbus.model_route": record.destination.route,
                **_model(record),
                "error.type": str(record.error_type or ""),
            }
        )
    span["kind"] = _SERVER
    yield span
    if record.sent_ms:
        yield _upstream_span(record, trace)


def _upstream_span(record: RequestRecord, trace: Trace) -> Span:
    span = _span(record, trace, trace.upstream_span_id, trace.span_id, record.sent_ms)
    span["name"] = "upstream"
    span["kind"] = _CLIENT
    span["attributes"] = _attributes(
        {
            "http.response.status_code": record.upstream_status,
            "http.request.resend_count": record.attempts - 1,
            "inferbus.model_server": record.destination.backend,
            "inferbus.pod": record.pod,
            **_model(record),
        }
    )
    if record.first_byte_ms:
        name, at = "first byte", _nanoseconds(record.first_byte_ms)
        span["events"] = [{"name": name, "timeUnixNano": at}]
    return span


def _span(
    record: RequestRecord, trace: Trace, span_id: bytes, parent_id: bytes, start_ms: int
) -> Span:
    span: Span = {
        "traceId": trace.trace_id.decode(),
        "spanId": span_id.decode(),
        "startTimeUnixNano": _nanoseconds(start_ms),
        "endTimeUnixNano": _nanoseconds(record.ended_ms),
    }
    if parent_id:
        span["parentSpanId"] = parent_id.decode()
    if record.error_type is not None and (record.status >= 500 or record.broke_off):
        span["status"] = {"code": _ERROR, "message": record.error_message}
    return span


def _model(record: RequestRecord) -> dict[str, str | int]:
    return {
        "gen_ai.request.model": record.model,
        "gen_ai.response.model": record.destination.upstream_model,
        "gen_ai.usage.input_tokens": record.input_tokens,
        "gen_ai.usage.output_tokens": record.output_tokens,
    }


def _attributes(values: Mapping[str, str | int]) -> list[dict[str, Any]]:
    """OTLP's list of pairs; empty texts and zeros are left out."""
    return [
        {
            "key": key,
            "value": {"intValue": str(value)} if isinstance(value, int) else {"stringValue": value},
        }
        for key, value in values.items()
        if value
    ]


def _nanoseconds(at_ms: int) -> str:
    """OTLP writes 64-bit integers as text."""
    return str(at_ms * _NS_PER_MS)
