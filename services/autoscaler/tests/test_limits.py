"""The default decider's limiters, one by one and together."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferbus_autoscaler.facts import Behaviour, PanicPolicy, StepPolicy
from inferbus_autoscaler.policy_history import History
from inferbus_autoscaler.policy_limits import Scope, binding, limit, recommend
from inferbus_autoscaler.policy_need import Need
from inferbus_autoscaler.stamps import MOST_STAMPS
from inferbus_contracts.events.scaling import Limiter, LimiterStep
from services.autoscaler.tests.builders import FREE, T0, WEBHOOK_DEFAULTS


def scope(current: int, **changes: Any) -> Scope:
    low, high = changes.pop("bounds", (1, 100))
    given: dict[str, Any] = {"tolerance_percent": 10, "behaviour": FREE}
    return Scope(current=current, min_replicas=low, max_replicas=high, **(given | changes))


def asked(known: float | None, current: int, possible: float | None = -1.0, **changes: Any) -> int:
    """The recommendation; all that may be needed is known unless `possible` says otherwise."""
    need = Need(known, known if possible == -1.0 else possible)
    return recommend(need, scope(current, **changes), None).value


def named(steps: tuple[LimiterStep, ...]) -> list[tuple[str, int, int]]:
    return [(step.name.value, step.before, step.after) for step in steps]


@pytest.mark.parametrize(
    ("needed", "current", "tolerance", "expected"),
    [
        (10.9, 10, 10, 10),
        (11.0, 10, 10, 11),
        (9.1, 10, 10, 10),
        (9.0, 10, 10, 9),
        (10.5, 10, 0, 11),
        (10.0, 10, 0, 10),
        (9.5, 10, 0, 10),
        (1.05, 1, 10, 1),
        (1.1, 1, 10, 2),
        (20.0, 10, 100, 20),
        (19.9, 10, 100, 10),
        (0.0, 10, 100, 1),
        (0.4, 0, 10, 1),
    ],
)
def test_ruling_f1_acts_at_the_tolerance_of_the_current_number(
    needed: float, current: int, tolerance: int, expected: int
) -> None:
    assert asked(needed, current, tolerance_percent=tolerance) == expected


@pytest.mark.parametrize("error", [-1e-14, 0.0, 1e-14])
def test_the_edge_of_the_band_is_inclusive_whatever_the_noise(error: float) -> None:
    assert asked(11.0 * (1 + error), 10) == 11
    assert asked(9.0 * (1 + error), 10) == 9


def test_nothing_is_known_nothing_is_changed() -> None:
    assert asked(None, 7, None) == 7


def test_bounds_come_first_even_then() -> None:
    assert asked(None, 50, None, bounds=(1, 10)) == 10
    assert asked(None, 0, None, bounds=(2, 10)) == 2


def test_with_open_needs_up_is_allowed_and_down_is_not() -> None:
    assert asked(20.0, 10, None) == 20
    assert asked(2.0, 10, None) == 10


def test_down_goes_as_far_as_may_be_needed() -> None:
    assert asked(2.0, 10, 5.0) == 5
    assert asked(2.0, 10, 12.0) == 10


def test_the_band_is_around_what_may_be_needed() -> None:
    assert asked(85.0, 100, 95.0) == 100
    assert asked(85.0, 100, 89.5) == 90


def test_the_steps_tell_the_whole_way() -> None:
    found = recommend(Need(20.5, 20.5), scope(10, bounds=(1, 15)), None)
    assert named(found.steps) == [("data", 21, 21), ("tolerance", 21, 21), ("bounds", 21, 15)]
    assert binding(found.steps) is Limiter.BOUNDS


def test_nothing_binds_where_the_metrics_get_what_they_ask_for() -> None:
    assert binding(recommend(Need(20.5, 20.5), scope(10), None).steps) is Limiter.NONE


@pytest.mark.parametrize(
    ("known", "possible", "in_force", "evidence"),
    [
        (5.0, 5.0, 9, 5),
        (5.0, None, 9, 9),
        (5.0, None, 3, 5),
        (20.0, None, 3, 20),
        (None, None, 3, None),
    ],
)
def test_windows_remember_only_what_a_sample_proves(
    known: float | None, possible: float | None, in_force: int, evidence: int | None
) -> None:
    assert recommend(Need(known, possible), scope(10), in_force).evidence == evidence


PANIC = PanicPolicy(threshold_percent=200, hold_ms=60_000, percent=1000, period_ms=0)


@pytest.mark.parametrize(
    ("needed", "possible", "hit"),
    [(20.0, 20.0, True), (19.0, 19.0, False), (20.0, None, True), (19.0, None, None)],
)
def test_the_panic_threshold(needed: float, possible: float | None, hit: bool | None) -> None:
    panicking = scope(10, behaviour=Behaviour(panic=PANIC))
    assert recommend(Need(needed, possible), panicking, None).hit == hit


def test_an_idle_target_at_zero_is_not_in_panic() -> None:
    panicking = scope(0, bounds=(0, 10), behaviour=Behaviour(panic=PANIC))
    assert recommend(Need(0.0, 0.0), panicking, None).hit is False


def history(current: int, *recommended: int) -> History:
    """Recommendations a minute apart, the last at T0 + 0; the target always had `current`."""
    made = History().started(current, T0 - 60_000 * len(recommended), MOST_STAMPS)
    for index, value in enumerate(recommended):
        at_ms = T0 - 60_000 * (len(recommended) - 1 - index)
        made = made.with_recommendation(value, at_ms, MOST_STAMPS)
    return made


def last(value: int, made: History, the_scope: Scope, now_ms: int = T0) -> int:
    return limit(value, made, the_scope, now_ms)[-1].after


def test_down_stabilisation_keeps_the_most_of_the_window() -> None:
    steady = Behaviour(scale_down=StepPolicy(stabilisation_ms=90_000, period_ms=0))
    made = history(10, 10, 6, 2)
    assert last(2, made, scope(10, behaviour=steady)) == 10
    assert last(2, made, scope(10, behaviour=steady), T0 + 30_000) == 6
    assert last(2, made, scope(10, behaviour=steady), T0 + 90_000) == 2


def test_up_stabilisation_keeps_the_least_of_the_window() -> None:
    steady = Behaviour(scale_up=StepPolicy(stabilisation_ms=90_000, period_ms=0))
    made = history(2, 2, 6, 10)
    assert last(10, made, scope(2, behaviour=steady)) == 2
    assert last(10, made, scope(2, behaviour=steady), T0 + 30_000) == 6
    assert last(10, made, scope(2, behaviour=steady), T0 + 90_000) == 10


@pytest.mark.parametrize(
    ("instances", "percent", "select", "expected"),
    [
        (4, 100, "Or", 20),
        (4, 10, "Or", 14),
        (4, 10, "And", 11),
        (0, 5, "Or", 11),
        (0, 5, "And", 10),
        (3, 0, "Or", 13),
        (3, 0, "And", 10),
    ],
)
def test_the_rate_up(instances: int, percent: int, select: str, expected: int) -> None:
    steps = StepPolicy(instances=instances, percent=percent, select=select, period_ms=60_000)
    limited = scope(10, behaviour=Behaviour(scale_up=steps))
    assert last(100, history(10, 100), limited) == expected


@pytest.mark.parametrize(
    ("instances", "percent", "select", "expected"),
    [(4, 100, "Or", 1), (4, 10, "Or", 6), (4, 10, "And", 9), (0, 5, "Or", 9), (0, 0, "Or", 10)],
)
def test_the_rate_down(instances: int, percent: int, select: str, expected: int) -> None:
    steps = StepPolicy(instances=instances, percent=percent, select=select, period_ms=60_000)
    limited = scope(10, behaviour=Behaviour(scale_down=steps))
    assert last(1, history(10, 1), limited) == expected


def test_the_rate_counts_from_the_least_of_its_period() -> None:
    steps = StepPolicy(instances=4, percent=0, period_ms=60_000)
    made = history(10, 100).with_replicas(14, T0 + 10_000, MOST_STAMPS)
    limited = scope(14, behaviour=Behaviour(scale_up=steps))
    assert last(100, made, limited, T0 + 69_999) == 14
    assert last(100, made, limited, T0 + 70_000) == 18


def test_panic_takes_the_place_of_the_limits_that_look_back() -> None:
    behaviour = Behaviour(
        scale_up=StepPolicy(instances=1, percent=0, period_ms=60_000), panic=PANIC
    )
    made = history(10, 100).with_hit(True, T0)
    steps = limit(100, made, scope(10, behaviour=behaviour), T0)
    assert named(steps) == [("panic", 100, 100)]


def test_panic_never_scales_down() -> None:
    made = history(10, 100).with_hit(True, T0)
    steps = limit(2, made, scope(10, behaviour=Behaviour(panic=PANIC)), T0)
    assert named(steps) == [("panic", 2, 10)]


@pytest.mark.parametrize(("percent", "expected"), [(200, 30), (20, 14), (0, 14)])
def test_panic_has_a_rate_that_is_never_stricter_than_without(percent: int, expected: int) -> None:
    panic = PanicPolicy(threshold_percent=200, hold_ms=60_000, percent=percent, period_ms=60_000)
    behaviour = Behaviour(
        scale_up=StepPolicy(instances=4, percent=0, period_ms=60_000), panic=panic
    )
    made = history(10, 100).with_hit(True, T0)
    assert last(100, made, scope(10, behaviour=behaviour)) == expected


def test_ruling_f2_panic_without_a_period_has_no_rate() -> None:
    made = history(10, 100).with_hit(True, T0)
    assert last(100, made, scope(10, behaviour=Behaviour(panic=PANIC))) == 100


def test_panic_lasts_for_its_hold_after_the_last_hit() -> None:
    made = history(10, 100).with_hit(True, T0)
    scope_ = scope(10, behaviour=Behaviour(panic=PANIC))
    assert last(2, made, scope_, T0 + 10**9) == 10
    ended = made.with_hit(False, T0 + 5_000)
    assert last(2, ended, scope_, T0 + 64_999) == 10
    assert last(2, ended, scope_, T0 + 65_000) == 2


def test_a_freeze_keeps_the_current_number_even_outside_the_bounds() -> None:
    frozen = scope(50, bounds=(1, 10), frozen=True)
    steps = limit(10, history(50, 10), frozen, T0)
    assert named(steps)[-1] == ("freeze", 10, 50)
    assert binding(steps) is Limiter.FREEZE


def test_bounds_hold_at_once_whatever_the_limits_say() -> None:
    made = history(50, 10)
    steps = limit(10, made, scope(50, bounds=(1, 10), behaviour=WEBHOOK_DEFAULTS), T0)
    assert named(steps) == [
        ("stabilisation", 10, 50),
        ("rate", 50, 50),
        ("bounds", 50, 10),
    ]


periods = st.sampled_from([0, 15_000, 60_000])
policies = st.builds(
    StepPolicy,
    instances=st.integers(0, 5),
    percent=st.sampled_from([0, 10, 50, 100, 300]),
    period_ms=periods,
    select=st.sampled_from(["Or", "And"]),
    stabilisation_ms=periods,
)
panics = st.builds(
    PanicPolicy,
    threshold_percent=st.sampled_from([110, 200, None]),
    hold_ms=periods,
    percent=st.sampled_from([0, 10, 1000]),
    period_ms=periods,
)
behaviours = st.builds(
    Behaviour,
    scale_down=st.none() | policies,
    scale_up=st.none() | policies,
    panic=st.none() | panics,
)


@given(
    behaviour=behaviours,
    recommended=st.lists(st.integers(0, 30), min_size=1, max_size=6),
    current=st.integers(0, 30),
    hit=st.booleans(),
    one=st.floats(0, 40),
    other=st.floats(0, 40),
)
def test_more_load_never_gives_fewer_replicas(
    behaviour: Behaviour,
    recommended: list[int],
    current: int,
    hit: bool,
    one: float,
    other: float,
) -> None:
    the_scope = scope(current, bounds=(1, 25), behaviour=behaviour)
    before = history(current, *recommended).with_hit(hit, T0 - 1)

    def desired(needed: float) -> int:
        found = recommend(Need(needed, needed), the_scope, before.recommended)
        after = before
        if found.evidence is not None:
            after = after.with_recommendation(found.evidence, T0, MOST_STAMPS)
        if found.hit is not None:
            after = after.with_hit(found.hit, T0)
        return last(found.value, after, the_scope)

    assert desired(min(one, other)) <= desired(max(one, other))
