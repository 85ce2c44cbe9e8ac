"""The order of least service first."""

from collections import Counter
from collections.abc import Sequence
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferbus_router import policy_fairness
from inferbus_router.policy_fairness import FairOrder, ServiceWeights
from inferbus_router.policy_queue import Applicant, Usage

MINUTE_MS = 60_000


def order(memory_ms: int = 5 * MINUTE_MS, **weights: float) -> FairOrder[str]:
    return FairOrder(ServiceWeights(**weights), memory_ms)


def asks(principal: str, prompt_tokens: int = 10, most: int | None = None) -> Applicant:
    return Applicant(
        principal=principal, session="", prompt_tokens=prompt_tokens, max_output_tokens=most
    )


def take_all(fair: FairOrder[str]) -> list[str]:
    return [fair.take(0) for _ in range(len(fair))]


def test_requests_of_one_principal_keep_their_order() -> None:
    fair = order()
    for number in range(5):
        fair.join(f"a{number}", asks("a", prompt_tokens=1000 - number), 0)

    assert take_all(fair) == ["a0", "a1", "a2", "a3", "a4"]


def test_rt_25_the_principal_with_least_service_is_next() -> None:
    fair = order()
    for number in range(3):
        fair.join(f"long{number}", asks("long", prompt_tokens=100), 0)
    for number in range(3):
        fair.join(f"short{number}", asks("short", prompt_tokens=40), 0)

    assert take_all(fair) == ["long0", "short0", "short1", "short2", "long1", "long2"]


def test_what_was_generated_counts_twice() -> None:
    fair = order()
    for item, principal in (("a0", "a"), ("b0", "b")):
        fair.join(item, asks(principal), 0)
        fair.take(0)
    for item, principal in (("a1", "a"), ("b1", "b")):
        fair.join(item, asks(principal), 0)
    fair.ended("a0", Usage(input_tokens=10, output_tokens=50), 0)
    fair.ended("b0", Usage(input_tokens=90, output_tokens=0), 0)

    assert take_all(fair) == ["b1", "a1"]


def test_a_request_that_nobody_answered_costs_nothing() -> None:
    fair = order()
    fair.join("b0", asks("b", 1), 0)
    fair.join("a0", asks("a", 5000), 0)
    fair.join("a1", asks("a"), 0)
    assert fair.take(0) == "b0"
    assert fair.take(0) == "a0"
    fair.join("b1", asks("b"), 0)
    fair.ended("a0", Usage(), 0)

    assert fair.head() == "a1"


def test_requests_under_way_count_before_they_end() -> None:
    fair = order()
    fair.join("a0", asks("a", 1000), 0)
    fair.take(0)
    fair.join("a1", asks("a", 1), 0)
    fair.join("b0", asks("b", 1), 0)
    fair.join("b1", asks("b", 1), 0)
    assert fair.take(0) == "a1"

    assert take_all(fair) == ["b0", "b1"]


def test_the_usual_length_of_answers_is_charged_in_advance() -> None:
    fair = order()
    fair.join("warm", asks("w"), 0)
    fair.take(0)
    fair.ended("warm", Usage(input_tokens=10, output_tokens=10_000), 0)
    for item, most in (("brief", 1), ("open", None)):
        fair.join(item, asks(item, most=most), 0)
    assert fair.take(0) == "brief"
    fair.join("brief2", asks("brief", most=1), 0)
    assert fair.take(0) == "open"
    fair.join("open2", asks("open"), 0)

    assert take_all(fair) == ["brief2", "open2"]


def test_rt_25_who_stays_away_saves_up_nothing() -> None:
    fair = order()
    for number in range(20):
        fair.join(f"a{number}", asks("a", 100), 0)
    for _ in range(10):
        fair.take(0)
    for number in range(10):
        fair.join(f"b{number}", asks("b", 100), 0)

    first = [fair.take(0)[0] for _ in range(6)]
    assert Counter(first) == {"a": 3, "b": 3}


def test_a_newcomer_to_an_empty_line_starts_where_the_last_one_stands() -> None:
    fair = order()
    fair.join("a0", asks("a", 500), 0)
    fair.take(0)
    fair.join("b0", asks("b", 100), 0)
    fair.join("a1", asks("a", 100), 0)
    fair.join("b1", asks("b", 100), 0)

    assert take_all(fair) == ["b0", "a1", "b1"]


def test_all_that_are_nobody_in_particular_share_one_place() -> None:
    fair = order()
    for number in range(4):
        fair.join(f"x{number}", asks(""), 0)
    fair.join("a0", asks("a"), 0)

    assert take_all(fair).index("a0") == 1


def test_requests_can_be_what_counts() -> None:
    fair = order(tokens=0.0, request=1.0)
    for number in range(2):
        fair.join(f"long{number}", asks("long", 1000), 0)
        fair.join(f"short{number}", asks("short", 1), 0)

    assert take_all(fair) == ["long0", "short0", "long1", "short1"]


def test_who_leaves_is_passed_over() -> None:
    fair = order()
    for number in range(3):
        fair.join(f"a{number}", asks("a"), 0)
    assert fair.leave("a0", 0)
    assert not fair.leave("a0", 0)
    assert fair.leave("a2", 0)

    assert take_all(fair) == ["a1"]
    assert fair.head() is None


def test_rt_25_principals_are_forgotten_some_time_after_their_last_request() -> None:
    fair = order(memory_ms=MINUTE_MS)
    fair.join("a0", asks("a"), 0)
    fair.take(0)
    fair.join("b0", asks("b"), 0)
    fair.leave("b0", 1000)
    fair.join("c0", asks("c"), 1000 + MINUTE_MS)
    assert fair.principals == 2  # b is forgotten, a runs, c waits
    fair.ended("a0", Usage(), 2 * MINUTE_MS)
    fair.join("c1", asks("c"), 3 * MINUTE_MS)

    assert fair.principals == 1


def test_not_more_idle_principals_are_kept_than_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policy_fairness, "MOST_IDLE_PRINCIPALS", 10)
    fair = order()
    for number in range(100):
        fair.join(f"i{number}", asks(f"p{number}"), 0)
        fair.ended(fair.take(0), Usage(1, 1, True), 0)

    assert fair.principals == 10


Steps = Sequence[tuple[str, int, int]]


@given(st.lists(st.tuples(st.sampled_from("jjjtle"), st.integers(0, 3), st.integers(1, 500))))
def test_whatever_happens_nobody_is_lost_and_each_keeps_its_order(steps: Steps) -> None:
    fair = order()
    numbers = count()
    waiting: dict[str, list[str]] = {}
    running: list[str] = []
    for step, which, size in steps:
        principal = f"p{which}"
        line = waiting.setdefault(principal, [])
        if step == "j":
            item = f"{principal}/{next(numbers)}"
            fair.join(item, asks(principal, size), 0)
            line.append(item)
        elif step == "t" and fair.head() is not None:
            item = fair.take(0)
            assert waiting[item.partition("/")[0]].pop(0) == item
            running.append(item)
        elif step == "l" and line:
            item = line.pop(which % len(line))
            assert fair.leave(item, 0)
        elif step == "e" and running:
            fair.ended(running.pop(which % len(running)), Usage(size, size, True), 0)
        assert len(fair) == sum(map(len, waiting.values()))
        assert (fair.head() is None) == (len(fair) == 0)


@given(
    st.lists(st.tuples(st.integers(1, 400), st.integers(0, 400)), min_size=60, max_size=60),
    st.integers(1, 8),
)
def test_two_that_always_wait_are_served_alike(
    sizes: list[tuple[int, int]], concurrent: int
) -> None:
    """The difference is bounded by what is under way, however long it goes on (the paper's 4.1)."""
    fair = order()
    usage = {}
    for number, (prompt, output) in enumerate(sizes):
        item = f"{'ab'[number % 2]}{number}"
        usage[item] = Usage(prompt, output, True)
        fair.join(item, asks(item[0], prompt), 0)
    served = Counter({"a": 0, "b": 0})
    running: list[str] = []
    left = Counter({"a": 30, "b": 30})
    while min(left.values()):
        item = fair.take(0)
        left[item[0]] -= 1
        running.append(item)
        if len(running) > concurrent:
            done = running.pop(0)
            fair.ended(done, usage[done], 0)
            served[done[0]] += usage[done].input_tokens + 2 * usage[done].output_tokens

    dearest = 400 + 2 * 400
    assert abs(served["a"] - served["b"]) <= 2 * (concurrent + 1) * dearest
