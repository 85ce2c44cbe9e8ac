"""Traces: continued from clients, passed on to engines, told to a collector."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferbus_contracts.errors import ProblemsError
from inferbus_router.policy_trace_context import Trace, read_parent
from services.router.tests.client import chat
from services.router.tests.conftest import RouterUnderTest, StartEngine, StartRouter
from services.router.tests.engine import Engine, Turn, answers
from tests.support.eventually import eventually

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
PARENT = f"00-{TRACE}-{SPAN}-01"
IDS = int("1234" * 16, 16)
QUICK = 0.02


class Traced:
    """A router that sends its spans to a collector, and an engine behind it."""

    def __init__(self, router: RouterUnderTest, engine: Engine, collector: Engine) -> None:
        self.router = router
        self.engine = engine
        self.collector = collector

    @property
    def spans(self) -> list[dict[str, Any]]:
        """What the collector has got, attributes as a dictionary."""
        return [
            span | {"attributes": {a["key"]: a["value"] for a in span.get("attributes", [])}}
            for turn in self.collector.turns
            for resource in turn.json["resourceSpans"]
            for scope in resource["scopeSpans"]
            for span in scope["spans"]
        ]

    async def span_pair(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """The router's and the engine's span of the only request."""
        await eventually(lambda: len(self.spans) == 2)
        own, upstream = self.spans
        return own, upstream


@pytest.fixture
async def traced(start_router_under_test: StartRouter, start_engine: StartEngine) -> Traced:
    collector, engine = await start_engine(), await start_engine()
    router = await start_router_under_test(
        tracing=f"http://127.0.0.1:{collector.port}", tracing_interval_seconds=QUICK
    )
    router.serve(engine.entry(), model="m")
    return Traced(router, engine, collector)


async def test_rt_38_a_request_makes_a_span_and_the_engine_is_told_of_its_own(
    traced: Traced,
) -> None:
    response = await (await traced.router.client()).post(chat())
    own, upstream = await traced.span_pair()
    version, trace_id, parent_id, flags = traced.engine.turns[0].headers["traceparent"].split("-")

    assert (own["kind"], own["name"]) == (2, "POST /v1/chat/completions")
    assert "parentSpanId" not in own
    assert (upstream["kind"], upstream["parentSpanId"]) == (3, own["spanId"])
    assert (version, trace_id, parent_id, flags) == (
        "00",
        own["traceId"],
        upstream["spanId"],
        "01",
    )
    assert int(own["startTimeUnixNano"]) <= int(upstream["startTimeUnixNano"])
    assert int(upstream["endTimeUnixNano"]) <= int(own["endTimeUnixNano"])
    assert own["attributes"]["http.response.status_code"] == {"intValue": "200"}
    assert own["attributes"]["gen_ai.usage.output_tokens"] == {"intValue": "5"}
    assert own["attributes"]["inferbus.request_id"] == {
        "stringValue": response.headers["x-request-id"]
    }
    assert upstream["attributes"]["inferbus.pod"] == {"stringValue": f"pod-{traced.engine.port}"}
    assert traced.collector.turns[0].target == "/v1/traces"


async def test_a_trace_of_the_client_is_continued(traced: Traced) -> None:
    headers = {"TraceParent": PARENT, "tracestate": "a=1", "x-other": "y"}
    await (await traced.router.client()).post(chat(), headers=headers)
    own, upstream = await traced.span_pair()
    told = traced.engine.turns[0].headers

    assert (own["traceId"], own["parentSpanId"]) == (TRACE, SPAN)
    assert told["traceparent"] == f"00-{TRACE}-{upstream['spanId']}-01"
    assert (told["tracestate"], told["x-other"]) == ("a=1", "y")


async def test_what_the_client_does_not_sample_is_passed_on_and_not_told(traced: Traced) -> None:
    client = await traced.router.client()
    await client.post(chat(), headers={"traceparent": PARENT[:-1] + "0"})
    await client.post(chat())
    own, _ = await traced.span_pair()

    assert traced.engine.turns[0].headers["traceparent"].endswith("-00")
    assert own["traceId"] != TRACE


async def test_a_trace_that_cannot_be_read_is_replaced_with_its_state(traced: Traced) -> None:
    headers = {"traceparent": "00-oops", "tracestate": "a=1"}
    await (await traced.router.client()).post(chat(), headers=headers)
    own, _ = await traced.span_pair()
    told = traced.engine.turns[0].headers

    assert told["traceparent"].split("-")[1] == own["traceId"]
    assert "tracestate" not in told


async def test_requests_of_one_connection_have_spans_of_their_own(traced: Traced) -> None:
    client = await traced.router.client()
    for _ in range(3):
        await client.post(chat())
    await eventually(lambda: len(traced.spans) == 6)

    assert len({span["spanId"] for span in traced.spans}) == 6
    assert len({span["traceId"] for span in traced.spans}) == 3


async def test_an_error_is_told(traced: Traced) -> None:
    async def closes(turn: Turn) -> None:
        turn.close()

    traced.engine.script = closes
    await (await traced.router.client()).post(chat())
    own, _ = await traced.span_pair()

    assert own["status"]["code"] == 2
    assert own["attributes"]["error.type"] == {"stringValue": "proxy"}


async def test_a_request_that_no_engine_sees_has_one_span(traced: Traced) -> None:
    await (await traced.router.client()).post(chat(model="unknown"))
    await eventually(lambda: len(traced.spans) == 1)

    assert "status" not in traced.spans[0], "it is the client's error"


async def test_a_collector_that_fails_costs_spans_and_nothing_else(traced: Traced) -> None:
    async def refuses(turn: Turn) -> None:
        await turn.respond({}, status=503)

    traced.collector.script = refuses
    client = await traced.router.client()
    assert (await client.post(chat())).status == 200

    async def dropped() -> bool:
        return (await traced.router.metrics())["inferbus_router_traced_requests_dropped"] == 1

    await eventually(dropped)
    traced.collector.script = answers
    await client.post(chat())

    async def exported() -> bool:
        return (await traced.router.metrics())["inferbus_router_traced_requests_exported"] == 1

    await eventually(exported)


async def test_the_last_spans_are_sent_when_the_router_stops(
    start_router_under_test: StartRouter, start_engine: StartEngine
) -> None:
    collector, engine = await start_engine(), await start_engine()
    router = await start_router_under_test(
        tracing=f"http://127.0.0.1:{collector.port}/own/path", tracing_interval_seconds=3600
    )
    router.serve(engine.entry())
    await (await router.client()).post(chat())
    await router.stop()

    assert [turn.target for turn in collector.turns] == ["/own/path"]


async def test_nothing_is_sampled_at_a_ratio_of_zero(
    start_router_under_test: StartRouter, start_engine: StartEngine
) -> None:
    collector, engine = await start_engine(), await start_engine()
    router = await start_router_under_test(
        tracing=f"http://127.0.0.1:{collector.port}", tracing_sample_ratio=0
    )
    router.serve(engine.entry())
    await (await router.client()).post(chat())
    await router.stop()

    assert engine.turns[0].headers["traceparent"].endswith("-00")
    assert collector.turns == []


async def test_without_a_collector_a_trace_passes_through_as_it_is(
    router: RouterUnderTest, start_engine: StartEngine
) -> None:
    engine = await start_engine()
    router.serve(engine.entry())
    await (await router.client()).post(chat(), headers={"traceparent": PARENT, "tracestate": "a=1"})

    told = engine.turns[0].headers
    assert (told["traceparent"], told["tracestate"]) == (PARENT, "a=1")


@pytest.mark.parametrize(
    "url", ["127.0.0.1:4318", "ftp://a", "http://", "http://a:x", "grpc://a:1"]
)
async def test_a_bad_address_is_an_error(start_router_under_test: StartRouter, url: str) -> None:
    with pytest.raises(ProblemsError) as raised:
        await start_router_under_test(tracing=url)

    assert raised.value.problems[0].field == "INFERBUS_ROUTER_TRACING"


@pytest.mark.parametrize(
    ("value", "is_read"),
    [
        (PARENT, True),
        (f"00-{TRACE}-{SPAN}-00", True),
        (f"cc-{TRACE}-{SPAN}-01-more", True),
        (f"ff-{TRACE}-{SPAN}-01", False),
        (f"00-{TRACE}-{SPAN}-01-more", False),
        (f"00-{'0' * 32}-{SPAN}-01", False),
        (f"00-{TRACE}-{'0' * 16}-01", False),
        (f"00-{TRACE.upper()}-{SPAN}-01", False),
        (f"00-{TRACE}-{SPAN}", False),
        ("", False),
    ],
)
def test_which_parents_are_read(value: str, is_read: bool) -> None:
    lines = f"\r\na: b\r\ntraceparent: {value}\r\nc: d".encode()

    assert (read_parent(lines) is not None) is is_read


def test_two_parents_are_none() -> None:
    lines = f"\r\ntraceparent: {PARENT}\r\ntraceparent: {PARENT}".encode()

    assert read_parent(lines) is None
    assert Trace(lines, IDS, True).forwarded.count(b"traceparent:") == 1


@given(st.binary(max_size=60).filter(lambda value: b"\r" not in value and b"\n" not in value))
def test_whatever_a_client_sends_one_valid_parent_goes_on(value: bytes) -> None:
    forwarded = Trace(b"\r\ntraceparent: " + value + b"\r\nx: y", IDS, True).forwarded

    assert forwarded.lower().count(b"\r\ntraceparent:") == 1
    assert read_parent(forwarded) is not None
    assert b"\r\nx: y" in forwarded
