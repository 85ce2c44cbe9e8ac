"""Tokens: reversible, near four characters each, and the same text for the same prompt."""

import statistics

from hypothesis import given, settings
from hypothesis import strategies as st

from inferbus_engine_simulator.policy_tokens import (
    OUTPUT_WORDS,
    detokenize,
    natural_output_tokens,
    output_text,
    output_token,
    prompt_seed,
    tokenize,
)


@settings(deadline=None)
@given(st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"])))
def test_a_text_comes_back_from_its_tokens(text: str) -> None:
    assert detokenize(tokenize(text)) == text


@settings(deadline=None)
@given(st.text(alphabet=st.characters(codec="ascii", exclude_characters="\x00"), min_size=1))
def test_english_has_four_characters_per_token(text: str) -> None:
    assert len(tokenize(text)) == -(-len(text) // 4)


@settings(deadline=None)
@given(st.integers(0, 2**64 - 1), st.integers(0, 60))
def test_a_generated_text_has_as_many_tokens_as_were_generated(seed: int, count: int) -> None:
    assert tokenize(output_text(seed, count)) == [output_token(seed, i) for i in range(count)]


def test_words_are_distinct_and_one_token_each() -> None:
    assert len(set(OUTPUT_WORDS)) == len(OUTPUT_WORDS) > 50
    assert all(len(tokenize(word)) == 1 for word in OUTPUT_WORDS)


@settings(deadline=None)
@given(st.lists(st.integers(0, 2**32 - 1), min_size=1))
def test_every_prompt_has_its_own_text(prompt: list[int]) -> None:
    assert prompt_seed(prompt) == prompt_seed(tuple(prompt))
    assert prompt_seed(prompt) != prompt_seed([*prompt, 1])
    assert prompt_seed(prompt) != prompt_seed(prompt, seed=1)


def test_answers_of_free_length_have_200_tokens_on_average() -> None:
    lengths = [natural_output_tokens(seed) for seed in range(4000)]

    assert min(lengths) >= 1
    assert 185 < statistics.fmean(lengths) < 215
