"""How requests to pairs end: clients that leave, deadlines, kept connections; who is to blame."""

import asyncio

import pytest

from inferbus_router import prefill_decode
from inferbus_router.policy_ejection import EJECT_AFTER_FAILURES
from services.router.tests.client import chat, post_bytes
from services.router.tests.conftest import RouterUnderTest, StartEngine, StartRouter
from services.router.tests.engine import Turn, answers
from services.router.tests.pairs_under_test import (
    USAGE,
    Stays,
    decoded,
    in_turn,
    prefills,
    serve_groups,
    start_group,
    streams,
    unavailable,
)
from tests.support.eventually import eventually

SEQUENTIAL = ["http", "nixl"]
ALL = [*SEQUENTIAL, "sglang"]


@pytest.mark.parametrize("connector", ALL)
async def test_both_are_stopped_where_the_client_leaves(
    router: RouterUnderTest, start_engine: StartEngine, connector: str
) -> None:
    prefill, decode = Stays(), Stays()
    group = await start_group(start_engine, prefill, decode)
    serve_groups(router, group, kv_connector=connector)
    client = await router.client()
    await client.send(post_bytes(chat()))
    await prefill.came.wait()
    if connector == "sglang":
        await decode.came.wait()
    client.abort()

    await prefill.left.wait()
    if connector == "sglang":
        await decode.left.wait()
    await router.settled()
    assert decoded(group) == (connector == "sglang")


async def test_a_client_that_leaves_during_decode_stops_it(
    router: RouterUnderTest, start_engine: StartEngine
) -> None:
    decode = Stays()
    serve_groups(router, await start_group(start_engine, prefills, decode))
    client = await router.client()
    await client.send(post_bytes(chat()))
    await decode.came.wait()
    client.abort()

    await decode.left.wait()
    await router.settled()


@pytest.mark.parametrize("connector", ALL)
@pytest.mark.parametrize("hangs", ["prefill", "decode"])
async def test_rt_03_one_deadline_holds_for_both_phases(
    router: RouterUnderTest, start_engine: StartEngine, connector: str, hangs: str
) -> None:
    stays = Stays()
    scripts = {"prefill": prefills, "decode": answers} | {hangs: stays}
    if connector == "sglang":
        scripts = dict.fromkeys(scripts, stays)
    group = await start_group(start_engine, scripts["prefill"], scripts["decode"])
    serve_groups(router, group, kv_connector=connector, timeout_ms=50, retry_attempts=5)
    response = await (await router.client()).post(chat())

    assert (response.status, response.error) == (504, "gateway_timeout")
    await stays.left.wait()
    assert len(group.prefill.turns) == 1
    await router.settled()


@pytest.mark.parametrize("failing", ["prefill", "decode"])
async def test_the_engine_that_fails_is_ejected_and_not_its_partner(
    router: RouterUnderTest, start_engine: StartEngine, failing: str
) -> None:
    scripts = {"prefill": prefills, "decode": answers} | {failing: unavailable}
    serve_groups(router, await start_group(start_engine, scripts["prefill"], scripts["decode"]))
    client = await router.client()
    for _ in range(EJECT_AFTER_FAILURES):
        assert (await client.post(chat())).status == 503

    ejected = {
        each.pod
        for each in router.running.router.state.fleet.endpoints()
        if each.health.ejected_until_ms
    }
    assert ejected == {f"{failing}-1"}


@pytest.mark.parametrize("stale", ["prefill", "decode"])
async def test_a_kept_connection_that_was_closed_costs_nothing(
    router: RouterUnderTest, start_engine: StartEngine, stale: str
) -> None:
    async def answers_and_closes(turn: Turn) -> None:
        await (prefills if stale == "prefill" else answers)(turn)
        await closed.wait()
        turn.close(reset=True)

    closed = asyncio.Event()
    scripts = {"prefill": prefills, "decode": answers}
    engines = scripts | {stale: in_turn(answers_and_closes, scripts[stale])}
    group = await start_group(start_engine, engines["prefill"], engines["decode"])
    serve_groups(router, group, kv_connector="nixl")
    client = await router.client()
    await client.post(chat())
    loads = {each.pod: each for each in router.running.router.state.fleet.endpoints()}
    await client.send(post_bytes(chat()))
    if stale == "prefill":
        await eventually(lambda: loads["prefill-1"].in_flight == 1)
    else:
        await eventually(lambda: len(group.prefill.turns) == 2)
        await eventually(lambda: loads["prefill-1"].in_flight == 0)
    closed.set()

    assert (await client.response()).status == 200
    assert (len(group.prefill.turns), decoded(group)) == (2, 2)
    await router.settled()


@pytest.mark.parametrize("answer", [b"[1]", b"{", b'{"kv_transfer_params":"' + b"x" * 4096 + b'"}'])
async def test_an_answer_of_prefill_that_is_of_no_use_is_a_failure(
    router: RouterUnderTest,
    start_engine: StartEngine,
    answer: bytes,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(prefill_decode, "MOST_TRANSFER_BYTES", 1024)

    async def useless(turn: Turn) -> None:
        await turn.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(answer) + answer)

    group = await start_group(start_engine, useless)
    serve_groups(router, group, kv_connector="nixl")
    response = await (await router.client()).post(chat())

    assert (response.status, response.error) == (502, "bad_gateway")
    assert (len(group.prefill.turns), decoded(group)) == (2, 0)
    await router.settled()


async def test_a_long_answer_is_only_kept_where_it_is_needed(
    router: RouterUnderTest, start_engine: StartEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prefill_decode, "MOST_TRANSFER_BYTES", 1024)

    async def long_winded(turn: Turn) -> None:
        await turn.respond({"text": "x" * 100_000, "usage": USAGE})

    serve_groups(router, await start_group(start_engine, long_winded), kv_connector="http")

    assert (await (await router.client()).post(chat())).status == 200


async def test_a_request_waits_for_a_pair_and_not_for_decode_alone(
    start_router_under_test: StartRouter, start_engine: StartEngine
) -> None:
    router = await start_router_under_test()
    group = await start_group(start_engine, prefills, streams)
    decode = group.decode.entry(role="decode", pod="d")
    router.serve(decode)
    client = await router.client()
    await client.send(post_bytes(chat()))
    await eventually(lambda: len(router.running.router.state.hold) == 1)
    router.serve(decode, group.prefill.entry(role="prefill", pod="p"))

    assert (await client.response()).status == 200
    assert decoded(group) == 1
    await router.settled()


async def test_a_prefill_that_waits_for_a_failing_decode_is_not_to_blame(
    router: RouterUnderTest, start_engine: StartEngine
) -> None:
    serve_groups(router, await start_group(start_engine, Stays(), unavailable), engine="SGLang")
    client = await router.client()
    for _ in range(EJECT_AFTER_FAILURES):
        assert (await client.post(chat())).status == 503

    endpoints = router.running.router.state.fleet.endpoints()
    assert {each.pod for each in endpoints if each.health.failures} == {"decode-1"}


async def test_an_answer_of_prefill_that_is_too_long_is_not_read_to_its_end(
    router: RouterUnderTest, start_engine: StartEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prefill_decode, "MOST_TRANSFER_BYTES", 1024)
    left = asyncio.Event()

    async def endless(turn: Turn) -> None:
        await turn.send(b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n" + b"x" * 2048)
        await turn.gone()
        left.set()

    serve_groups(router, await start_group(start_engine, endless), kv_connector="nixl")

    assert (await (await router.client()).post(chat())).status == 502
    await left.wait()
