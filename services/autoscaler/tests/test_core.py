"""The core as its shell sees it: when it speaks, when it is silent, what it forgets."""

from dataclasses import replace
from typing import Any

import pytest

from inferbus_autoscaler.core import decide
from inferbus_autoscaler.events import Demanded
from inferbus_autoscaler.facts import Behaviour, StepPolicy
from inferbus_autoscaler.outcomes import Decide
from inferbus_autoscaler.state import TargetState
from inferbus_contracts.deciding import ClearTimer
from inferbus_contracts.events.scaling import Limiter
from inferbus_contracts.resources.annotations import Compat
from services.autoscaler.tests.builders import (
    KEY,
    T0,
    WEBHOOK_DEFAULTS,
    Fleet,
    facts,
    policy,
    sample,
    target,
)

MINUTE_MS = 60_000
STEADY = Behaviour(scale_down=StepPolicy(period_ms=0, stabilisation_ms=5 * MINUTE_MS))


def desired(effects: tuple[object, ...]) -> list[int]:
    return [effect.data.desired for effect in effects if isinstance(effect, Decide)]


def test_the_first_sample_decides() -> None:
    _, effects = decide(TargetState(), sample(45), facts(3), T0)
    assert desired(effects) == [5]
    decided = next(effect for effect in effects if isinstance(effect, Decide))
    assert (decided.target, decided.data.current) == (KEY, 3)
    assert (decided.data.target_uid, decided.data.target_generation) == ("target-uid", 1)
    assert decided.data.apply == "auto"


def test_the_same_sample_again_changes_nothing_at_all() -> None:
    fleet = Fleet(5, policy())
    fleet.run([50, 50])
    before = fleet.state
    after, effects = decide(before, sample(50, fleet.now_ms), fleet.facts(), fleet.now_ms)
    assert after is before
    assert effects == ()


@pytest.mark.parametrize("load", [45, 50, 52])
def test_a_quiet_system_writes_nothing_but_a_decision_every_ten_minutes(load: float) -> None:
    """An hour of samples: the first decision and one for each ten minutes."""
    fleet = Fleet(5, policy(behaviour=WEBHOOK_DEFAULTS))
    fleet.run([load])
    writes = 0
    for _ in range(4 * 60 - 1):
        before = fleet.state
        fleet.run([load])
        writes += fleet.state is not before
    assert writes == len(fleet.decisions) - 1 == 5


def test_small_changes_of_load_are_quiet_too() -> None:
    fleet = Fleet(5, policy(behaviour=WEBHOOK_DEFAULTS))
    fleet.run([48.0])
    before = fleet.state
    fleet.run([48.1, 47.7, 48.3])
    assert fleet.state is before


def test_noise_around_a_whole_number_is_quiet() -> None:
    """9.8 to 10.2 replicas' worth of load: once rounded to ten, once held by the tolerance."""
    fleet = Fleet(10, policy(behaviour=WEBHOOK_DEFAULTS))
    fleet.run([100.0])
    before = fleet.state
    fleet.run([101.0, 98.0, 102.0, 99.0, 100.0])
    assert fleet.state is before
    assert len(fleet.decisions) == 1


def test_without_samples_nothing_is_repeated() -> None:
    fleet = Fleet(5, policy())
    fleet.sample(50)
    fleet.advance(60 * MINUTE_MS)
    assert len(fleet.decisions) == 1


def test_a_change_of_the_binding_limiter_is_told_though_the_number_stays() -> None:
    fleet = Fleet(5, policy(bounds=(1, 5)))
    fleet.run([50, 90])
    assert [d.record.binding for d in fleet.decisions] == [Limiter.NONE, Limiter.BOUNDS]


def test_demand_changes_nothing() -> None:
    fleet = Fleet(3, policy())
    fleet.sample(50)
    before = fleet.state
    assert decide(before, Demanded(sequence=4), fleet.facts(), T0 + 1) == (before, ())


@pytest.mark.parametrize(
    "without",
    [
        lambda given: replace(given, policy=None),
        lambda given: replace(given, targets=()),
        lambda given: replace(
            given, targets=tuple(replace(each, deleted=True) for each in given.targets)
        ),
    ],
)
def test_without_policy_or_target_all_is_forgotten(without: Any) -> None:
    fleet = Fleet(10, policy(behaviour=STEADY))
    fleet.run([100, 20])
    gone = without(fleet.facts())
    after, effects = decide(fleet.state, sample(20), gone, fleet.now_ms)
    assert after == TargetState()
    assert effects == (ClearTimer(),)
    assert decide(after, sample(20), gone, fleet.now_ms) == (after, ())


@pytest.mark.parametrize("who", ["policy", "target"])
def test_another_object_of_the_same_name_starts_afresh(who: str) -> None:
    fleet = Fleet(10, policy(behaviour=STEADY))
    fleet.run([150, 150, 100])
    fleet.replicas = 10
    given = fleet.facts()
    assert given.policy is not None
    if who == "policy":
        given = replace(given, policy=replace(given.policy, uid="another"))
    else:
        given = replace(given, targets=(target(10, uid="another"),))
    after, _ = decide(fleet.state, sample(20, fleet.now_ms), given, fleet.now_ms)
    assert after.history.recommended == 2
    assert after.history.most_recommended.past == ((fleet.now_ms, 10),)


def test_a_policy_new_to_a_running_target_undoes_nothing_at_once() -> None:
    fleet = Fleet(10, policy(behaviour=STEADY))
    assert fleet.run([20] * 20) == [10] * 20
    assert fleet.run([20] * 2)[-1] == 2


def test_switching_to_compat_and_back_mixes_no_histories() -> None:
    fleet = Fleet(10, policy(behaviour=STEADY))
    fleet.run([100] * 3)
    remembered = []
    for compat in (Compat.KTHENA_HEAD, None):
        fleet.policy = replace(fleet.policy, compat=compat)
        fleet.run([100])
        state = fleet.state
        remembered.append((state.compat is not None, state.history.recommended))
    assert remembered == [(True, None), (False, 10)]


def test_compat_skips_leave_no_trace() -> None:
    fleet = Fleet(5, policy(compat=Compat.KTHENA_HEAD))
    fleet.run([30])
    before = fleet.state
    after, effects = decide(before, sample(None, fleet.now_ms), fleet.facts(), fleet.now_ms)
    assert after is before
    assert effects == ()


def test_compat_explains_its_number_too() -> None:
    fleet = Fleet(5, policy(compat=Compat.KTHENA_HEAD, bounds=(1, 8)))
    fleet.run([200])
    record = fleet.decisions[0].record
    assert record.metrics[0].want == 20
    assert [(step.name, step.before, step.after) for step in record.limiters] == [
        (Limiter.BOUNDS, 20, 8),
        (Limiter.STABILISATION, 8, 8),
        (Limiter.RATE, 8, 8),
        (Limiter.BOUNDS, 8, 8),
    ]
