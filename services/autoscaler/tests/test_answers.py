"""What the reconciler answers, and what counts as the current number."""

import pytest

from inferbus_autoscaler.core import decide
from inferbus_autoscaler.outcomes import Decide
from inferbus_contracts.deciding import Applied
from inferbus_contracts.events.scaling import ApplyOutcome, Limiter
from inferbus_contracts.resources.annotations import ApplyMode
from services.autoscaler.tests.builders import KEY, T0, Fleet, policy, sample


def desired(effects: tuple[object, ...]) -> list[int]:
    return [effect.data.desired for effect in effects if isinstance(effect, Decide)]


def test_no_second_decision_while_one_is_being_applied() -> None:
    fleet = Fleet(1, policy())
    fleet.answers = False
    fleet.run([50, 90, 20])
    assert [d.desired for d in fleet.decisions] == [5]
    effects = fleet.answer()
    assert desired(effects) == [2], "the answer lets the newest need through"


def test_a_decision_that_is_never_answered_is_made_again_after_a_while() -> None:
    fleet = Fleet(1, policy())
    fleet.answers = False
    fleet.run([50] * 41)
    assert [d.desired for d in fleet.decisions] == [5, 5]


def test_its_own_decision_is_the_current_number_until_the_answer() -> None:
    fleet = Fleet(1, policy())
    fleet.answers = False
    fleet.run([50, 51])
    assert fleet.replicas == 1
    fleet.answer()
    fleet.run([90])
    assert [(d.current, d.desired) for d in fleet.decisions] == [(1, 5), (5, 9)]


def test_an_old_observation_does_not_undo_a_newer_answer() -> None:
    fleet = Fleet(1, policy())
    fleet.sample(50)
    fleet.feed(sample(50, fleet.now_ms), generation=1, replicas=1)
    assert len(fleet.decisions) == 1
    assert fleet.decisions[0].desired == 5


def test_an_observation_of_the_same_generation_does_not_either() -> None:
    fleet = Fleet(1, policy())
    fleet.sample(50)
    fleet.feed(sample(50, fleet.now_ms), replicas=1)
    assert len(fleet.decisions) == 1


def test_a_newer_generation_is_the_current_number() -> None:
    """Somebody scaled by hand: decided again, from the newer generation."""
    fleet = Fleet(5, policy())
    fleet.sample(50)
    fleet.replicas, fleet.generation = 8, 7
    fleet.sample(50)
    last = fleet.decisions[-1]
    assert (last.current, last.desired, last.target_generation) == (8, 5, 7)


def test_a_conflict_is_decided_again_at_once_against_the_newer_generation() -> None:
    fleet = Fleet(3, policy())
    fleet.answers = False
    fleet.sample(50)
    fleet.replicas, fleet.generation = 4, 6
    effects = fleet.answer(ApplyOutcome.CONFLICT)
    assert desired(effects) == [5]
    last = fleet.decisions[-1]
    assert (last.current, last.target_generation) == (4, 6)


def test_a_conflict_whose_news_come_before_the_observation() -> None:
    """The answer knows the newer generation though the facts still have the old one."""
    fleet = Fleet(3, policy())
    fleet.answers = False
    fleet.sample(50)
    answer = Applied(
        target=KEY,
        decision_id="1",
        outcome=ApplyOutcome.CONFLICT,
        replicas=4,
        generation=6,
        uid="target-uid",
    )
    _, effects = decide(fleet.state, answer, fleet.facts(), fleet.now_ms)
    decided = next(effect.data for effect in effects if isinstance(effect, Decide))
    assert (decided.current, decided.desired, decided.target_generation) == (4, 5, 6)


@pytest.mark.parametrize("outcome", [ApplyOutcome.FAILED, ApplyOutcome.FROZEN])
def test_a_failure_is_tried_again_with_the_next_sample_and_not_before(
    outcome: ApplyOutcome,
) -> None:
    fleet = Fleet(3, policy())
    fleet.answers = False
    fleet.sample(50)
    assert fleet.answer(outcome) == ()
    fleet.run([50])
    assert [d.desired for d in fleet.decisions] == [5, 5]


def test_an_answer_to_another_decision_tells_the_number_and_nothing_else() -> None:
    fleet = Fleet(3, policy())
    fleet.answers = False
    fleet.sample(50)
    other = Applied(
        target=KEY,
        decision_id="of somebody else",
        outcome=ApplyOutcome.CONFLICT,
        replicas=3,
        generation=1,
        uid="target-uid",
    )
    assert fleet.feed(other) == ()
    assert fleet.state.decision is not None
    assert fleet.state.decision.applying


def test_an_answer_about_a_former_target_of_that_name_is_ignored() -> None:
    fleet = Fleet(3, policy())
    fleet.answers = False
    fleet.sample(50)
    before = fleet.state
    former = Applied(
        target=KEY,
        decision_id="1",
        outcome=ApplyOutcome.APPLIED,
        replicas=5,
        generation=9,
        uid="former",
    )
    after, effects = decide(before, former, fleet.facts(), T0)
    assert after is before
    assert effects == ()


@pytest.mark.parametrize("mode", [ApplyMode.ADVISE, ApplyMode.APPROVE])
def test_advice_is_given_once_and_the_target_stays_as_it_is(mode: ApplyMode) -> None:
    fleet = Fleet(3, policy(apply=mode))
    fleet.answers = False
    fleet.run([50, 50])
    fleet.answer(ApplyOutcome.AWAITING_APPROVAL)
    fleet.run([50, 70, 50])
    assert [(d.current, d.desired, d.apply) for d in fleet.decisions] == [
        (3, 5, mode.value),
        (3, 7, mode.value),
        (3, 5, mode.value),
    ]


def test_an_approved_decision_becomes_the_current_number() -> None:
    fleet = Fleet(3, policy(apply=ApplyMode.APPROVE))
    fleet.answers = False
    fleet.run([50])
    fleet.answer(ApplyOutcome.AWAITING_APPROVAL)
    fleet.answer(ApplyOutcome.APPLIED)
    fleet.run([70])
    assert (fleet.decisions[-1].current, fleet.decisions[-1].desired) == (5, 7)


def test_an_approved_decision_that_comes_too_late_is_put_forward_again() -> None:
    fleet = Fleet(3, policy(apply=ApplyMode.APPROVE))
    fleet.answers = False
    fleet.run([50])
    fleet.answer(ApplyOutcome.AWAITING_APPROVAL)
    fleet.replicas, fleet.generation = 4, 6
    fleet.answer(ApplyOutcome.CONFLICT)
    assert [(d.current, d.desired) for d in fleet.decisions] == [(3, 5), (4, 5)]


def test_a_freeze_is_told_and_ends_with_its_end() -> None:
    fleet = Fleet(3, policy())
    fleet.run([30])
    fleet.frozen = True
    fleet.run([50, 50])
    assert fleet.decisions[-1].record.binding is Limiter.FREEZE
    assert fleet.replicas == 3
    fleet.frozen = False
    fleet.run([50])
    assert fleet.replicas == 5
