"""Which problems of samples become a problem of their policy, and when it is over."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from inferbus_metrics_collector.policy_assessment import (
    BAD_ROUNDS,
    MOST_TOLD,
    ROUNDS_LOOKED_AT,
    TOLD_ANEW_MS,
    Assessment,
    assess,
)

ROUND_MS = 5_000
BAD, OTHER = ["pod a: hangs"], ["pod b: hangs"]


def after(*rounds: list[str], round_ms: int = ROUND_MS) -> Assessment:
    known = Assessment()
    for number, problems in enumerate(rounds):
        known = assess(known, problems, number * round_ms)
    return known


def test_nothing_is_told_of_a_policy_before_it_is_known() -> None:
    assert after().told is None
    assert after([], [], []).told is None
    assert after([], [], [], []).told == ()


def test_one_bad_round_is_a_hiccup_and_two_are_a_problem() -> None:
    assert after(BAD).told is None
    assert after(BAD, BAD).told == ("pod a: hangs",)
    assert after(BAD, [], BAD).told == ("pod a: hangs",)
    assert after([], [], [], [], BAD, [], [], [], BAD).told == ()


def test_a_problem_is_over_after_several_whole_rounds_in_a_row() -> None:
    assert after(BAD, BAD, [], [], []).told == ("pod a: hangs",)
    assert after(BAD, BAD, [], [], BAD, [], [], []).told == ("pod a: hangs",)
    assert after(BAD, BAD, [], [], [], []).told == ()


def test_other_words_are_told_after_a_while() -> None:
    soon = after(BAD, BAD, OTHER, OTHER)
    assert soon.told == ("pod a: hangs",)
    assert assess(soon, OTHER, soon.told_ms + TOLD_ANEW_MS).told == ("pod b: hangs",)


def test_few_problems_are_told_however_many_there_are() -> None:
    many = [f"pod {number}" for number in range(100)]
    assert after(many, many).told == tuple(many[:MOST_TOLD])


@given(st.lists(st.sampled_from([[], BAD, OTHER]), max_size=80))
def test_what_is_told_changes_seldom(rounds: list[list[str]]) -> None:
    known = Assessment()
    changes = []
    for number, problems in enumerate(rounds):
        before, known = known, assess(known, problems, number * ROUND_MS)
        if known.told != before.told:
            changes.append((number, known.told))
        assert len(known.rounds) <= ROUNDS_LOOKED_AT
    troubles = [number for number, told in changes if told]
    for earlier, later in pairwise(troubles):
        apart = later - earlier
        assert apart * ROUND_MS >= TOLD_ANEW_MS or apart >= ROUNDS_LOOKED_AT + BAD_ROUNDS - 1
