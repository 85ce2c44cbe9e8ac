"""Many requests through pairs whose engines fail at any point: every client gets one answer."""

import asyncio
import random

import pytest

from services.router.tests.client import BrokenOffError, Client, chat, patiently, post_bytes
from services.router.tests.conftest import StartEngine, StartRouter
from services.router.tests.engine import Script, Turn, answers
from services.router.tests.pairs_under_test import (
    closes,
    fails,
    prefills,
    refuses,
    serve_groups,
    start_group,
    streams,
)

GROUPS = 3
CLIENTS = 6
REQUESTS_EACH = 15
LEAVING = 0.3
"""Of clients that leave right after their request, beside those that stay."""
ANSWERED = {0, 200, 400, 500, 502, 503, 504}
"""0: broken off."""


def breaks_off(said: bytes) -> Script:
    """An engine that says so much, and is gone."""

    async def script(turn: Turn) -> None:
        await turn.send(said)
        turn.close(reset=not said)

    return script


async def hangs(turn: Turn) -> None:
    await turn.gone()


async def half_a_stream(turn: Turn) -> None:
    await turn.start_stream()
    await turn.event({"choices": [{"index": 0, "delta": {"content": "a"}}]})
    turn.close(reset=True)


FAULTS: list[Script] = [
    *(closes, fails, refuses, hangs, breaks_off(b"")),
    breaks_off(b"HTTP/1.1 200 OK\r\nContent-"),
    breaks_off(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{"),
    breaks_off(b"\x00\x01 not http \r\n\r\n"),
]


def at_random(numbers: random.Random, works: list[Script], faults: list[Script]) -> Script:
    """Works half of the time."""

    async def script(turn: Turn) -> None:
        await numbers.choice(works if numbers.random() < 0.5 else faults)(turn)

    return script


async def asks(client: Client, numbers: random.Random) -> int:
    """The status of one request; 0 where its answer broke off."""
    try:
        response = await client.post(chat(stream=numbers.random() < 0.5))
    except BrokenOffError:
        return 0
    return response.status


@pytest.mark.slow
@pytest.mark.parametrize("connector", ["http", "nixl", "sglang"])
async def test_engines_that_fail_at_any_point_leave_nothing_behind(
    start_router_under_test: StartRouter, start_engine: StartEngine, connector: str
) -> None:
    numbers = random.Random(connector)
    router = await start_router_under_test()
    groups = [
        await start_group(
            start_engine,
            at_random(numbers, [prefills], FAULTS),
            at_random(numbers, [answers, streams], [*FAULTS, half_a_stream]),
        )
        for _ in range(GROUPS)
    ]
    serve_groups(
        router,
        *groups,
        kv_connector=connector,
        retry_attempts=2,
        retry_interval_ms=1,
        timeout_ms=300,
    )

    async def client_of(number: int) -> list[int]:
        own = random.Random(number)
        statuses = []
        for _ in range(REQUESTS_EACH):
            if own.random() < LEAVING:
                leaver = await router.client()
                await leaver.send(post_bytes(chat()))
                leaver.abort()
            statuses.append(await asks(await router.client(), own))
        return statuses

    told = await patiently(asyncio.gather(*(client_of(number) for number in range(CLIENTS))))

    statuses = [status for each in told for status in each]
    assert len(statuses) == CLIENTS * REQUESTS_EACH
    assert ANSWERED.issuperset(statuses)
    assert statuses.count(200) > CLIENTS
    await router.settled()
    for each in router.running.router.state.fleet.endpoints():
        assert not each.health.probing, each.pod
