"""Streams: forwarded as they come, counted, cut short by either side, and held back for slow
clients.
"""

import asyncio
import json

import pytest

from inferbus_router.event_stream import failure_event
from services.router.tests.builders import server, server_key
from services.router.tests.client import (
    BrokenOffError,
    Client,
    Response,
    chat,
    patiently,
    post_bytes,
)
from services.router.tests.conftest import RouterUnderTest, StartEngine, StartRouter
from services.router.tests.engine import Turn, answers
from tests.support.eventually import eventually

USAGE = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}


def delta(text: str) -> dict[str, object]:
    return {"choices": [{"index": 0, "delta": {"content": text}}]}


async def streams(turn: Turn) -> None:
    """Three events, usage where it was asked for, and the end."""
    await turn.start_stream()
    for text in "abc":
        await turn.event(delta(text))
    if (turn.json.get("stream_options") or {}).get("include_usage"):
        await turn.event({"choices": [], "usage": USAGE})
    await turn.chunk(b"data: [DONE]\n\n")
    await turn.chunk(b"")


def events(response: Response) -> list[object]:
    """The data of all events."""
    blocks = response.body.decode().split("\n\n")
    assert blocks[-1] == "", "the last event is whole"
    lines = [line for block in blocks for line in block.split("\n") if line.startswith("data: ")]
    return [json.loads(text) if (text := line[6:]) != "[DONE]" else text for line in lines]


async def test_t039_usage_is_asked_for_counted_and_not_shown(
    router: RouterUnderTest, start_engine: StartEngine
) -> None:
    engine = await start_engine(streams)
    router.serve(engine.entry())
    response = await (await router.client()).post(chat(stream=True))

    assert engine.turns[0].json["stream_options"] == {"include_usage": True}
    assert events(response) == [delta("a"), delta("b"), delta("c"), "[DONE]"]
    await router.settled()
    await eventually(lambda: router.demand.total("output_tokens") == 3)
    assert (await router.metrics())["kthena_router_tokens_total"] == 10


async def test_t041_usage_that_the_client_wants_is_shown(
    router: RouterUnderTest, start_engine: StartEngine
) -> None:
    engine = await start_engine(streams)
    router.serve(engine.entry())
    body = chat(stream=True, stream_options={"include_usage": True, "other": 1})
    response = await (await router.client()).post(body)

    assert engine.turns[0].body == body
    assert {"choices": [], "usage": USAGE} in events(response)


async def test_t042_a_request_that_is_no_stream_is_not_changed(
    router: RouterUnderTest, start_engine: StartEngine
) -> None:
    engine = await start_engine()
    router.serve(engine.entry())
    body = chat(stream=False)
    await (await router.client()).post(body)

    assert engine.turns[0].body == body


@pytest.mark.parametrize("path", ["/v1/responses", "/v1/messages"])
async def test_interfaces_without_stream_options_are_not_given_any(
    router: RouterUnderTest, start_engine: StartEngine, path: str
) -> None:
    engine = await start_engine(streams)
    router.serve(engine.entry())
    body = chat(stream=True)
    await (await router.client()).post(body, path)

    assert engine.turns[0].body == body


class Stepwise:
    """Sends an event each time it is told to."""

    def __init__(self, count: int) -> None:
        self.go_on = asyncio.Event()
        self._count = count

    async def __call__(self, turn: Turn) -> None:
        await turn.start_stream()
        for step in range(self._count):
            await turn.event({"step": step})
            await self.go_on.wait()
            self.go_on.clear()
        await turn.chunk(b"")


async def test_events_come_as_the_engine_sends_them(
    router: RouterUnderTest, start_engine: StartEngine
) -> None:
    script = Stepwise(3)
    router.serve((await start_engine(script)).entry())
    client = await router.client()
    await client.send(post_bytes(chat(stream=True)))
    response = await client.head()
    seen = []
    for _ in range(3):
        seen.append(json.loads((await client.chunk(response))[6:])["step"])
        script.go_on.set()

    assert seen == [0, 1, 2]
    assert await client.chunk(response) == b""


async def test_time_to_first_token_and_between_tokens_is_measured_of_streams_alone(
    router: RouterUnderTest, start_engine: StartEngine
) -> None:
    script = Stepwise(3)
    engine = await start_engine(script)
    router.serve(engine.entry())
    client = await router.client()
    await client.send(post_bytes(chat(stream=True)))
    response = await client.head()
    while await client.chunk(response):
        script.go_on.set()
    engine.script = answers
    await client.post(chat())
    await router.settled()
    metrics = await router.metrics()

    assert metrics["inferbus_router_time_to_first_token_seconds_count"] == 1
    assert metrics["inferbus_router_inter_token_seconds_count"] == 2
    await eventually(
        lambda: (
            sum(
                sum(model.ttft_ms_buckets)
                for _, data in router.demand.seconds
                for model in data.models
            )
            == 1
        )
    )


async def test_an_http_1_0_client_gets_the_stream_until_the_connection_closes(
    router: RouterUnderTest, start_engine: StartEngine
) -> None:
    engine = await start_engine(streams)
    router.serve(engine.entry())
    client = await router.client()
    await client.send(post_bytes(chat(stream=True)).replace(b"HTTP/1.1", b"HTTP/1.0"))
    response = await client.response()

    assert "transfer-encoding" not in response.headers
    assert response.headers["connection"] == "close"
    assert events(response)[-1] == "[DONE]"


async def test_a_stream_of_an_http_1_0_engine_without_a_length(
    router: RouterUnderTest, start_engine: StartEngine
) -> None:
    async def old(turn: Turn) -> None:
        await turn.send(b"HTTP/1.0 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: 1\n\n")
        await turn.send(b"data: 2\n\n")
        turn.close()

    engine = await start_engine(old)
    router.serve(engine.entry())
    client = await router.client()

    for _ in range(2):
        assert events(await client.post(chat(stream=True))) == [1, 2]
    assert engine.connections == 2


async def test_two_hundred_streams_at_once(
    router: RouterUnderTest, start_engine: StartEngine
) -> None:
    everybody = asyncio.Event()

    async def together(turn: Turn) -> None:
        await turn.start_stream()
        await turn.event({"n": turn.json["n"]})
        await everybody.wait()
        for step in range(5):
            await turn.event({"n": turn.json["n"], "step": step})
        await turn.chunk(b"")

    engines = [await start_engine(together) for _ in range(2)]
    router.serve(*(engine.entry() for engine in engines))

    async def one(n: int) -> list[object]:
        client = await router.client()
        return events(await client.post(chat(stream=True, n=n)))

    running = [asyncio.create_task(one(n)) for n in range(200)]
    await eventually(lambda: sum(len(engine.turns) for engine in engines) == 200)
    everybody.set()

    for n, received in enumerate(await asyncio.gather(*running)):
        assert received == [{"n": n}, *({"n": n, "step": step} for step in range(5))]
    assert [len(engine.turns) for engine in engines] == [100, 100]
    await router.settled()


# Clients that leave, and clients that are slow.


async def leaving(client: Client, way: str) -> None:
    if way == "close":
        client.close()
    elif way == "reset":
        client.abort()
    else:
        client.writer.write_eof()


@pytest.mark.parametrize("way", ["close", "reset", "half-close"])
@pytest.mark.parametrize("moment", ["before the response", "within the stream"])
async def test_a_client_that_leaves_stops_the_engine(
    router: RouterUnderTest, start_engine: StartEngine, way: str, moment: str
) -> None:
    stopped = asyncio.Event()

    async def endless(turn: Turn) -> None:
        if moment == "within the stream":
            await turn.start_stream()
            await turn.event(delta("a"))
        await turn.gone()
        stopped.set()

    engine = await start_engine(endless)
    router.serve(engine.entry())
    client = await router.client()
    await client.send(post_bytes(chat(stream=True)))
    if moment == "within the stream":
        response = await client.head()
        await client.chunk(response)
    else:
        await eventually(lambda: engine.turns)
    await leaving(client, way)

    await patiently(stopped.wait())
    await router.settled()
    await eventually(lambda: router.demand.total("arrivals") == 1)
    assert router.demand.total("completions") == router.demand.total("errors") == 0


async def test_a_slow_client_holds_the_engine_back_and_loses_nothing(
    start_router_under_test: StartRouter, start_engine: StartEngine
) -> None:
    router = await start_router_under_test()
    size, count, sent = 64 * 1024, 1000, 0

    async def fast(turn: Turn) -> None:
        nonlocal sent
        await turn.start_stream("application/octet-stream")
        for _ in range(count):
            await turn.chunk(b"x" * size)
            sent += 1
        await turn.chunk(b"")

    engine = await start_engine(fast)
    router.serve(engine.entry())
    client = await router.client(limit=64 * 1024)
    await client.send(post_bytes(chat()))
    response = await client.head()

    last = -1

    def stands_still() -> bool:
        nonlocal last
        before, last = last, sent
        return before == last

    await eventually(stands_still)
    assert sent < count, "the engine can't send on"
    received = 0
    while chunk := await client.chunk(response):
        received += len(chunk)
    assert received == size * count
    await router.settled()


async def test_a_client_that_takes_nothing_is_given_up(
    start_router_under_test: StartRouter, start_engine: StartEngine
) -> None:
    router = await start_router_under_test(stream_idle_timeout_seconds=0.3)
    stopped = asyncio.Event()

    async def floods(turn: Turn) -> None:
        await turn.start_stream("application/octet-stream")
        try:
            while True:
                await turn.chunk(b"x" * 65536)
        except ConnectionError:
            stopped.set()

    engine = await start_engine(floods)
    router.serve(engine.entry())
    client = await router.client(limit=1024)
    await client.send(post_bytes(chat()))

    await patiently(stopped.wait())
    await router.settled()


# Engines that fail within a stream.


@pytest.mark.parametrize("reset", [False, True])
async def test_rt_19_a_stream_that_breaks_off_ends_with_an_error_and_not_as_if_it_were_whole(
    router: RouterUnderTest, start_engine: StartEngine, reset: bool
) -> None:
    async def dies(turn: Turn) -> None:
        await turn.start_stream()
        await turn.event(delta("a"))
        await turn.chunk(b'data: {"choi')
        await eventually(lambda: router.running.router.ledger.traffic.active_requests)
        turn.close(reset)

    engine = await start_engine(dies)
    router.serve(engine.entry(), retry_attempts=5)
    client = await router.client()
    with pytest.raises(BrokenOffError) as broken:
        await client.post(chat(stream=True))
    received = broken.value.response

    assert received.status == 200
    first, last = events(received)
    assert first == delta("a")
    assert isinstance(last, dict)
    assert last["error"]["code"] == "response_broke_off"
    assert failure_event(json.dumps(last).encode()) in received.body
    assert len(engine.turns) == 1, "what the client saw can't be taken back"
    await router.settled()
    await eventually(lambda: router.demand.total("errors") == 1)


@pytest.mark.parametrize("framing", ["Content-Length: 100", "Transfer-Encoding: chunked"])
async def test_a_response_that_is_no_stream_and_breaks_off_is_not_ended(
    router: RouterUnderTest, start_engine: StartEngine, framing: str
) -> None:
    async def dies(turn: Turn) -> None:
        await turn.send(f"HTTP/1.1 200 OK\r\n{framing}\r\n\r\n5\r\nhello".encode())
        turn.close()

    engine = await start_engine(dies)
    router.serve(engine.entry())
    with pytest.raises(BrokenOffError):
        await (await router.client()).post(chat())
    await router.settled()


async def test_garbage_within_a_stream_breaks_it_off(
    router: RouterUnderTest, start_engine: StartEngine
) -> None:
    async def babbles(turn: Turn) -> None:
        await turn.start_stream()
        await turn.event(delta("a"))
        await turn.send(b"this is no chunk\r\n")
        await turn.gone()

    engine = await start_engine(babbles)
    router.serve(engine.entry())
    with pytest.raises(BrokenOffError) as broken:
        await (await router.client()).post(chat(stream=True))

    assert b"malformed" in broken.value.response.body
    await router.settled()


async def test_a_stream_that_falls_silent_breaks_off(
    start_router_under_test: StartRouter, start_engine: StartEngine
) -> None:
    router = await start_router_under_test(stream_idle_timeout_seconds=0.1)

    async def falls_silent(turn: Turn) -> None:
        await turn.start_stream()
        await turn.event(delta("a"))
        await turn.gone()

    engine = await start_engine(falls_silent)
    router.serve(engine.entry())
    with pytest.raises(BrokenOffError) as broken:
        await (await router.client()).post(chat(stream=True))

    assert b"nothing came for 0.1 seconds" in broken.value.response.body
    await eventually(lambda: engine.open == 0)
    await router.settled()


async def test_the_next_request_of_a_connection_is_not_disturbed_by_a_stream(
    router: RouterUnderTest, start_engine: StartEngine
) -> None:
    engine = await start_engine(streams)
    router.serve(engine.entry())
    client = await router.client()
    for _ in range(5):
        assert events(await client.post(chat(stream=True)))[-1] == "[DONE]"

    assert engine.connections == 1
    router.apply({server_key("ms"): server(engine.entry(), model="renamed")})
    await client.post(chat(stream=True))
    assert engine.turns[-1].json["model"] == "renamed"
    assert engine.turns[-1].json["stream_options"] == {"include_usage": True}
