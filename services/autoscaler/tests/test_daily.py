"""What comes again each day, and what is made of it."""

import math
import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferbus_autoscaler.core import recompute
from inferbus_autoscaler.fact_fold import FactFold
from inferbus_autoscaler.facts import DeciderSettings
from inferbus_autoscaler.objective_memory import ObjectiveMemory
from inferbus_autoscaler.policy_check import fitted, problems_of
from inferbus_autoscaler.policy_daily import MOST_AWAITED, SLOTS, Awaited, Daily, Skill
from inferbus_autoscaler.policy_trend import Trend
from inferbus_autoscaler.state import TargetState
from inferbus_autoscaler.worst_memory import worst_memory
from inferbus_contracts.canonical import canonical_json
from inferbus_contracts.deciding import MOST_RECORD_BYTES
from inferbus_contracts.events.spec import SpecChanged
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.resources.annotations import FORECAST, OBJECTIVE
from services.autoscaler.tests.builders import mix_facts
from services.autoscaler.tests.objective_world import Town, by_objective, objective
from tests.bench.untuned_fleet import Untuned

DAY_SECONDS = 86_400
STEP_SECONDS = 60
AHEAD_SECONDS = 425.0
MOST_BYTES = 1_000
SERVES = 2.0

Rate = Callable[[float], float]
"""Requests per second at a time in seconds."""


def steep(second: float) -> float:
    """A day between 8 and 72 requests per second."""
    return 40 * (1 + 0.8 * math.sin(2 * math.pi * second / DAY_SECONDS))


def opening(second: float) -> float:
    """A service that opens at nine and closes at five, each within ten minutes."""
    hour = second % DAY_SECONDS / 3600
    return 10 + 40 * min(max((hour - 9) * 6, 0), 1) * min(max((17 - hour) * 6, 0), 1)


def steady(second: float) -> float:
    return 40.0


def counted(rate: float, chance: random.Random) -> float:
    """A rate as counted over a step, with the scatter of a Poisson process."""
    return max(chance.gauss(rate, math.sqrt(rate / STEP_SECONDS)), 0.0)


@dataclass
class Followed:
    """A trend and a rhythm, and by how much both and the trend alone were off, in squares."""

    daily: Daily
    trend: Trend
    with_rhythm: list[float]
    without: list[float]


def followed(days: int, rate: Rate, before: Followed | None = None) -> Followed:
    """After so many days more; errors are those of the last one."""
    chance = random.Random(5)
    daily = before.daily if before else Daily()
    trend = before.trend if before else Trend.first(rate(0), STEP_SECONDS)
    known = before.daily.slot.number // SLOTS * DAY_SECONDS + DAY_SECONDS if before else 0
    found = Followed(daily, trend, [], [])
    for second in range(0, days * DAY_SECONDS, STEP_SECONDS):
        now_ms = (known + second) * 1000
        came = counted(rate(second), chance)
        found.trend = found.trend.after(came, STEP_SECONDS, now_ms, AHEAD_SECONDS)
        found.daily = found.daily.after(found.trend, came, STEP_SECONDS, now_ms, AHEAD_SECONDS)
        if second >= (days - 1) * DAY_SECONDS:
            comes = rate(second + AHEAD_SECONDS)
            ahead = found.daily.forecast(found.trend, now_ms, AHEAD_SECONDS)
            found.with_rhythm.append((ahead.rate - comes) ** 2)
            found.without.append((found.trend.forecast(AHEAD_SECONDS).rate - comes) ** 2)
    return found


@pytest.mark.parametrize("rate", [steep, opening])
def test_a_rhythm_is_foreseen_after_some_days(rate: Rate) -> None:
    found = followed(4, rate)
    assert found.daily.skill.weight > 0.3
    assert sum(found.with_rhythm) < 0.85 * sum(found.without)


def test_the_ratio_is_that_of_the_days_course() -> None:
    daily = followed(3, steep).daily
    for hour in range(24):
        now = hour * 3600
        expected = steep(now + AHEAD_SECONDS) / steep(now)
        assert daily.ratio(now * 1000, AHEAD_SECONDS) == pytest.approx(expected, rel=0.05)


def test_a_step_is_foreseen_at_its_time() -> None:
    """From 10 per second in the last ten minutes to 30 in those of the opening."""
    daily = followed(2, opening).daily
    assert daily.ratio((8 * 60 + 55) * 60_000, 600) == pytest.approx(3, rel=0.1)


def test_a_day_that_is_busier_as_a_whole_has_the_same_rhythm() -> None:
    usual = followed(3, steep)
    busy = followed(1, lambda second: 2 * steep(second), usual)
    for hour in range(1, 24):
        now_ms = hour * 3_600_000
        ratios = [one.daily.ratio(now_ms, 900) for one in (usual, busy)]
        assert ratios[0] == pytest.approx(ratios[1], rel=0.03)


def test_load_that_was_never_there_at_this_time_is_not_explained_away() -> None:
    found, now_ms = followed(3, steady), 3 * DAY_SECONDS * 1000
    for minute in range(10):
        rate = 40.0 + 5 * minute
        found.trend = found.trend.after(rate, 60, now_ms + minute * 60_000, AHEAD_SECONDS)
    plain = found.trend.forecast(AHEAD_SECONDS)
    assert found.daily.skill.weight > 0.5
    ahead = found.daily.forecast(found.trend, now_ms, AHEAD_SECONDS).rate
    assert plain.rate > found.trend.level + 10
    assert ahead >= plain.rate - 0.5 * math.sqrt(plain.variance)


def test_before_a_day_is_known_the_trend_stands_alone() -> None:
    found = followed(1, steep)
    assert found.with_rhythm == found.without


def test_a_service_without_a_rhythm_is_not_harmed() -> None:
    found = followed(4, steady)
    assert sum(found.with_rhythm) <= sum(found.without)


def test_a_rhythm_that_shifts_is_unlearned() -> None:
    """What was right at nine is wrong for a day; then its weight is gone, then it is learned."""
    known = followed(3, opening)

    def shifted(second: float) -> float:
        return opening(second + 6 * 3600)

    soon, later = followed(1, shifted, known), followed(6, shifted, known)
    assert soon.daily.skill.weight < known.daily.skill.weight
    assert sum(later.with_rhythm) < 0.9 * sum(later.without)
    assert later.daily.ratio(10_800_000 - 300_000, 900) > 2


def skill(pairs: list[tuple[float, float]]) -> Skill:
    """After forecasts of 10 per second: by how much each missed, and how it was to be corrected."""
    found = Skill()
    for error, correction in pairs:
        awaited = Awaited(due_ms=0, rate=10.0, correction=correction)
        found = found.after(awaited, 10.0 + error, 1.0)
    return found


def test_a_correction_is_made_as_far_as_it_was_right() -> None:
    wavering = [1.0, -1.0, 2.0, -2.0] * 50
    assert skill([(one, one) for one in wavering]).weight == pytest.approx(1.0)
    assert skill([(one / 2, one) for one in wavering]).weight == pytest.approx(0.5)
    assert skill([(2 * one, one) for one in wavering]).weight == pytest.approx(1.0)
    assert skill([(-one, one) for one in wavering]).weight == 0


@pytest.mark.parametrize("seed", range(8))
def test_what_chance_explains_is_no_skill(seed: int) -> None:
    chance = random.Random(seed)
    by_chance = [(chance.gauss(0, 1), chance.gauss(0, 1)) for _ in range(400)]
    assert skill(by_chance).weight == 0
    assert skill(by_chance).variance_share == 1


_STEPS = st.tuples(
    st.floats(0, 1e6), st.floats(5, 600), st.integers(0, 90_000_000), st.floats(10, 1_800)
)


@given(st.lists(_STEPS, max_size=60))
def test_whatever_arrives_it_stays_finite_and_small(
    story: list[tuple[float, float, int, float]],
) -> None:
    daily, trend, now_ms = replace(Daily(), learned=SLOTS), Trend.first(1.0, 5.0), 10**12
    for rate, seconds, passed_ms, ahead in story:
        now_ms += passed_ms
        trend = trend.after(rate, seconds, now_ms, ahead)
        daily = daily.after(trend, rate, seconds, now_ms, ahead)
        forecast = daily.forecast(trend, now_ms, ahead)
        assert all(math.isfinite(one) and one >= 0 for one in vars(forecast).values())
        assert 0 <= daily.skill.weight <= 1
        assert forecast.variance <= trend.forecast(ahead).variance
        assert len(daily.awaited) <= MOST_AWAITED
        assert size_bytes(daily) <= size_bytes(worst_memory(now_ms, daily=True).daily)


def size_bytes(daily: Daily | None) -> int:
    """What the rhythm adds to the state of a target."""
    with_it = TargetState(objective=ObjectiveMemory(daily=daily)).to_dict()
    without = TargetState(objective=ObjectiveMemory()).to_dict()
    return len(canonical_json(with_it)) - len(canonical_json(without))


def test_few_forecasts_wait_though_start_ups_take_ever_longer() -> None:
    daily, trend = replace(Daily(), learned=SLOTS), Trend.first(1.0, 5.0)
    for ahead in (10.0, 100.0, 1_000.0):
        daily = daily.after(trend, 1.0, 5.0, 1_000, ahead)
    assert [awaited.due_ms for awaited in daily.awaited] == [101_000, 1_001_000]


@pytest.mark.parametrize("written", ["AAAA", "no base64", 5])
def test_a_rhythm_that_is_none_is_refused(written: Any) -> None:
    state = TargetState(objective=ObjectiveMemory(daily=followed(1, steep).daily)).to_dict()
    assert TargetState.from_dict(state).to_dict() == state
    state["objective"]["daily"]["changes"] = written
    with pytest.raises(ValueError, match="changes"):
        TargetState.from_dict(state)


def test_the_largest_rhythm_is_small_and_records_fit() -> None:
    assert size_bytes(worst_memory(10**13 - 1, daily=True).daily) <= MOST_BYTES
    by_days = objective(daily=True)
    mix = mix_facts((1, 1), metrics={}, objective=by_days).policy
    assert mix is not None
    for policy in (by_objective(objective=by_days), mix):
        assert problems_of(policy) == ()
        assert fitted(policy).most_stamps >= 8


def test_a_mix_that_has_no_room_for_it_is_told_what_to_remove() -> None:
    mix = mix_facts((1, 1), metrics={}, objective=objective(daily=True)).policy
    assert mix is not None
    third = replace(mix.targets[0], key=f"{mix.targets[0].key}-2")
    large = replace(mix, targets=(*mix.targets, third))
    (problem,) = problems_of(large)
    assert FORECAST in problem.remedy
    assert problems_of(replace(large, objective=objective())) == ()


def test_it_is_kept_only_where_it_is_asked_for() -> None:
    asked, plain = (Town(2, objective=objective(daily=daily)).run(60, 2) for daily in (True, False))
    assert "daily" in asked.fleet.state.to_dict()["objective"]
    assert "daily" not in plain.fleet.state.to_dict()["objective"]
    asked.fleet.policy = plain.fleet.policy
    asked.run(10, 2)
    assert "daily" not in asked.fleet.state.to_dict()["objective"]


def test_a_record_gives_the_same_bytes_again() -> None:
    town = Town(2, objective=objective(daily=True)).run(300, 2).run(120, 30)
    known = followed(2, steep).daily
    memory = town.fleet.state.objective
    assert memory is not None
    town.fleet.state = replace(town.fleet.state, objective=replace(memory, daily=known))
    town.run(120, 60)
    assert len(town.fleet.decisions) > 3
    for decided in town.fleet.decisions:
        assert recompute(decided.record) == decided.to_json()
        assert len(decided.to_json()) <= MOST_RECORD_BYTES


@dataclass
class Seen:
    """What a fleet shows of one step."""

    second: int
    arrivals: float
    queued: float
    ready: int
    starting: int
    seconds: int = STEP_SECONDS
    capacity_per_replica: float = SERVES


def served(days: int, rate: Rate, *, daily: bool) -> tuple[float, float]:
    """Requests that were late, and replica-seconds, on the last of so many days."""
    chance, autoscaler = random.Random(6), Untuned(420, "wait=2s@99.5%", daily=daily)
    ready, queued, late, cost = round(rate(0) / SERVES) + 2, 0.0, 0.0, 0.0
    starting: deque[tuple[int, int]] = deque()
    for second in range(STEP_SECONDS, days * DAY_SECONDS, STEP_SECONDS):
        while starting and starting[0][0] <= second:
            ready += starting.popleft()[1]
        came = counted(rate(second), chance) * STEP_SECONDS
        queued = max(queued + came - ready * SERVES * STEP_SECONDS, 0.0)
        coming = sum(count for _, count in starting)
        if second >= (days - 1) * DAY_SECONDS:
            late += came if queued > 2 * ready * SERVES else 0.0
            cost += (ready + coming) * STEP_SECONDS
        want = autoscaler.decide(Seen(second, came, queued, ready, coming))
        change = (ready + coming if want is None else want) - ready - coming
        if change > 0:
            starting.append((second + 420, change))
        while change < 0 and starting:
            due, count = starting.pop()
            change += count
            if change > 0:
                starting.append((due, change))
        ready += min(change, 0)
    return late, cost


def test_a_day_that_opens_with_a_step_costs_less_and_is_served_as_well() -> None:
    without, foreseen = (served(3, opening, daily=daily) for daily in (False, True))
    assert foreseen[0] < 1.15 * without[0]
    assert foreseen[1] < 0.9 * without[1]


@pytest.mark.parametrize("rate", [steep, steady])
def test_what_the_trend_sees_as_well_costs_less_and_keeps_the_objective(rate: Rate) -> None:
    without, with_it = (served(3, rate, daily=daily) for daily in (False, True))
    assert with_it[0] <= 0.005 * sum(rate(second) for second in range(DAY_SECONDS))
    assert with_it[1] <= without[1]


@pytest.mark.parametrize(("words", "daily"), [({FORECAST: "daily"}, True), ({}, False)])
def test_a_policy_asks_for_it(words: dict[str, str], daily: bool) -> None:
    serving, scaler = (
        ObjectKey(kind, "default", "llm") for kind in ("ModelServing", "AutoscalingPolicy")
    )
    folded = FactFold(DeciderSettings())
    folded.take(serving, changed(serving, {"replicas": 1}, {}), 0)
    reference = {"kind": serving.kind, "name": serving.name}
    target = {"target": {"targetRef": reference}, "minReplicas": 1, "maxReplicas": 9}
    asks = {OBJECTIVE: "wait=2s@99.5%", **words}
    folded.take(scaler, changed(scaler, {"metrics": [], "homogeneousTarget": target}, asks), 0)
    read = folded.facts(serving, "", 0).policy
    assert read is not None
    assert read.objective is not None
    assert read.objective.daily is daily


def changed(key: ObjectKey, spec: dict[str, Any], words: dict[str, str]) -> SpecChanged:
    document = {
        "apiVersion": "workload.serving.volcano.sh/v1alpha1",
        "kind": key.kind,
        "metadata": {"name": key.name, "namespace": key.namespace, "annotations": words},
        "spec": spec,
    }
    return SpecChanged(uid=key.kind, generation=1, digest="", object=document)
