"""Requests that a prefill and a decode engine serve together (routing spec 4)."""

import asyncio
import json
from typing import Any

import pytest

from services.router.tests.builders import route, route_key, server, server_key
from services.router.tests.client import chat, patiently, post_bytes
from services.router.tests.conftest import RouterUnderTest, StartEngine
from services.router.tests.engine import Gate, Turn
from services.router.tests.pairs_under_test import (
    BLOCKS,
    USAGE,
    prefills,
    serve_groups,
    start_group,
    streams,
)
from tests.support.eventually import eventually

DELTAS = [{"choices": [{"index": 0, "delta": {"content": text}}]} for text in "abc"]


def events(body: bytes) -> list[Any]:
    """The data of all events but the last, which ends the stream."""
    *blocks, last, rest = body.decode().split("\n\n")
    assert (last, rest) == ("data: [DONE]", "")
    return [json.loads(block.removeprefix("data: ")) for block in blocks]


async def test_t067_http_prefill_comes_first_and_decode_answers(
    router: RouterUnderTest, start_engine: StartEngine
) -> None:
    group = await start_group(start_engine, decode=streams)
    serve_groups(router, group)
    asked = chat(max_tokens=100, max_completion_tokens=50, stream=True)
    response = await (await router.client()).post(asked, headers={"x-request-id": "r1"})

    (prefill,), (decode,) = group.prefill.turns, group.decode.turns
    assert prefill.json == {
        **{name: json.loads(asked)[name] for name in ("model", "messages")},
        "max_tokens": 1,
        "max_completion_tokens": 1,
    }
    assert decode.json == json.loads(asked) | {"stream_options": {"include_usage": True}}
    assert (prefill.target, decode.target) == ("/v1/chat/completions",) * 2
    assert (prefill.headers["x-request-id"], decode.headers["x-request-id"]) == ("r1", "r1")
    assert events(response.body) == DELTAS
    await router.settled()


async def test_t043_decode_answers_with_a_stream_whatever_its_parameters(
    router: RouterUnderTest, start_engine: StartEngine
) -> None:
    group = await start_group(start_engine, decode=streams)
    serve_groups(router, group)
    response = await (await router.client()).post(chat(stream=True))

    assert response.headers["content-type"] == "text/event-stream; charset=utf-8"
    await router.settled()
    await eventually(lambda: router.demand.total("output_tokens") == 3)


async def test_both_get_the_upstream_name_of_the_model(
    router: RouterUnderTest, start_engine: StartEngine
) -> None:
    group = await start_group(start_engine)
    entries = group.prefill.entry(role="prefill"), group.decode.entry(role="decode")
    known = server(*entries, model="Big-7B", kv_connector="lmcache")
    router.apply({route_key("r"): route(), server_key("ms"): known})
    await (await router.client()).post(chat())

    assert group.prefill.turns[0].json["model"] == group.decode.turns[0].json["model"] == "Big-7B"


@pytest.mark.parametrize("connector", ["nixl", "mooncake"])
async def test_t068_decode_is_told_what_prefill_answered(
    router: RouterUnderTest, start_engine: StartEngine, connector: str
) -> None:
    group = await start_group(start_engine)
    serve_groups(router, group, kv_connector=connector)
    response = await (await router.client()).post(chat())

    assert response.status == 200
    (prefill,), (decode,) = group.prefill.turns, group.decode.turns
    assert prefill.json["kv_transfer_params"] == {
        "do_remote_decode": True,
        "do_remote_prefill": False,
    }
    assert prefill.json["max_tokens"] == 1
    assert decode.json == json.loads(chat()) | {"kv_transfer_params": BLOCKS}


async def test_decode_computes_the_prompt_where_prefill_kept_no_blocks(
    router: RouterUnderTest, start_engine: StartEngine
) -> None:
    async def keeps_nothing(turn: Turn) -> None:
        await turn.respond({"id": "p", "usage": USAGE})

    group = await start_group(start_engine, keeps_nothing)
    serve_groups(router, group, kv_connector="nixl")
    response = await (await router.client()).post(chat())

    assert response.status == 200
    assert group.decode.turns[0].json["kv_transfer_params"] is None


async def test_t070_sglang_halves_run_at_once_in_a_room_of_their_own(
    router: RouterUnderTest, start_engine: StartEngine
) -> None:
    """Each answers only once both have the request."""
    both = asyncio.Barrier(2)

    async def meets(turn: Turn) -> None:
        await both.wait()
        await turn.respond({"usage": USAGE})

    group = await start_group(start_engine, meets, meets)
    serve_groups(router, group, engine="SGLang")
    asked = chat(max_tokens=9)
    client = await router.client()
    assert (await client.post(asked)).status == 200
    assert (await client.post(asked)).status == 200

    rooms = []
    for prefill, decode in zip(group.prefill.turns, group.decode.turns, strict=True):
        where = {"bootstrap_host": "127.0.0.1", "bootstrap_room": decode.json["bootstrap_room"]}
        assert prefill.json == json.loads(asked) | where | {"max_tokens": 1}
        assert decode.json == json.loads(asked) | where
        rooms.append(decode.json["bootstrap_room"])
    assert len(set(rooms)) == 2
    await router.settled()


async def test_the_work_is_counted_where_it_is(
    router: RouterUnderTest, start_engine: StartEngine
) -> None:
    """Prompt tokens wait at prefill, and decode is taken as busy from the start."""
    at_prefill, at_decode = Gate(), Gate()

    async def prefill_waits(turn: Turn) -> None:
        await at_prefill(turn)

    group = await start_group(start_engine, prefill_waits, at_decode)
    serve_groups(router, group)
    loads = {each.pod: each for each in router.running.router.state.fleet.endpoints()}
    prefill, decode = loads["prefill-1"], loads["decode-1"]
    client = await router.client()
    await client.send(post_bytes(chat()))
    await eventually(lambda: len(group.prefill.turns) == 1)

    tokens = prefill.waiting_prompt_tokens
    assert tokens > 0
    assert (prefill.in_flight, decode.in_flight) == (1, 1)
    assert decode.waiting_prompt_tokens <= 1
    assert not group.decode.turns
    at_prefill.open()
    await eventually(lambda: len(group.decode.turns) == 1)
    assert (prefill.in_flight, prefill.waiting_prompt_tokens, decode.in_flight) == (0, 0, 1)
    at_decode.open()
    assert (await client.response()).status == 200
    await router.settled()


async def test_rt_20_short_prompts_go_straight_to_decode(
    router: RouterUnderTest, start_engine: StartEngine
) -> None:
    group = await start_group(start_engine)
    serve_groups(router, group, prefill_min_tokens=100)
    client = await router.client()
    await client.post(chat())
    assert (len(group.prefill.turns), len(group.decode.turns)) == (0, 1)
    assert group.decode.turns[0].json == json.loads(chat())

    await client.post(chat(messages=[{"role": "user", "content": "long " * 100}]))
    assert (len(group.prefill.turns), len(group.decode.turns)) == (1, 2)


async def test_sglang_never_leaves_prefill_out(
    router: RouterUnderTest, start_engine: StartEngine
) -> None:
    group = await start_group(start_engine)
    serve_groups(router, group, prefill_min_tokens=100, engine="SGLang")
    await (await router.client()).post(chat())

    assert (len(group.prefill.turns), len(group.decode.turns)) == (1, 1)


async def test_where_nothing_is_generated_nothing_is_split(
    router: RouterUnderTest, start_engine: StartEngine
) -> None:
    group = await start_group(start_engine)
    serve_groups(router, group, kv_connector="nixl")
    response = await (await router.client()).post(
        b'{"model":"m","input":"hello"}', path="/v1/embeddings"
    )

    assert response.status == 200
    assert (len(group.prefill.turns), len(group.decode.turns)) == (0, 1)


async def test_connections_to_both_are_kept(
    router: RouterUnderTest, start_engine: StartEngine
) -> None:
    group = await start_group(start_engine, prefills)
    serve_groups(router, group, kv_connector="nixl")
    client = await router.client()
    for _ in range(3):
        assert (await patiently(client.post(chat()))).status == 200

    assert (group.prefill.connections, group.decode.connections) == (1, 1)
