"""Stopping a router without losing what runs."""

import asyncio

import pytest

from services.router.tests.client import BrokenOffError, Client, chat, patiently, post_bytes
from services.router.tests.conftest import StartEngine, StartRouter
from services.router.tests.engine import Turn
from tests.support.eventually import eventually


async def test_what_runs_is_finished_and_nothing_new_is_accepted(
    start_router_under_test: StartRouter, start_engine: StartEngine
) -> None:
    router = await start_router_under_test(grace_seconds=20)
    finish = asyncio.Event()

    async def slow(turn: Turn) -> None:
        await turn.start_stream()
        await turn.event({"n": 1})
        await finish.wait()
        await turn.event({"n": 2})
        await turn.chunk(b"")

    router.serve((await start_engine(slow)).entry())
    port = router.port
    client, idle = await router.client(), await router.client()
    assert (await idle.get("/healthz")).status == 200
    await client.send(post_bytes(chat(stream=True)))
    response = await client.head()
    await client.chunk(response)
    stopping = asyncio.create_task(router.stop())

    assert await idle.is_closed()
    with pytest.raises(OSError, match=r"."):
        await Client.connect(port)
    assert not stopping.done()
    finish.set()
    assert b'"n": 2' in await client.chunk(response)
    assert await client.chunk(response) == b""
    assert await client.is_closed()
    await patiently(stopping)


async def test_a_request_that_was_on_its_way_is_served_as_the_last_of_its_connection(
    start_router_under_test: StartRouter, start_engine: StartEngine
) -> None:
    router = await start_router_under_test(grace_seconds=20, drain_linger_seconds=10)
    router.serve((await start_engine()).entry())
    fresh, used = await router.client(), await router.client()
    await used.post(chat())
    stopping = asyncio.create_task(router.stop())
    await eventually(lambda: router.running.listener.draining)
    for client in (fresh, used):
        response = await client.post(chat())
        assert response.status == 200
        assert response.headers["connection"] == "close"
        assert await client.is_closed()

    await patiently(stopping)


async def test_the_grace_period_ends(
    start_router_under_test: StartRouter, start_engine: StartEngine
) -> None:
    router = await start_router_under_test(grace_seconds=0.2)
    stopped = asyncio.Event()

    async def endless(turn: Turn) -> None:
        await turn.start_stream()
        await turn.event({"n": 1})
        await turn.gone()
        stopped.set()

    router.serve((await start_engine(endless)).entry())
    client = await router.client()
    await client.send(post_bytes(chat(stream=True)))
    response = await client.head()
    await client.chunk(response)
    await patiently(router.stop())

    with pytest.raises((BrokenOffError, ConnectionError)):
        await client.chunk(response)
    await patiently(stopped.wait())


async def test_what_was_counted_is_told_before_the_end(
    start_router_under_test: StartRouter, start_engine: StartEngine
) -> None:
    router = await start_router_under_test()
    router.serve((await start_engine()).entry())
    await (await router.client()).post(chat())
    await router.settled()
    await router.stop()

    assert router.demand.total("arrivals") == 1
