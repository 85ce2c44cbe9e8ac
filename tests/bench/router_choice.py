"""What it costs the router to choose an endpoint: prompts hashed, looked up, chosen and noted.

A whole choice is everything between a request that is read and its being sent, for conversations
that return, over 1,000 busy endpoints and over 8. Each is timed by itself in CPU time.
"""

import random
import time
from collections.abc import Callable, Sequence
from typing import Any

import orjson

from inferbus_router.body import JsonBody
from inferbus_router.policy_ask import Ask
from inferbus_router.policy_choice import choose
from inferbus_router.policy_load import Dispatch, EndpointLoad
from inferbus_router.policy_prefixes import PrefixIndex
from tests.bench.figure import Figure, quantile

MOST_MS = 1.0
CHOICES = 4_000
RUNNING = 4
"""Requests of each endpoint."""
ORDINARY_BYTES = 4_000
LARGE_BYTES = 220_000
SEED = 7
HASHES = 200


async def measure() -> list[Figure]:
    """Over a large fleet, over a small one, and the hashes alone."""
    large, small = _choices(1_000), _choices(8)
    return [
        Figure(
            name="router-choice",
            value=round(quantile(large, 0.99), 4),
            unit="ms",
            limit=MOST_MS,
            meaning="p99 of one choice among 1,000 busy endpoints: hash, look up, choose, note",
            configuration=_configuration(1_000),
            detail={
                "p50_us": round(1000 * quantile(large, 0.5), 1),
                "p50_of_8_endpoints_us": round(1000 * quantile(small, 0.5), 1),
                "p99_of_8_endpoints_us": round(1000 * quantile(small, 0.99), 1),
            },
        ),
        Figure(
            name="router-prompt-hash",
            value=round(_hash_us(ORDINARY_BYTES), 2),
            unit="us",
            meaning="CPU time to write a prompt out and hash its blocks, best of several",
            configuration={"bytes": ORDINARY_BYTES},
            detail={f"of_{LARGE_BYTES}_bytes_us": round(_hash_us(LARGE_BYTES), 1)},
        ),
    ]


def _configuration(endpoints: int) -> dict[str, int]:
    return {
        "endpoints": endpoints,
        "running on each": RUNNING,
        "choices": CHOICES,
        "bytes of a prompt": ORDINARY_BYTES,
        "seed": SEED,
    }


def _choices(endpoints: int) -> Sequence[float]:
    """Milliseconds of each choice."""
    chance = random.Random(SEED)
    index: PrefixIndex[EndpointLoad] = PrefixIndex()
    loads = [EndpointLoad(f"pod-{number}") for number in range(endpoints)]
    for load in loads:
        load.prefixes = index
    members = frozenset(loads)
    running = [(each, each.started(Ask("m", 900), 0)) for each in loads for _ in range(RUNNING)]
    talks = [_conversation(chance, ORDINARY_BYTES) for _ in range(CHOICES // 4)]
    took = []
    for turn in range(CHOICES):
        body = JsonBody(chance.choice(talks))
        now_ms = turn * 5
        began = time.process_time()
        ask = Ask("m", body.prompt_tokens, body)
        ask.look_up(index)
        load = choose(loads, ask, (), now_ms, turn, members)
        assert load is not None
        dispatch = load.started(ask, now_ms)
        took.append(1000 * (time.process_time() - began))
        running.append((load, dispatch))
        _end_one(running.pop(chance.randrange(len(running))), now_ms)
    return took


def _end_one(of: tuple[EndpointLoad, Dispatch], now_ms: int) -> None:
    load, dispatch = of
    load.first_token(dispatch, now_ms)
    load.ended(dispatch)


def _conversation(chance: random.Random, size: int) -> bytes:
    messages: list[dict[str, Any]] = [{"role": "system", "content": "Be brief. " * 100}]
    left = size - 1_000
    while left > 0:
        text = f"{chance.random()} " * 25
        messages.append({"role": "user" if len(messages) % 2 else "assistant", "content": text})
        left -= len(text)
    return orjson.dumps({"model": "m", "messages": messages})


def _hash_us(size: int) -> float:
    """CPU microseconds of a prompt of that size."""
    raw = _conversation(random.Random(SEED), size)
    bodies = [JsonBody(raw) for _ in range(HASHES)]
    return min(_us(lambda body=body: Ask("m", 1, body).blocks) for body in bodies)  # type: ignore[misc]


def _us(work: Callable[[], object]) -> float:
    began = time.process_time_ns()
    work()
    return (time.process_time_ns() - began) / 1000
