"""Compat loops against the table of autoscaling spec 6.2, by number.

Loads are external totals unless said; every metric's target is 10, the tolerance 10 %, one loop
every 15 s, and the next current number is what was applied.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pytest

from inferbus_autoscaler.facts import Behaviour, PanicPolicy, StepPolicy
from inferbus_autoscaler.policy_compat_head import CompatLoop, run_loop
from inferbus_autoscaler.policy_correction import HEAD_RULES, V01_RULES, CompatRules
from inferbus_autoscaler.policy_recommendation import RecommendationInput
from services.autoscaler.tests.builders import (
    STEP_MS,
    T0,
    WEBHOOK_DEFAULTS,
)

SKIP = None


@dataclass(frozen=True, kw_only=True)
class Setup:
    start: int
    loads: Sequence[float | None]
    expected: Sequence[int | None]
    behaviour: Behaviour = WEBHOOK_DEFAULTS
    low: int = 1
    high: int = 100
    step_ms: int = STEP_MS
    pods: bool = False
    """Loads are sums over pods."""
    rules: CompatRules = HEAD_RULES


def steps(instances: int, percent: int, select: str, period_s: int, window_s: int) -> StepPolicy:
    return StepPolicy(
        instances=instances,
        percent=percent,
        select=select,
        period_ms=period_s * 1000,
        stabilisation_ms=window_s * 1000,
    )


def down(
    instances: int = 0,
    percent: int = 100,
    select: str = "Or",
    period_s: int = 60,
    window_s: int = 300,
    base: Behaviour = WEBHOOK_DEFAULTS,
) -> Behaviour:
    """The defaults with other limits for scaling down."""
    return replace(base, scale_down=steps(instances, percent, select, period_s, window_s))


def up(
    instances: int = 4,
    percent: int = 100,
    select: str = "Or",
    period_s: int = 60,
    window_s: int = 0,
    base: Behaviour = WEBHOOK_DEFAULTS,
) -> Behaviour:
    """The defaults with other limits for scaling up."""
    return replace(base, scale_up=steps(instances, percent, select, period_s, window_s))


def panic(
    percent: int = 1000,
    period_s: int = 10,
    hold_s: int = 60,
    base: Behaviour = WEBHOOK_DEFAULTS,
) -> Behaviour:
    """The defaults with panic; without arguments the table's P1."""
    gate = PanicPolicy(
        percent=percent,
        period_ms=period_s * 1000,
        threshold_percent=200,
        hold_ms=hold_s * 1000,
    )
    return replace(base, panic=gate)


P1 = panic()
FAST_DOWN = down(period_s=15, window_s=0)

CASES = {
    "AS_T41": Setup(start=1, loads=[500] * 14, expected=[5] + [10] * 5 + [20] * 5 + [40] * 3),
    "AS_T42": Setup(
        start=1,
        behaviour=up(1, 100, "Or", 15),
        loads=[500] * 8,
        expected=[2, 4, 4, 8, 8, 16, 16, 32],
    ),
    "AS_T43": Setup(
        start=1,
        behaviour=up(1, 100, "Or", 15),
        step_ms=15_020,
        loads=[500] * 8,
        expected=[2, 4, 8, 16, 32, 50, 50, 50],
    ),
    "AS_T44": Setup(
        start=4,
        behaviour=up(2, 50, "And", 60),
        loads=[500] * 10,
        expected=[6] + [8] * 5 + [10] * 4,
    ),
    "AS_T45": Setup(start=1, behaviour=up(5, 50, "And", 15), loads=[500] * 3, expected=[1] * 3),
    "AS_T46": Setup(
        start=1,
        behaviour=up(period_s=15, window_s=30),
        loads=[10, 10] + [100] * 5,
        expected=[1, 1, 1, 1, 5, 5, 10],
    ),
    "AS_T47": Setup(
        start=1,
        behaviour=up(period_s=15, window_s=30),
        step_ms=15_020,
        loads=[10, 10] + [100] * 5,
        expected=[1, 1, 1, 5, 10, 10, 10],
    ),
    "AS_T48": Setup(
        start=10,
        behaviour=down(window_s=60),
        loads=[100] * 3 + [20] * 8,
        expected=[10] * 7 + [2] * 4,
    ),
    "AS_T49": Setup(
        start=10,
        behaviour=down(window_s=60),
        rules=V01_RULES,
        loads=[100] * 3 + [20] * 40,
        expected=[10] * 43,
    ),
    "AS_T50": Setup(
        start=10,
        behaviour=down(1, 100, "And", 60, 0),
        loads=[100, 100] + [10] * 14,
        expected=[10, 10] + [9] * 5 + [8] * 5 + [7] * 4,
    ),
    "AS_T51": Setup(
        start=10,
        behaviour=down(1, 100, "And", 60, 0),
        rules=V01_RULES,
        loads=[100, 100] + [10] * 14,
        expected=[10, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 1, 1, 1, 1, 1],
    ),
    "AS_T52": Setup(
        start=10,
        behaviour=down(0, 20, "Or", 60, 0),
        loads=[100, 100] + [10] * 14,
        expected=[10, 10] + [8] * 5 + [7] * 5 + [6] * 4,
    ),
    "AS_T53": Setup(start=10, loads=[20] * 3, expected=[2] * 3),
    "AS_T54": Setup(start=10, loads=[100, 100] + [20] * 24, expected=[10] * 22 + [2] * 4),
    "AS_T55": Setup(
        start=10,
        behaviour=down(period_s=15, window_s=60),
        loads=[100, 100, None, None, None, None, 20, 20],
        expected=[10, 10, SKIP, SKIP, SKIP, SKIP, 2, 2],
    ),
    "AS_T56": Setup(
        start=2,
        behaviour=panic(base=FAST_DOWN),
        loads=[20, 20, 100, 100] + [20] * 8,
        expected=[2, 2] + [10] * 5 + [2] * 5,
    ),
    "AS_T57": Setup(
        start=2,
        behaviour=panic(base=FAST_DOWN),
        loads=[20, 100, 100, 250, 250, 250] + [20] * 6,
        expected=[2, 10, 10] + [25] * 5 + [2] * 4,
    ),
    "AS_T58": Setup(
        start=2,
        behaviour=panic(percent=100),
        loads=[20, 20, 100, 100, 100],
        expected=[2, 2, 4, 8, 10],
    ),
    "AS_T59": Setup(
        start=2,
        behaviour=panic(percent=100, period_s=30),
        loads=[20, 20] + [160] * 5,
        expected=[2, 2, 4, 4, 4, 8, 8],
    ),
    "AS_T60": Setup(start=3, behaviour=panic(percent=110), loads=[30, 200], expected=[3, 6]),
    "AS_T61": Setup(
        start=2,
        high=200,
        behaviour=panic(percent=100, period_s=0),
        loads=[20, 1000],
        expected=[2, 100],
    ),
    "AS_T62": Setup(
        start=2,
        behaviour=panic(hold_s=0, base=up(1, 50, "And", 15)),
        loads=[20, 20, 100, 100, 100],
        expected=[2, 2, 3, 3, 4],
    ),
    "AS_T63a": Setup(
        start=5, behaviour=panic(base=up(1, 10, "And", 15)), loads=[100], expected=[10]
    ),
    "AS_T63b": Setup(start=5, behaviour=panic(base=up(1, 10, "And", 15)), loads=[90], expected=[5]),
    "AS_T64": Setup(start=5, high=9, behaviour=P1, loads=[1000], expected=[9]),
    "AS_T65": Setup(
        start=2,
        low=0,
        behaviour=FAST_DOWN,
        pods=True,
        loads=[20, 0, 0, None, None],
        expected=[2, 0, 0, SKIP, SKIP],
    ),
    "AS_T66": Setup(start=0, low=0, high=10, loads=[0, 0, 25, 25, 70], expected=[0, 0, 3, 3, 4]),
    "AS_T67": Setup(start=0, low=0, behaviour=up(1, 100, "And"), loads=[25, 25], expected=[0, 0]),
    "AS_T68": Setup(start=0, low=0, behaviour=up(0, 100, "Or"), loads=[25, 25], expected=[0, 0]),
    "AS_T69_head": Setup(start=0, low=0, behaviour=P1, loads=[25, 25], expected=[3, 3]),
    "AS_T69_v01": Setup(
        start=0, low=0, behaviour=P1, rules=V01_RULES, loads=[25] * 3, expected=[0] * 3
    ),
    "AS_T70": Setup(
        start=0,
        low=3,
        high=10,
        behaviour=up(1, 10, "And", 60),
        loads=[500, 500],
        expected=[3, 3],
    ),
    "AS_T71": Setup(start=50, high=10, loads=[100, 100], expected=[10, 10]),
    "AS_T72": Setup(
        start=7,
        high=10,
        behaviour=down(0, 20, "Or", 15, 0),
        loads=[10, 10],
        expected=[6, 5],
    ),
    "AS_T73": Setup(
        start=7, low=0, behaviour=down(0, 150, "Or", 60, 0), loads=[0, 0], expected=[0, 0]
    ),
    "AS_T74": Setup(
        start=2,
        behaviour=down(1, 10, "", 15, 0, base=up(1, 10, "", 15)),
        loads=[500, 10],
        expected=[50, 1],
    ),
    "AS_T75": Setup(
        start=10,
        behaviour=FAST_DOWN,
        loads=[100, 95, 105, 89, 110, 111],
        expected=[10, 10, 10, 9, 11, 11],
    ),
}


def run(setup: Setup) -> list[tuple[int | None, bool]]:
    """(applied, panic) of each loop."""
    loop = CompatLoop.first(setup.behaviour, setup.rules)
    current, seen = setup.start, []
    for index, load in enumerate(setup.loads):
        values = {} if load is None else {"m": float(load)}
        given = RecommendationInput(
            min_replicas=setup.low,
            max_replicas=setup.high,
            current=current,
            tolerance_percent=10,
            targets={"m": 10.0},
            entries=[values if setup.pods else {}],
            external_totals={} if setup.pods else values,
        )
        now_ms = T0 + index * setup.step_ms
        result = run_loop(loop, given, setup.behaviour, now_ms, setup.rules)
        loop = result.loop
        current = current if result.applied is None else result.applied
        seen.append((result.applied, result.panic))
    return seen


@pytest.mark.parametrize("case", CASES)
def test_table(case: str) -> None:
    setup = CASES[case]
    assert [applied for applied, _ in run(setup)] == list(setup.expected)


@pytest.mark.parametrize(
    ("case", "loops"),
    [("AS_T56", range(2, 7)), ("AS_T57", range(1, 8)), ("AS_T64", range(0))],
)
def test_panic_lasts(case: str, loops: range) -> None:
    """The loops in which panic rules, as the table says."""
    seen = [index for index, (_, panicking) in enumerate(run(CASES[case])) if panicking]
    assert seen == list(loops)


def test_a_loop_tells_each_limiter_with_its_numbers() -> None:
    """T50 at its third loop: rate holds 10 at 9."""
    setup = CASES["AS_T50"]
    loop = CompatLoop.first(setup.behaviour)
    given = RecommendationInput(
        min_replicas=1,
        max_replicas=100,
        current=10,
        tolerance_percent=10,
        targets={"m": 10.0},
        entries=[{}],
        external_totals={"m": 10.0},
    )
    steps = run_loop(loop, given, setup.behaviour, T0).steps
    assert [(step.name, step.before, step.after) for step in steps] == [
        ("stabilisation", 1, 1),
        ("rate", 1, 9),
        ("bounds", 9, 9),
    ]


def test_32_bit_products_overflow_as_upstream_s_do() -> None:
    """D28: 30 million replicas times 100 no longer reach a threshold of 110 %."""
    behaviour = replace(P1, panic=PanicPolicy(threshold_percent=110, hold_ms=60_000))
    given = RecommendationInput(
        min_replicas=1,
        max_replicas=40_000_000,
        current=10_000_000,
        tolerance_percent=10,
        targets={"m": 1.0},
        entries=[{}],
        external_totals={"m": 30_000_000.0},
    )
    assert not run_loop(CompatLoop.first(behaviour), given, behaviour, T0).panic
