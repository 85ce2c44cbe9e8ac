"""Prompts as bytes, and the chained hashes of their blocks."""

import itertools
import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from inferbus_router.body import JsonBody
from inferbus_router.policy_ask import Ask
from inferbus_router.policy_blocks import BLOCK_ENDS, GROWTH, LEAST_BLOCK_BYTES, chained_blocks
from inferbus_router.policy_prompts import prompt_bytes
from services.router.tests.client import chat

PROMPTS = st.binary(max_size=5000)


def turns(*texts: str) -> list[dict[str, str]]:
    """A conversation."""
    roles = ("user", "assistant")
    return [{"role": roles[index % 2], "content": text} for index, text in enumerate(texts)]


def shared_blocks(one: Any, other: Any) -> int:
    """How many blocks two documents begin with alike."""
    pairs = zip(
        chained_blocks("m", prompt_bytes(one)),
        chained_blocks("m", prompt_bytes(other)),
        strict=False,
    )
    return next((index for index, (left, right) in enumerate(pairs) if left != right), 10**6)


@given(PROMPTS, PROMPTS, PROMPTS)
def test_what_begins_alike_shares_hashes_up_to_there_and_no_further(
    common: bytes, one: bytes, other: bytes
) -> None:
    left, right = chained_blocks("m", common + one), chained_blocks("m", common + other)
    whole = sum(end <= len(common) for end in BLOCK_ENDS[:100])

    assert left[:whole] == right[:whole]
    for end, first, second in zip(BLOCK_ENDS, left, right, strict=False):
        assert (first == second) == ((common + one)[:end] == (common + other)[:end])


@given(PROMPTS)
def test_a_hash_stands_for_each_whole_block(prompt: bytes) -> None:
    assert len(chained_blocks("m", prompt)) == sum(end <= len(prompt) for end in BLOCK_ENDS[:100])


def test_blocks_stay_small_beside_what_precedes_them() -> None:
    for start, end in itertools.pairwise(BLOCK_ENDS):
        assert LEAST_BLOCK_BYTES <= end - start <= max(LEAST_BLOCK_BYTES, start // GROWTH)


def test_rt_22_a_long_prompt_is_hashed_to_its_end() -> None:
    long = b"x" * 220_000
    blocks = chained_blocks("m", long)

    assert chained_blocks("m", long[:-6_800] + b"y" * 6_800)[:-1] == blocks[:-1]
    assert BLOCK_ENDS[len(blocks) - 1] > 213_000
    assert len(blocks) < 200


def test_rt_10_a_block_counts_only_together_with_all_before_it() -> None:
    size = 4 * LEAST_BLOCK_BYTES
    one, other = b"a" * size, b"b" + b"a" * (size - 1)

    assert len(chained_blocks("m", one)) == 4
    assert not set(chained_blocks("m", one)) & set(chained_blocks("m", other))


def test_rt_10_tools_are_part_of_what_is_compared() -> None:
    talk = turns("x" * 2000)
    tools = [{"type": "function", "function": {"name": "look"}}]

    assert shared_blocks({"messages": talk}, {"messages": talk, "tools": tools}) == 0
    assert shared_blocks({"messages": talk}, {"messages": talk, "system": "be brief"}) == 0


def test_rt_11_prompts_for_different_upstream_models_share_nothing() -> None:
    prompt = b"x" * 1000

    assert not set(chained_blocks("m", prompt)) & set(chained_blocks("adapter", prompt))


def test_the_next_turn_of_a_conversation_begins_with_the_one_before() -> None:
    first = {"messages": turns("x" * 3000)}
    second = {"messages": turns("x" * 3000, "y" * 500, "z" * 500)}

    assert shared_blocks(first, second) >= 3000 // LEAST_BLOCK_BYTES - 1


def test_spaces_and_escapes_of_the_clients_encoder_make_no_difference() -> None:
    document = {"model": "m", "messages": turns("grüße " * 300)}
    bodies = [
        json.dumps(document).encode(),
        json.dumps(document, ensure_ascii=False, indent=2).encode(),
    ]

    assert len({JsonBody(body).prompt_bytes() for body in bodies}) == 1


def test_every_kind_of_prompt_is_compared() -> None:
    for document in (
        {"prompt": "x"},
        {"prompt": [1, 2, 3]},
        {"prompt": ["x", "y"]},
        {"input": [{"role": "user", "content": "x"}]},
        {"messages": [{"role": "user", "content": [{"type": "image_url"}]}]},
    ):
        assert prompt_bytes(document)
    assert prompt_bytes({"file": "x"}) == b""


def test_a_prompt_can_be_taken_twice() -> None:
    body = JsonBody(chat())

    assert body.prompt_bytes() == body.prompt_bytes() != b""


def test_what_only_the_slow_parser_reads_is_compared_with_nothing() -> None:
    body = JsonBody(b'{"model":"m","prompt":"\\ud800"}')

    assert Ask("m", 1, body).blocks == []


def test_an_asks_tokens_are_shared_out_by_length() -> None:
    ask = Ask("m", 1000, JsonBody(chat(messages=turns("x" * 3990))))

    assert ask.tokens_of(0) == 0
    assert 0 < ask.tokens_of(1) < 200
    assert 850 < ask.tokens_of(len(ask.blocks)) <= 1000
