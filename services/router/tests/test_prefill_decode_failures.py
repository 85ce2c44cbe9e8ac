"""Pairs of which one engine fails, refuses, hangs or is left alone."""

import asyncio
import json

import pytest

from services.router.tests.client import BrokenOffError, chat, post_bytes
from services.router.tests.conftest import RouterUnderTest, StartEngine
from services.router.tests.engine import Script, Turn, answers
from services.router.tests.pairs_under_test import (
    BLOCKS,
    BreaksOff,
    Stays,
    closes,
    decoded,
    fails,
    in_turn,
    prefills,
    refuses,
    serve_groups,
    start_group,
    unavailable,
)
from tests.support.eventually import eventually

SEQUENTIAL = ["http", "nixl"]
ALL = [*SEQUENTIAL, "sglang"]


def preferred(router: RouterUnderTest, number: int) -> None:
    """Make the other decode endpoint look busy."""
    for each in router.running.router.state.fleet.endpoints():
        if each.pod.startswith("decode-") and each.pod != f"decode-{number}":
            each.in_flight += 1000


@pytest.mark.parametrize("failure", [fails, unavailable, closes])
async def test_t069_another_pair_is_tried_where_prefill_fails(
    router: RouterUnderTest, start_engine: StartEngine, failure: Script
) -> None:
    broken, good = await start_group(start_engine, failure), await start_group(start_engine)
    serve_groups(router, broken, good, kv_connector="nixl")
    preferred(router, 1)
    response = await (await router.client()).post(chat())

    assert response.status == 200
    assert (len(broken.prefill.turns), len(good.prefill.turns)) == (1, 1)
    assert (decoded(broken), decoded(good)) == (0, 1)
    assert good.decode.turns[0].json["kv_transfer_params"] == BLOCKS


async def test_t070_another_attempt_has_another_room(
    router: RouterUnderTest, start_engine: StartEngine
) -> None:
    group = await start_group(start_engine, prefills, in_turn(unavailable, answers))
    serve_groups(router, group, engine="SGLang", retry_attempts=1, retry_interval_ms=1)
    response = await (await router.client()).post(chat())

    assert response.status == 200
    first, second = (turn.json for turn in group.decode.turns)
    assert first["bootstrap_room"] != second["bootstrap_room"]
    assert {**first, "bootstrap_room": 0} == {**second, "bootstrap_room": 0}
    await router.settled()


@pytest.mark.parametrize("connector", ALL)
async def test_t072_a_last_failure_is_told(
    router: RouterUnderTest, start_engine: StartEngine, connector: str
) -> None:
    """The reference answers 500 whatever happened; here the client sees what did (defects 1, 5)."""
    serve_groups(
        router,
        await start_group(start_engine, closes, Stays()),
        await start_group(start_engine, closes, Stays()),
        kv_connector=connector,
    )
    client = await router.client()
    response = await client.post(chat())

    assert (response.status, response.error) == (502, "bad_gateway")
    assert "prefill" in response.json["error"]["message"]
    await router.settled()


@pytest.mark.parametrize("connector", ALL)
async def test_t072_a_last_error_of_prefill_passes_through(
    router: RouterUnderTest, start_engine: StartEngine, connector: str
) -> None:
    group = await start_group(start_engine, fails, Stays())
    serve_groups(router, group, kv_connector=connector)
    response = await (await router.client()).post(chat())

    assert (response.status, response.json["error"]["message"]) == (500, "out of memory")
    assert len(group.prefill.turns) == 2
    await router.settled()


async def test_t066_without_a_pair_the_client_is_told_to_come_back(
    router: RouterUnderTest, start_engine: StartEngine
) -> None:
    """The reference answers 400, as if the client were to blame (defect 5)."""
    group = await start_group(start_engine)
    entries = (
        group.prefill.entry(role="prefill", group="1"),
        group.decode.entry(role="decode", group="2"),
    )
    router.serve(*entries, target=None)
    response = await (await router.client()).post(chat())

    assert (response.status, response.error) == (503, "no_ready_pair")
    assert "no valid prefill-decode pod pairs found" in response.json["error"]["message"]
    assert int(response.headers["retry-after"]) > 0
    assert decoded(group) == 0


@pytest.mark.parametrize("connector", ALL)
async def test_rt_01_what_prefill_refuses_is_told_to_the_client(
    router: RouterUnderTest, start_engine: StartEngine, connector: str
) -> None:
    stays = Stays()
    first, second = (
        await start_group(start_engine, refuses, stays),
        await start_group(start_engine, refuses, stays),
    )
    serve_groups(router, first, second, kv_connector=connector, retry_attempts=5)
    response = await (await router.client()).post(chat(stream=True))

    assert (response.status, response.json) == (400, {"error": {"message": "too long"}})
    assert len(first.prefill.turns) + len(second.prefill.turns) == 1
    await router.settled()


@pytest.mark.parametrize("connector", ALL)
async def test_rt_01_what_decode_refuses_is_told_to_the_client(
    router: RouterUnderTest, start_engine: StartEngine, connector: str
) -> None:
    group = await start_group(start_engine, prefills, refuses)
    serve_groups(router, group, kv_connector=connector, retry_attempts=5)
    response = await (await router.client()).post(chat(stream=True))

    assert (response.status, response.json) == (400, {"error": {"message": "too long"}})
    assert decoded(group) == 1
    await router.settled()


@pytest.mark.parametrize("connector", ALL)
async def test_rt_18_nothing_is_sent_again_after_the_first_byte(
    router: RouterUnderTest, start_engine: StartEngine, connector: str
) -> None:
    breaks = BreaksOff()
    groups = [
        await start_group(start_engine, prefills, breaks),
        await start_group(start_engine, prefills, breaks),
    ]
    serve_groups(router, *groups, kv_connector=connector, retry_attempts=5)
    client = await router.client()
    await client.send(post_bytes(chat(stream=True)))
    head = await client.head()
    assert b'"a"' in await client.chunk(head)
    breaks.may_break.set()

    last = (await client.chunk(head)).decode()
    assert last.startswith("event: error\ndata: ")
    assert json.loads(last.split("data: ")[1])["error"]["code"] == "response_broke_off"
    with pytest.raises(BrokenOffError):
        await client.chunk(head)
    assert decoded(*groups) == 1
    await router.settled()


async def test_rt_19_a_broken_answer_never_looks_whole(
    router: RouterUnderTest, start_engine: StartEngine
) -> None:
    async def half(turn: Turn) -> None:
        await turn.send(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n" + b"x" * 50)
        turn.close()

    group = await start_group(start_engine, prefills, half)
    serve_groups(router, group, retry_attempts=5)
    client = await router.client()

    with pytest.raises(BrokenOffError) as told:
        await client.post(chat())
    assert told.value.response.body == b"x" * 50
    assert decoded(group) == 1
    await router.settled()


@pytest.mark.parametrize("failure", [fails, closes])
async def test_rt_21_a_prefill_that_fails_late_does_not_spoil_the_answer(
    router: RouterUnderTest, start_engine: StartEngine, failure: Script
) -> None:
    decode_began = asyncio.Event()

    async def fails_late(turn: Turn) -> None:
        await decode_began.wait()
        await failure(turn)

    async def streams_on(turn: Turn) -> None:
        await turn.start_stream()
        await turn.event({"choices": [{"index": 0, "delta": {"content": "a"}}]})
        decode_began.set()
        await eventually(lambda: router.running.router.state.fleet.endpoints()[0].in_flight == 0)
        await turn.event({"choices": [{"index": 0, "delta": {"content": "b"}}]})
        await turn.chunk(b"")

    group = await start_group(start_engine, fails_late, streams_on)
    serve_groups(router, group, engine="SGLang", retry_attempts=5)
    response = await (await router.client()).post(chat(stream=True))

    assert response.body.count(b"content") == 2
    assert b"error" not in response.body
    assert (len(group.prefill.turns), decoded(group)) == (1, 1)
    await router.settled()
