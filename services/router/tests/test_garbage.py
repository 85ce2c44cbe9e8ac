"""Requests and connections leave no reference cycles: what they took is free once they are over.

Workers collect cycles rarely (`main`), so that whatever leaves some makes the process grow.
"""

import asyncio
import gc
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

import pytest

from services.router.tests.builders import endpoint, route, route_key, rule, server, server_key
from services.router.tests.client import BrokenOffError, chat, post_bytes
from services.router.tests.conftest import RouterUnderTest, StartEngine
from services.router.tests.engine import Turn
from services.router.tests.engines_that_fail import closes, unavailable
from tests.support.eventually import eventually

Use = Callable[[RouterUnderTest], Awaitable[None]]


@contextmanager
def uncollected() -> Iterator[list[object]]:
    """The router's own objects that became garbage meanwhile and only a collection frees."""
    found: list[object] = []
    gc.collect()
    gc.disable()
    try:
        yield found
        gc.set_debug(gc.DEBUG_SAVEALL)
        gc.collect()
        found += [one for one in gc.garbage if type(one).__module__.startswith("inferbus")]
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()


async def requests_on_one_connection(router: RouterUnderTest) -> None:
    client = await router.client()
    for _ in range(20):
        assert (await client.post(chat())).status == 200


async def connections(router: RouterUnderTest) -> None:
    for _ in range(5):
        client = await router.client()
        assert (await client.post(chat())).status == 200
        client.close()


async def refused_requests(router: RouterUnderTest) -> None:
    for data in (b"garbage\r\n\r\n", post_bytes(chat(), headers={"expect": "x"})):
        client = await router.client()
        await client.send(data)
        assert (await client.response()).status >= 400
        client.close()


async def unknown_models(router: RouterUnderTest) -> None:
    client = await router.client()
    for number in range(5):
        assert (await client.post(chat(f"unknown-{number}"))).status == 404


async def clients_that_leave(router: RouterUnderTest) -> None:
    for _ in range(3):
        client = await router.client()
        await client.send(post_bytes(chat("stream", stream=True)))
        await client.head()
        client.abort()


async def engines_that_fail(router: RouterUnderTest) -> None:
    client = await router.client()
    for model in ("busy", "dead", "closing", "canary"):
        assert (await client.post(chat(model))).status in (200, 502, 503)


async def broken_streams(router: RouterUnderTest) -> None:
    for _ in range(3):
        client = await router.client()
        with pytest.raises(BrokenOffError):
            await client.post(chat("broken", stream=True))


async def typed_streams(router: RouterUnderTest) -> None:
    client = await router.client()
    assert (await client.post(chat("typed", stream=True), "/v1/messages")).status == 200


async def serves_streams(turn: Turn) -> None:
    await turn.start_stream()
    await turn.event({"choices": [{}]})
    await turn.gone()


async def breaks_streams(turn: Turn) -> None:
    await turn.start_stream()
    await turn.event({"choices": [{}]})
    turn.close()


async def serves_typed_streams(turn: Turn) -> None:
    await turn.start_stream()
    await turn.event({"type": "message_start", "message": {"usage": {"input_tokens": 3}}})
    await turn.event({"type": "message_stop"})
    await turn.chunk(b"")


@pytest.mark.parametrize(
    "use",
    [
        requests_on_one_connection,
        connections,
        refused_requests,
        unknown_models,
        clients_that_leave,
        engines_that_fail,
        broken_streams,
        typed_streams,
    ],
    ids=lambda use: use.__name__,
)
async def test_nothing_is_left_to_collect(
    router: RouterUnderTest, start_engine: StartEngine, dead_port: int, use: Use
) -> None:
    engines = {
        "m": (await start_engine()).entry(),
        "busy": (await start_engine(unavailable)).entry(),
        "closing": (await start_engine(closes)).entry(),
        "stream": (await start_engine(serves_streams)).entry(),
        "broken": (await start_engine(breaks_streams)).entry(),
        "typed": (await start_engine(serves_typed_streams)).entry(),
        "dead": endpoint(dead_port),
    }
    for model, entry in engines.items():
        router.apply(
            {
                route_key(model): route(rule(model), model=model),
                server_key(model): server(entry, retry_attempts=1, retry_interval_ms=1),
            }
        )
    router.apply({route_key("canary"): route(rule("dead", "m"), model="canary")})
    await use(router)
    await _quiet(router)
    with uncollected() as found:
        await use(router)
        await _quiet(router)

    assert found == []


async def _quiet(router: RouterUnderTest) -> None:
    """Nothing runs, and what was closed is gone."""
    router.leave()
    await eventually(lambda: router.running.listener.connections == 0)
    await router.settled()
    for _ in range(3):
        await asyncio.sleep(0)
