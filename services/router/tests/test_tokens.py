"""The estimate of prompt tokens."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferbus_router.policy_tokens import TokenScale, estimate_prompt_tokens, text_tokens

ASCII = st.text(st.characters(max_codepoint=127))


@given(ASCII)
def test_ascii_text_costs_a_quarter_of_its_characters(text: str) -> None:
    assert text_tokens(text) == math.ceil(len(text) / 4)


@given(st.text())
def test_no_text_costs_less_than_a_quarter_or_more_than_two_tokens_a_character(text: str) -> None:
    assert math.ceil(len(text) / 4) <= text_tokens(text) <= 2 * len(text)


def test_rt_08_a_script_of_a_token_per_character_is_counted_as_that() -> None:
    assert text_tokens("推論" * 50) == 100


def test_t075_a_chat_message_is_framed() -> None:
    document = {"messages": [{"role": "user", "content": "hello world"}]}

    assert estimate_prompt_tokens(document) == 10


@pytest.mark.parametrize(
    ("document", "text"),
    [
        ({"prompt": "hello world"}, "hello world"),
        (
            {"messages": [{"role": "user", "content": [{"type": "text", "text": "a b"}]}]},
            "<|im_start|>user\na b<|im_end|>\n",
        ),
        (
            {
                "system": "be brief",
                "messages": [{"role": "user", "content": "x"}],
            },
            "<|im_start|>system\nbe brief<|im_end|>\n<|im_start|>user\nx<|im_end|>\n",
        ),
        (
            {"input": "u"},
            "<|im_start|>user\nu<|im_end|>\n",
        ),
        (
            {"input": [{"type": "message", "role": "user", "content": "u"}]},
            "<|im_start|>user\nu<|im_end|>\n",
        ),
        (
            {
                "messages": [
                    {
                        "role": "user",
                        "content": [{"text": "one"}, {"type": "input_text", "text": "two"}],
                    }
                ]
            },
            "<|im_start|>user\none\ntwo<|im_end|>\n",
        ),
    ],
)
def test_t006_t008_t009_the_prompt_of_each_interface(
    document: dict[str, object], text: str
) -> None:
    assert estimate_prompt_tokens(document) == text_tokens(text)


def test_t009_instructions_come_before_the_input() -> None:
    alone = estimate_prompt_tokens({"input": "u"})
    framed = text_tokens("<|im_start|>developer\ni<|im_end|>\n")

    assert estimate_prompt_tokens({"instructions": "i", "input": "u"}) == alone + framed


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"messages": []},
        {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}]},
        {"messages": [{"role": "assistant", "tool_calls": []}]},
        {"messages": [{"content": "no role"}]},
        {"messages": ["text"]},
        {"messages": "text"},
        {"prompt": 5},
        {"input": 5},
        {"prompt": []},
    ],
)
def test_t007_what_has_no_text_costs_nothing(document: dict[str, object]) -> None:
    assert estimate_prompt_tokens(document) == 0


def test_batches_are_added_up_and_token_ids_counted() -> None:
    assert estimate_prompt_tokens({"prompt": ["abcd", "efgh"]}) == 2
    assert estimate_prompt_tokens({"prompt": [1, 2, 3]}) == 3
    assert estimate_prompt_tokens({"prompt": [[1, 2], [3]]}) == 3
    assert estimate_prompt_tokens({"input": ["abcd", "efgh"]}) == 2


def test_a_prompt_wins_over_messages() -> None:
    document = {"prompt": "abcd", "messages": [{"role": "user", "content": "x" * 100}]}

    assert estimate_prompt_tokens(document) == 1


def test_nothing_is_scaled_before_anything_is_known() -> None:
    assert [TokenScale().scaled(tokens) for tokens in (0, 1, 1000)] == [0, 1, 1000]


@given(st.floats(0.3, 3.5))
def test_rt_08_the_scale_finds_what_engines_count(ratio: float) -> None:
    scale = TokenScale()
    for _ in range(300):
        scale.learn(1000, round(1000 * ratio))

    assert abs(scale.scaled(10_000) - 10_000 * ratio) < 10_000 * ratio * 0.02 + 10


def test_the_scale_follows_a_change() -> None:
    scale = TokenScale()
    for _ in range(300):
        scale.learn(1000, 2000)
    for _ in range(300):
        scale.learn(1000, 500)

    assert 450 < scale.scaled(1000) < 600


def test_counts_that_cannot_be_the_texts_teach_nothing() -> None:
    scale = TokenScale()
    for _ in range(100):
        scale.learn(10, 5000)
        scale.learn(5000, 10)

    assert scale.scaled(1000) == 1000


@given(st.lists(st.tuples(st.integers(1, 10**6), st.integers(1, 10**6)), max_size=50))
def test_a_prompt_never_becomes_free(seen: list[tuple[int, int]]) -> None:
    scale = TokenScale()
    for estimate, counted in seen:
        scale.learn(estimate, counted)

    assert 1 <= scale.scaled(1) <= 5
