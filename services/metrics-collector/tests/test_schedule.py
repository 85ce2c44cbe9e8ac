"""Rounds: one per key and interval, spread over it, the same for all instances."""

import statistics

from collector_builders import serving
from hypothesis import given
from hypothesis import strategies as st

from inferbus_metrics_collector.policy_schedule import Round, Timetable, phase_ms

INTERVAL_MS = 5_000
KEY = serving()
SOON = 7 * INTERVAL_MS + 1


def started(now_ms: int = SOON) -> tuple[Timetable, list[Round]]:
    timetable = Timetable(INTERVAL_MS)
    timetable.keep([KEY], now_ms)
    return timetable, timetable.due(now_ms)


def test_a_new_key_is_due_at_once_and_then_at_its_own_moment_of_each_round() -> None:
    timetable, first = started()
    assert first == [Round(KEY, 7)]
    for number in (8, 9, 10):
        due_ms = number * INTERVAL_MS + phase_ms(KEY, INTERVAL_MS)
        assert timetable.next_ms == due_ms
        assert timetable.due(due_ms - 1) == []
        assert timetable.due(due_ms) == [Round(KEY, number)]
        assert timetable.due(due_ms) == []


def test_moments_are_spread_and_roles_of_a_workload_share_theirs() -> None:
    phases = [phase_ms(serving(f"m{number}"), INTERVAL_MS) for number in range(400)]
    assert min(phases) >= 0
    assert max(phases) < INTERVAL_MS
    assert abs(statistics.fmean(phases) - INTERVAL_MS / 2) < INTERVAL_MS / 10
    assert phase_ms(serving(role="a"), INTERVAL_MS) == phase_ms(serving(), INTERVAL_MS)


def test_a_wake_up_in_a_round_that_has_a_sample_is_told_apart() -> None:
    timetable, _ = started()
    timetable.wake({KEY: "event"}, SOON + 10)
    assert timetable.next_ms == SOON + INTERVAL_MS // 5, "a key rests between two samples"
    assert timetable.due(SOON + INTERVAL_MS // 5) == [Round(KEY, 7, "event")]


def test_a_wake_up_in_a_fresh_round_is_the_sample_of_the_round() -> None:
    timetable, _ = started()
    now_ms = 8 * INTERVAL_MS + 1
    assert phase_ms(KEY, INTERVAL_MS) > 1
    timetable.wake({KEY: "event"}, now_ms)
    assert timetable.due(now_ms) == [Round(KEY, 8)]
    assert timetable.next_ms == 9 * INTERVAL_MS + phase_ms(KEY, INTERVAL_MS)


def test_after_a_round_that_came_to_nothing_a_key_is_woken_at_once() -> None:
    timetable, (first,) = started()
    timetable.not_taken(first)
    timetable.wake({KEY: "event"}, SOON + 1)
    assert timetable.due(SOON + 1) == [Round(KEY, 7)]
    timetable.not_taken(first._replace(key=serving("unknown")))


def test_keys_that_are_gone_are_never_due_and_unknown_ones_are_not_woken() -> None:
    timetable, _ = started()
    timetable.wake({serving("other"): "event"}, SOON)
    timetable.keep([], SOON)
    assert timetable.next_ms is None
    assert timetable.due(SOON + 10 * INTERVAL_MS) == []


def test_a_pause_of_the_process_gives_one_sample_and_no_backlog() -> None:
    timetable, _ = started()
    late_ms = 50 * INTERVAL_MS + phase_ms(KEY, INTERVAL_MS) + 3
    assert timetable.due(late_ms) == [Round(KEY, 50)]
    assert timetable.due(late_ms) == []


@given(st.lists(st.tuples(st.integers(1, 3 * INTERVAL_MS), st.booleans()), max_size=60))
def test_a_round_has_one_sample_unless_something_happened(steps: list[tuple[int, bool]]) -> None:
    timetable, rounds = started()
    now_ms, woken = SOON, 0
    for step_ms, wake in steps:
        now_ms += step_ms
        if wake:
            woken += 1
            timetable.wake({KEY: f"event-{woken}"}, now_ms)
        rounds += timetable.due(now_ms)
        assert timetable.next_ms is not None
        assert timetable.next_ms <= now_ms + 2 * INTERVAL_MS
    assert len(set(rounds)) == len(rounds)
    plain = [item.number for item in rounds if not item.trigger]
    assert len(set(plain)) == len(plain)
    assert len(rounds) - len(plain) <= woken


@given(st.integers(INTERVAL_MS, 10**9))
def test_as_d20_a_clock_that_is_set_back_or_forward_costs_no_round(jump_ms: int) -> None:
    for start_ms, jumped_ms in ((10**9 + jump_ms, 10**9), (10**9, 10**9 + jump_ms)):
        timetable, first = started(start_ms)
        rounds, now_ms = first, jumped_ms
        for _ in range(3):
            taken = timetable.due(now_ms)
            assert timetable.next_ms is not None
            assert timetable.next_ms - now_ms <= 2 * INTERVAL_MS
            rounds += taken
            now_ms = timetable.next_ms
        assert len(rounds) >= 3
        assert len(set(rounds)) == len(rounds), "no sample has the id of an earlier one"


def test_as_d20_time_that_comes_again_gives_other_samples() -> None:
    timetable, (first,) = started()
    later_ms = SOON + 3 * INTERVAL_MS
    assert [item.number for item in timetable.due(later_ms)] == [10]
    (again,) = timetable.due(SOON)
    assert again.number == first.number
    assert again.trigger
