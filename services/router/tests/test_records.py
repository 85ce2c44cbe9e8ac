"""Access log lines and metrics: what operators see of requests."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from inferbus_contracts.events.demand import LATENCY_BOUNDS_MS
from inferbus_router.access_log import json_line, text_line
from inferbus_router.errors import RequestError, bad_gateway, error_body, model_not_found
from inferbus_router.log_writer import MOST_WAITING_LINES, LogWriter, open_log
from inferbus_router.metrics import metrics_page
from inferbus_router.record import Destination, RequestRecord
from inferbus_router.traffic import Histogram, Traffic, path_label
from services.router.tests.builders import request_of
from tests.support.eventually import eventually

T0 = 1_700_000_000_123


def record(**fields: Any) -> RequestRecord:
    """A request that was answered."""
    request = request_of()
    request.request_id = b"r1"
    made = RequestRecord(request, T0)
    known: dict[str, Any] = {
        "sent_ms": T0 + 2,
        "first_byte_ms": T0 + 7,
        "ended_ms": T0 + 20,
        "status": 200,
        "model": "m",
        "destination": Destination("m", "ns/r", "ns/ms", "up"),
        "pod": "pod-1",
        "upstream_status": 200,
        "attempts": 1,
        "input_tokens": 12,
        "output_tokens": 34,
    }
    for name, value in (known | fields).items():
        setattr(made, name, value)
    return made


def test_a_line_of_text() -> None:
    assert text_line(record()) == (
        '[2023-11-14T22:13:20.143Z] "POST /v1/chat/completions HTTP/1.1" 200 model_name=m'
        " model_route=ns/r model_server=ns/ms selected_pod=pod-1 request_id=r1"
        " backend_type=model_server backend_name=ns/ms upstream_model=up"
        " upstream_status_code=200 upstream_attempts=1 tokens=12/34 timings=20ms(2+5+13)\n"
    )


def test_what_never_came_is_left_out() -> None:
    failed = record(destination=Destination(), pod="", attempts=0, upstream_status=0)
    failed.sent_ms = failed.first_byte_ms = failed.input_tokens = failed.output_tokens = 0
    failed.fail(model_not_found("m"))

    assert text_line(failed) == (
        '[2023-11-14T22:13:20.143Z] "POST /v1/chat/completions HTTP/1.1" 404'
        " error=route_not_found:The model `m` does not exist, or no route serves it for this"
        " request. model_name=m request_id=r1 error_origin=router tokens=0/0"
        " timings=20ms(20+0+0)\n"
    )


def test_a_line_of_json_has_the_references_keys() -> None:
    assert json.loads(json_line(record())) == {
        "timestamp": "2023-11-14T22:13:20.143Z",
        "method": "POST",
        "path": "/v1/chat/completions",
        "protocol": "HTTP/1.1",
        "status_code": 200,
        "model_name": "m",
        "model_route": "ns/r",
        "model_server": "ns/ms",
        "selected_pod": "pod-1",
        "request_id": "r1",
        "backend_type": "model_server",
        "backend_name": "ns/ms",
        "upstream_model": "up",
        "upstream_status_code": 200,
        "upstream_attempts": 1,
        "input_tokens": 12,
        "output_tokens": 34,
        "duration_total": 20,
        "duration_request_processing": 2,
        "duration_upstream_processing": 5,
        "duration_response_processing": 13,
    }


def test_rt_38_a_line_has_what_only_some_requests_have() -> None:
    made = record(gateway="ns/g", http_route="ns/h", inference_pool="ns/p")
    made.fail(bad_gateway("closed"))

    assert (
        " upstream_attempts=1 error_origin=upstream gateway=ns/g http_route=ns/h"
        " inference_pool=ns/p tokens=12/34 "
    ) in text_line(made)
    line = json.loads(json_line(made))
    assert [line[key] for key in ("error_origin", "gateway", "http_route", "inference_pool")] == [
        "upstream",
        "ns/g",
        "ns/h",
        "ns/p",
    ]


@given(st.text(), st.text())
def test_a_line_is_one_line_whatever_is_in_it(model: str, message: str) -> None:
    made = record(model=model)
    made.fail(RequestError(500, "x", message, model_not_found("m").error_type))

    for line in (text_line(made), json_line(made)):
        assert line.endswith("\n")
        assert len(line.encode("utf-8", "backslashreplace").decode().splitlines()) == 1
    assert json.loads(json_line(made))["error"]["message"] == message


def test_a_request_that_was_not_understood_has_a_line_too() -> None:
    made = record()
    made.request = None

    assert '"- - HTTP/1.1" 200' in text_line(made)
    assert "path" not in json.loads(json_line(made))


def test_errors_are_openai_error_objects() -> None:
    assert json.loads(error_body(404, "model_not_found", "no such", "model")) == {
        "error": {
            "message": "no such",
            "type": "invalid_request_error",
            "param": "model",
            "code": "model_not_found",
        }
    }
    kinds = {
        status: json.loads(error_body(status, "c", "m"))["error"]["type"] for status in (429, 503)
    }
    assert kinds == {429: "rate_limit_error", 503: "server_error"}


# The log file.


def log_writer(path: Path | None, descriptor: int | None = None) -> LogWriter:
    return LogWriter(text_line, open_log(path) if descriptor is None else descriptor, flush_ms=10)


async def test_lines_are_appended_without_being_asked(tmp_path: Path) -> None:
    path = tmp_path / "access.log"
    path.write_text("before\n")
    writer = log_writer(path)
    for _ in range(3):
        writer.write(record())

    await eventually(lambda: len(path.read_text().splitlines()) == 4)
    writer.close()


async def test_closing_writes_what_is_left(tmp_path: Path) -> None:
    writer = log_writer(tmp_path / "access.log")
    writer.write(record())
    writer.close()

    assert (tmp_path / "access.log").read_text() == text_line(record())


async def test_a_pipe_that_nobody_reads_costs_lines_and_nothing_else() -> None:
    reading, writing = os.pipe()
    writer = log_writer(None, writing)
    for _ in range(3 * MOST_WAITING_LINES):
        writer.write(record())
        if writer.dropped:
            break
    assert writer.dropped
    writer.close()
    os.close(reading)


async def test_a_pipe_that_is_read_again_gets_every_line() -> None:
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    writer = log_writer(None, writing)
    count, data = 5_000, b""
    for _ in range(count):
        writer.write(record())

    def read_on() -> bool:
        nonlocal data
        try:
            data += os.read(reading, 1 << 20)
        except BlockingIOError:
            return False
        return data.count(b"\n") == count

    await eventually(read_on)
    assert data == text_line(record()).encode() * count
    assert not writer.dropped
    writer.close()
    os.close(reading)


async def test_a_pipe_without_a_reader_is_told_once_and_survived(
    caplog: pytest.LogCaptureFixture,
) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    writer = log_writer(None, writing)
    writer.write(record())
    await eventually(lambda: writer.dropped == 1)
    writer.write(record())
    await eventually(lambda: writer.dropped == 2)
    writer.close()

    assert len([r for r in caplog.records if "can't be written" in r.message]) == 1


# Metrics.


def samples(traffic: Traffic) -> dict[str, list[tuple[dict[str, str], float]]]:
    page, _ = metrics_page(traffic, lambda: [("held_requests", "x", 2.0)])
    found: dict[str, list[tuple[dict[str, str], float]]] = {}
    for family in text_string_to_metric_families(page.decode()):
        for sample in family.samples:
            found.setdefault(sample.name, []).append((sample.labels, sample.value))
    return found


def test_counters_become_the_references_families() -> None:
    traffic = Traffic()
    destination = traffic.to(Destination("m", "ns/r", "ns/ms", "up"))
    destination.outcome("/v1/chat/completions", 200, None).count(40, 12, 34)
    destination.ttft.observe(7)
    destination.active += 1
    traffic.model("m").active += 1
    traffic.model("m").limited["input_tokens", "/v1/chat/completions"] = 3
    found = samples(traffic)
    labels = {
        "model": "m",
        "model_route": "ns/r",
        "backend_type": "model_server",
        "backend_name": "ns/ms",
        "upstream_model": "up",
    }
    at = {"path": "/v1/chat/completions"}

    assert found["kthena_router_requests_total"] == [
        (labels | at | {"status_code": "200", "error_type": "successful_request"}, 1.0)
    ]
    assert found["kthena_router_tokens_total"] == [
        (labels | at | {"token_type": "input"}, 12.0),
        (labels | at | {"token_type": "output"}, 34.0),
    ]
    assert found["kthena_router_request_duration_seconds_sum"][0][1] == 0.04
    buckets = {
        float(found_labels["le"]): value
        for found_labels, value in found["inferbus_router_time_to_first_token_seconds_bucket"]
    }
    assert (buckets[0.005], buckets[0.01], buckets[float("inf")]) == (0, 1, 1)
    assert [key * 1000 for key in buckets][:-1] == list(LATENCY_BOUNDS_MS)
    assert found["kthena_router_rate_limit_exceeded_total"][0][1] == 3.0
    assert found["kthena_router_active_downstream_requests"] == [({"model": "m"}, 1.0)]
    assert found["kthena_router_active_upstream_requests"][0][0]["model_server"] == "ns/ms"
    assert found["inferbus_router_held_requests"] == [({}, 2.0)]


def test_t010_a_request_for_an_unknown_model_is_counted_without_its_name() -> None:
    traffic = Traffic()
    error = model_not_found("client-text").error_type
    traffic.to(Destination()).outcome(path_label("/v1/anything"), 404, error).count(1, 0, 0)
    ((labels, value),) = samples(traffic)["kthena_router_requests_total"]

    assert value == 1.0
    assert labels == {
        "model": "unknown",
        "path": "other",
        "status_code": "404",
        "error_type": "route_not_found",
        "model_route": "none",
        "backend_type": "unresolved",
        "backend_name": "none",
        "upstream_model": "none",
    }


def test_counters_of_removed_routes_go_when_nothing_runs_there() -> None:
    traffic = Traffic()
    running = traffic.to(Destination("m", "ns/old", "ns/ms", "m"))
    running.active += 1
    traffic.to(Destination("m", "ns/old", "ns/idle", "m"))
    kept = traffic.to(Destination("m", "ns/new", "ns/ms", "m"))
    traffic.forget_routes({"ns/old"})

    assert list(traffic.destinations()) == [running, kept]


@given(st.lists(st.integers(0, 100_000), max_size=50))
def test_a_histogram_counts_every_value_at_the_first_bound_that_holds_it(values: list[int]) -> None:
    histogram = Histogram()
    for value in values:
        index = histogram.observe(value)
        assert index == len([bound for bound in LATENCY_BOUNDS_MS if bound < value])

    assert sum(histogram.counts) == len(values)
    assert histogram.sum_ms == sum(values)
