"""Streams of every interface: what counts when they are whole, and when they aren't."""

import asyncio
import json
from collections.abc import AsyncIterator

import pytest

from inferbus_contracts.events.route import TokenLimit
from inferbus_router.record import RequestRecord
from services.router.tests.builders import route, route_key
from services.router.tests.client import BrokenOffError, Client, chat, post_bytes
from services.router.tests.conftest import RouterUnderTest, StartEngine
from services.router.tests.engine import Turn
from tests.support.eventually import eventually

COMPLETED = {
    "type": "response.completed",
    "response": {"usage": {"input_tokens": 7, "output_tokens": 90}},
}
USAGE = {"prompt_tokens": 7, "completion_tokens": 90, "total_tokens": 97}


class Log:
    """Keeps the records of ended requests."""

    def __init__(self, router: RouterUnderTest) -> None:
        self.records: list[RequestRecord] = []
        router.running.router.ledger.log = self.records.append

    async def only(self) -> RequestRecord:
        """The record, once there is one."""
        await eventually(lambda: self.records)
        (record,) = self.records
        return record


async def read_events(client: Client, count: int) -> None:
    """Read the head and that many events of a stream."""
    response = await client.head()
    for _ in range(count):
        assert await client.chunk(response)


@pytest.mark.parametrize("reset", [False, True])
async def test_t044_a_response_cut_by_its_engine_counts_what_was_streamed(
    router: RouterUnderTest, start_engine: StartEngine, reset: bool
) -> None:
    """Better than nothing being charged: one token for each event that the client got."""

    async def cut(turn: Turn) -> None:
        await turn.start_stream()
        for text in "ab":
            await turn.event({"type": "response.output_text.delta", "delta": text})
        await eventually(lambda: router.running.router.ledger.traffic.active_requests)
        turn.close(reset)

    router.serve((await start_engine(cut)).entry())
    log = Log(router)
    with pytest.raises(BrokenOffError) as broken:
        await (await router.client()).post(chat(stream=True), "/v1/responses")
    record = await log.only()

    seen = broken.value.response.body.count(b"output_text.delta")
    assert (record.broke_off, record.output_tokens) == (True, seen)
    assert record.error_type == "upstream_response"
    await router.settled()


@pytest.mark.parametrize(
    ("path", "last"),
    [
        ("/v1/responses", COMPLETED),
        ("/v1/messages", {"type": "message_stop"}),
        ("/v1/chat/completions", "[DONE]"),
    ],
)
async def test_t044_a_client_that_has_everything_may_leave(
    router: RouterUnderTest, start_engine: StartEngine, path: str, last: object
) -> None:
    async def never_ends(turn: Turn) -> None:
        await turn.start_stream()
        await turn.event({"type": "message_start", "message": {"usage": {"input_tokens": 7}}})
        await turn.event({"type": "message_delta", "usage": {"output_tokens": 90}})
        data = last if isinstance(last, str) else json.dumps(last)
        await turn.chunk(f"data: {data}\n\n".encode())
        await turn.gone()

    router.serve((await start_engine(never_ends)).entry())
    log = Log(router)
    client = await router.client()
    await client.send(post_bytes(chat(stream=True), path))
    response = await client.head()
    text = b""
    while (b"[DONE]" if last == "[DONE]" else json.dumps(last).encode()) not in text:
        text += await client.chunk(response)
    client.close()
    record = await log.only()

    assert (record.status, record.error_type, record.client_left) == (200, None, False)
    if last != "[DONE]":
        assert (record.input_tokens, record.output_tokens) == (7, 90)
    await router.settled()


@pytest.mark.parametrize("path", ["/v1/responses", "/v1/chat/completions"])
async def test_t044_a_client_that_leaves_earlier_has_left(
    router: RouterUnderTest, start_engine: StartEngine, path: str
) -> None:
    async def never_ends(turn: Turn) -> None:
        await turn.start_stream()
        await turn.event({"type": "response.in_progress", "response": {"usage": None}})
        await turn.gone()

    router.serve((await start_engine(never_ends)).entry())
    log = Log(router)
    client = await router.client()
    await client.send(post_bytes(chat(stream=True), path))
    await read_events(client, 1)
    client.close()
    record = await log.only()

    assert (record.client_left, record.error_type) == (True, "response_forwarding")
    await router.settled()


async def test_rt_41_what_a_stream_used_is_charged_and_a_success_is_counted(
    router: RouterUnderTest, start_engine: StartEngine
) -> None:
    async def streams(turn: Turn) -> None:
        await turn.start_stream()
        await turn.event({"choices": [{"delta": {"content": "a"}}]})
        assert turn.json["stream_options"] == {"include_usage": True, "other": 1}
        await turn.event({"choices": [], "usage": USAGE})
        await turn.chunk(b"data: [DONE]\n\n")
        await turn.chunk(b"")

    router.serve((await start_engine(streams)).entry())
    router.apply({route_key("r"): route(limit=TokenLimit(output_tokens=90, unit_seconds=86400))})
    client = await router.client()
    body = chat(stream=True, stream_options={"other": 1}, max_tokens=1)
    first = await client.post(body)
    await router.settled()
    second = await client.post(body)

    assert (first.status, second.status) == (200, 429)
    metrics = await router.metrics()
    assert metrics["kthena_router_requests_total"] == 2
    assert metrics["kthena_router_tokens_total"] == 97


@pytest.fixture
async def held_stream(
    router: RouterUnderTest, start_engine: StartEngine
) -> AsyncIterator[asyncio.Event]:
    """An engine whose stream ends, without the event that makes it whole, when it is set."""
    finish = asyncio.Event()

    async def ends_early(turn: Turn) -> None:
        await turn.start_stream()
        await turn.event({"type": "message_start", "message": {"usage": {"input_tokens": 900}}})
        await finish.wait()
        await turn.chunk(b"")

    router.serve((await start_engine(ends_early)).entry())
    yield finish
    finish.set()


async def test_a_message_that_never_stops_counts_as_estimated(
    router: RouterUnderTest, held_stream: asyncio.Event
) -> None:
    log = Log(router)
    client = await router.client()
    await client.send(post_bytes(chat(stream=True), "/v1/messages"))
    held_stream.set()
    assert (await client.response()).status == 200

    assert (await log.only()).input_tokens < 900
    await router.settled()
