"""The OpenAI endpoints, over real connections."""

import asyncio
import base64
import contextlib
import json
import struct
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, NamedTuple

import pytest

from inferbus_engine_simulator.policy_tokens import tokenize
from tests.support.eventually import eventually

StartEngine = Callable[..., Awaitable[Any]]

HELLO = [{"role": "user", "content": "hello there"}]


async def post(engine: Any, path: str, **body: Any) -> dict[str, Any]:
    async with engine.client.post(path, json=body) as response:
        assert response.status == 200, await response.text()
        found = await response.json()
        assert isinstance(found, dict)
        return found


async def events(engine: Any, path: str, **body: Any) -> list[str]:
    """The data of each server-sent event of a streamed answer."""
    async with engine.client.post(path, json={"stream": True, **body}) as response:
        assert response.status == 200
        assert response.content_type == "text/event-stream"
        text = await response.text()
    blocks = text.split("\n\n")
    assert blocks.pop() == "", "the last event is complete"
    assert all(block.startswith("data: ") and "\n" not in block for block in blocks)
    return [block.removeprefix("data: ") for block in blocks]


async def test_a_chat_completion_has_the_official_shape(start_engine: StartEngine) -> None:
    engine = await start_engine("vllm", "serve", "m", "--served-model-name", "chat", "other")
    body = await post(engine, "/v1/chat/completions", model="other", messages=HELLO, max_tokens=6)

    (choice,) = body["choices"]
    assert body["object"] == "chat.completion"
    assert body["id"].startswith("chatcmpl-")
    assert body["model"] == "other"
    assert body["created"] > 1_600_000_000
    assert (choice["index"], choice["finish_reason"]) == (0, "length")
    assert choice["message"]["role"] == "assistant"
    assert len(tokenize(choice["message"]["content"])) == 6
    usage = body["usage"]
    assert usage["completion_tokens"] == 6
    assert usage["prompt_tokens"] > 2
    assert usage["total_tokens"] == usage["prompt_tokens"] + 6


async def test_completions_take_several_prompts_and_choices(start_engine: StartEngine) -> None:
    engine = await start_engine()
    body = await post(
        engine, "/v1/completions", prompt=["abcd", "efghijklm"], n=2, max_tokens=3, echo=True
    )

    assert body["object"] == "text_completion"
    assert [choice["index"] for choice in body["choices"]] == [0, 1, 2, 3]
    assert body["choices"][0]["text"].startswith("abcd")
    assert body["choices"][0]["text"] != body["choices"][1]["text"]
    assert body["usage"]["prompt_tokens"] == 4
    assert body["usage"]["completion_tokens"] == 12


async def test_a_stream_has_the_official_shape(start_engine: StartEngine) -> None:
    engine = await start_engine()
    parts = await events(
        engine,
        "/v1/chat/completions",
        messages=HELLO,
        max_tokens=4,
        stream_options={"include_usage": True},
    )

    assert parts.pop() == "[DONE]"
    chunks = [json.loads(part) for part in parts]
    usage = chunks.pop()
    assert usage["choices"] == []
    assert usage["usage"]["completion_tokens"] == 4
    assert len({chunk["id"] for chunk in chunks}) == 1
    assert {chunk["object"] for chunk in chunks} == {"chat.completion.chunk"}
    assert all("usage" not in chunk for chunk in chunks)
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks]
    assert deltas[0] == {"role": "assistant", "content": ""}
    assert [len(tokenize(delta["content"])) for delta in deltas[1:-1]] == [1] * 4
    reasons = [chunk["choices"][0]["finish_reason"] for chunk in chunks]
    assert reasons == [None] * 5 + ["length"]


async def test_a_stream_without_usage_has_no_usage_chunk(start_engine: StartEngine) -> None:
    engine = await start_engine()
    parts = await events(engine, "/v1/completions", prompt="hi", max_tokens=2)

    assert parts.pop() == "[DONE]"
    assert all(json.loads(part)["choices"] for part in parts)
    assert all(json.loads(part)["object"] == "text_completion" for part in parts)


async def test_a_stream_says_what_the_whole_answer_says(start_engine: StartEngine) -> None:
    engine = await start_engine()
    request = {"prompt": ["tell me", "and me"], "n": 2, "echo": True}
    whole = await post(engine, "/v1/completions", **request)
    texts = ["", "", "", ""]
    reasons: list[str | None] = [None] * 4
    for part in (await events(engine, "/v1/completions", **request))[:-1]:
        (choice,) = json.loads(part)["choices"]
        texts[choice["index"]] += choice["text"]
        reasons[choice["index"]] = choice["finish_reason"] or reasons[choice["index"]]

    assert texts == [choice["text"] for choice in whole["choices"]]
    assert reasons == ["stop"] * 4


async def test_two_engines_give_the_same_answer(start_engine: StartEngine) -> None:
    first, second = await start_engine(), await start_engine()
    answers = [
        await post(engine, "/v1/chat/completions", messages=HELLO) for engine in (first, second)
    ]

    assert answers[0]["choices"] == answers[1]["choices"]


async def test_tokens_arrive_one_by_one_while_they_are_computed(
    start_engine: StartEngine,
) -> None:
    engine = await start_engine(preset="cpu")
    async with engine.client.post(
        "/v1/completions", json={"prompt": "hi", "max_tokens": 10_000, "stream": True}
    ) as response:
        for _ in range(2):
            assert (await response.content.readuntil(b"\n\n")).startswith(b"data: {")
        state = await (await engine.client.get("/simulator/state")).json()
        assert state["running"] == 1
        assert state["generation_tokens"] < 10_000


async def test_a_client_that_goes_away_frees_the_engine(start_engine: StartEngine) -> None:
    engine = await start_engine(preset="cpu")
    for stream in (True, False):
        body = {"prompt": "hi", "max_tokens": 10_000, "stream": stream}
        request = asyncio.ensure_future(engine.client.post("/v1/completions", json=body))
        await eventually(lambda: engine.runner.view().running)
        if stream:
            (await request).close()
        else:
            request.cancel()
        await eventually(lambda: not engine.runner.busy)

    view = engine.runner.view()
    assert (view.used_blocks, view.statistics.aborted) == (0, 2)


class Timer(NamedTuple):
    """A timer that an engine has set."""

    delay_seconds: float
    handle: asyncio.TimerHandle


@contextlib.contextmanager
def timers_of(engine: Any) -> Iterator[list[Timer]]:
    """The timers that an engine sets inside the block."""
    loop = asyncio.get_running_loop()
    timers: list[Timer] = []

    def call_later(delay: float, callback: Any, *args: Any, **kwargs: Any) -> asyncio.TimerHandle:
        handle = type(loop).call_later(loop, delay, callback, *args, **kwargs)
        if getattr(callback, "__self__", None) is engine.runner:
            timers.append(Timer(delay, handle))
        return handle

    loop.call_later = call_later  # type: ignore[method-assign]
    try:
        yield timers
    finally:
        del loop.call_later


async def test_an_idle_engine_sets_no_timer(start_engine: StartEngine) -> None:
    engine = await start_engine(preset="h100")
    with timers_of(engine) as timers:
        await post(engine, "/v1/completions", prompt="hi", max_tokens=3)
        now = asyncio.get_running_loop().time()

    assert timers, "a working engine waits for its next step"
    assert all(timer.handle.cancelled() or timer.handle.when() <= now for timer in timers)


async def test_a_fast_clock_makes_waits_shorter(start_engine: StartEngine) -> None:
    engine = await start_engine(preset="cpu", rate=1000.0)
    with timers_of(engine) as timers:
        await post(engine, "/v1/completions", prompt="hi", max_tokens=100)
    statistics = engine.runner.view().statistics
    step_seconds = statistics.busy_us / statistics.steps / 1e6

    assert max(timer.delay_seconds for timer in timers) < step_seconds / 100


async def test_an_unknown_model_is_404_where_the_engine_is_strict(
    start_engine: StartEngine,
) -> None:
    body = {"model": "nope", "prompt": "hi", "max_tokens": 1}
    for line, status in (
        (("vllm", "serve", "m"), 404),
        (("python3", "-m", "sglang.launch_server", "--model-path", "m"), 404),
        (("llama-server", "-m", "m"), 200),
    ):
        engine = await start_engine(*line)
        async with engine.client.post("/v1/completions", json=body) as response:
            assert response.status == status, line
            if status == 404:
                text = await response.text()
                assert "nope" in text
                assert "NotFoundError" in text


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"{", "no JSON"),
        (b"\xff", "no JSON"),
        (b"[]", "JSON object"),
        (json.dumps({"prompt": "a" * 100}).encode(), "the context holds 16 tokens"),
        (json.dumps({"prompt": "a", "max_tokens": 99}).encode(), "99 for the output"),
    ],
)
async def test_what_can_not_be_served_is_a_400_of_the_engine(
    start_engine: StartEngine, data: bytes, told: str
) -> None:
    engine = await start_engine("vllm", "serve", "m", "--max-model-len", "16")
    async with engine.client.post("/v1/completions", data=data) as response:
        error = (await response.json())["error"]

    assert (response.status, error["code"], error["type"]) == (400, 400, "BadRequestError")
    assert told in error["message"]


async def test_a_prompt_that_was_served_before_counts_as_cached(
    start_engine: StartEngine,
) -> None:
    engine = await start_engine()
    request = {"prompt": "x" * 400, "max_tokens": 1}
    cached = [
        (await post(engine, "/v1/completions", **request))["usage"]["prompt_tokens_details"]
        for _ in range(2)
    ]

    assert [details["cached_tokens"] for details in cached] == [0, 96]


async def test_embeddings(start_engine: StartEngine) -> None:
    engine = await start_engine()
    plain = await post(engine, "/v1/embeddings", input=["a", "b", "a"], dimensions=8)
    packed = await post(engine, "/v1/embeddings", input="a", dimensions=8, encoding_format="base64")

    vectors = [entry["embedding"] for entry in plain["data"]]
    assert vectors[0] == vectors[2] != vectors[1]
    assert len(vectors[0]) == 8
    unpacked = struct.unpack("<8f", base64.b64decode(packed["data"][0]["embedding"]))
    assert unpacked == pytest.approx(vectors[0], abs=1e-6)
    assert plain["usage"] == {"prompt_tokens": 3, "total_tokens": 3}
    assert engine.runner.view().statistics.generation_tokens.total() == 0


async def test_a_prefill_tells_where_its_blocks_are_and_a_decode_uses_them(
    start_engine: StartEngine,
) -> None:
    transfer = '{"kv_connector":"NixlConnector","kv_role":"%s"}'
    prefill = await start_engine(
        "vllm", "serve", "m", "--kv-transfer-config", transfer % "kv_producer"
    )
    decode = await start_engine(
        "vllm", "serve", "m", "--kv-transfer-config", transfer % "kv_consumer"
    )
    request = {"prompt": "x" * 400}
    first = await post(
        prefill,
        "/v1/completions",
        **request,
        max_tokens=1,
        kv_transfer_params={"do_remote_decode": True, "do_remote_prefill": False},
    )
    parameters = first["kv_transfer_params"]
    second = await post(decode, "/v1/completions", **request, kv_transfer_params=parameters)

    assert parameters["do_remote_prefill"] is True
    assert parameters["remote_host"] == "127.0.0.9"
    assert len(parameters["remote_block_ids"]) == 7
    assert "kv_transfer_params" not in second
    assert second["choices"][0]["text"].startswith(first["choices"][0]["text"])
    statistics = decode.runner.view().statistics
    assert (statistics.transferred_tokens, statistics.prefilled_tokens) == (100, 1)
