"""Prefill and decode engines that work on one request: by rooms (SGLang), by told blocks (vLLM)."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.support.eventually import eventually

StartEngine = Callable[..., Awaitable[Any]]

SGLANG = ("python3", "-m", "sglang.launch_server", "--model-path", "m", "--disaggregation-mode")
PROMPT = "x" * 400
TOKENS = 100


def vllm(role: str, connector: str = "NixlConnector") -> tuple[str, ...]:
    transfer = f'{{"kv_connector":"{connector}","kv_role":"{role}"}}'
    return ("vllm", "serve", "m", "--kv-transfer-config", transfer)


async def asked(engine: Any, **body: Any) -> tuple[int, Any]:
    request = {"prompt": PROMPT, "max_tokens": 2} | body
    async with engine.client.post("/v1/completions", json=request) as response:
        return response.status, await response.json()


def where(prefill: Any, room: Any = 2**62) -> dict[str, Any]:
    port: Any = prefill.rooms_port
    if isinstance(room, list):
        port = [port] * len(room)
    return {"bootstrap_room": room, "bootstrap_host": "127.0.0.1", "bootstrap_port": port}


@pytest.mark.parametrize("first", ["prefill", "decode"])
async def test_sglang_halves_meet_whoever_is_first(start_engine: StartEngine, first: str) -> None:
    prefill, decode = await start_engine(*SGLANG, "prefill"), await start_engine(*SGLANG, "decode")
    halves = {"prefill": prefill, "decode": decode}
    alone = asyncio.ensure_future(asked(halves.pop(first), **where(prefill)))
    done, _ = await asyncio.wait([alone], timeout=0.05)
    assert not done, "it waits for the other"
    ((_, other),) = halves.items()

    assert (await asked(other, **where(prefill)))[0] == 200
    assert (await alone)[0] == 200
    assert prefill.runner.view().statistics.prefilled_tokens == TOKENS
    assert decode.runner.view().statistics.transferred_tokens == TOKENS


async def test_a_batch_meets_in_a_room_for_each_prompt(start_engine: StartEngine) -> None:
    prefill, decode = await start_engine(*SGLANG, "prefill"), await start_engine(*SGLANG, "decode")
    body = where(prefill, [1, 2]) | {"prompt": [PROMPT, "y" * 400]}
    answers = await asyncio.gather(asked(prefill, **body), asked(decode, **body))

    assert [status for status, _ in answers] == [200, 200]
    assert decode.runner.view().statistics.transferred_tokens == 2 * TOKENS


@pytest.mark.parametrize("role", ["prefill", "decode"])
async def test_a_half_without_a_room_is_refused(start_engine: StartEngine, role: str) -> None:
    status, answer = await asked(await start_engine(*SGLANG, role))

    assert status == 400
    assert "bootstrap_room" in answer["message"]


@pytest.mark.parametrize("role", ["prefill", "decode"])
async def test_a_half_that_nobody_meets_gives_up(start_engine: StartEngine, role: str) -> None:
    prefill = await start_engine(*SGLANG, "prefill", bootstrap_timeout_seconds=0.05)
    half = prefill if role == "prefill" else await start_engine(*SGLANG, "decode")
    status, answer = await asked(half, **where(prefill))

    assert status == 500
    assert "nobody came" in answer["message"]


async def test_decode_without_a_prefill_engine_fails(start_engine: StartEngine) -> None:
    decode = await start_engine(*SGLANG, "decode")
    gone = await start_engine(*SGLANG, "prefill")
    unreachable = where(gone) | {"bootstrap_port": 1}

    assert (await asked(decode, **unreachable))[0] == 500


async def test_decode_is_told_where_prefill_is_stopped(start_engine: StartEngine) -> None:
    prefill = await start_engine(*SGLANG, "prefill", preset="cpu", rate=0.001)
    decode = await start_engine(*SGLANG, "decode")
    computes = asyncio.ensure_future(asked(prefill, **where(prefill)))
    waits = asyncio.ensure_future(asked(decode, **where(prefill)))
    await eventually(lambda: prefill.runner.busy)
    computes.cancel()

    status, answer = await waits
    assert status == 500
    assert "left" in answer["message"]


async def test_vllm_takes_only_what_its_role_allows(start_engine: StartEngine) -> None:
    ask = {"do_remote_decode": True, "do_remote_prefill": False}
    take = {"do_remote_decode": False, "do_remote_prefill": True}
    for line, hands_over in [
        (vllm("kv_producer"), True),
        (vllm("kv_both"), True),
        (vllm("kv_producer", "MooncakeConnector"), True),
        (vllm("kv_consumer"), False),
        (vllm("kv_producer", "LMCacheConnectorV1"), False),
        (("vllm", "serve", "m"), False),
    ]:
        _, answer = await asked(await start_engine(*line), kv_transfer_params=ask)
        assert ("kv_transfer_params" in answer) == hands_over, line
    for line, takes_over in [
        (vllm("kv_consumer"), True),
        (vllm("kv_both"), True),
        (vllm("kv_producer"), False),
        (("vllm", "serve", "m"), False),
    ]:
        engine = await start_engine(*line)
        await asked(engine, kv_transfer_params=take)
        assert bool(engine.runner.view().statistics.transferred_tokens) == takes_over, line


async def test_decode_waits_for_the_blocks_to_be_transferred(start_engine: StartEngine) -> None:
    """On hardware that takes time, in virtual time."""
    engine = await start_engine(*vllm("kv_consumer"), preset="h100", rate=50)
    began_ms = engine.runner.now_ms
    take = {"do_remote_prefill": True}
    await asked(engine, prompt="x" * 100_000, max_tokens=1, kv_transfer_params=take)

    assert engine.runner.now_ms - began_ms >= engine.runner.size.transfer.transfer_us(25_000) / 1000
