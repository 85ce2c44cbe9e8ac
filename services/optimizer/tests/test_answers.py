"""What the reconciler answers, and what counts as the current number."""

import pytest

from inferbus_contracts.events.scaling import ApplyOutcome
from services.optimizer.tests.builders import A100, H100, Mixer, option


def test_no_second_allocation_while_one_is_being_applied() -> None:
    mixer = Mixer(0, 1)
    mixer.answers = False
    mixer.demand(10.0)
    mixer.demand(14.0)
    mixer.answer(H100)
    assert [[a.desired for a in each.allocations] for each in mixer.allocations] == [[2, 2]]
    mixer.answer(A100)
    assert [a.desired for a in mixer.allocations[-1].allocations] == [3, 2]


def test_a_demand_that_saw_a_newer_generation_answers_too() -> None:
    """The answer itself never came, but what it did was seen."""
    mixer = Mixer(0, 1)
    mixer.answers = False
    mixer.demand(8.0)
    mixer.replicas[H100], mixer.generations[H100] = 2, 2
    mixer.demand(12.0)
    assert [a.desired for a in mixer.allocations[-1].allocations] == [3, 1]
    assert mixer.allocations[-1].allocations[0].generation == 2


def test_an_old_observation_does_not_undo_a_newer_answer() -> None:
    mixer = Mixer(0, 1)
    mixer.demand(8.0)
    stale = (option(H100, 0, generation=1), option(A100, 1, generation=1))
    mixer.demand(8.0, options=stale)
    assert len(mixer.allocations) == 1


def test_as_d23_a_conflict_is_decided_again_against_the_newer_generation() -> None:
    """What somebody else wrote meanwhile isn't overwritten by the last writer."""
    mixer = Mixer(0, 1)
    mixer.answers = False
    mixer.demand(8.0)
    mixer.replicas[H100], mixer.generations[H100] = 1, 5
    mixer.answer(H100, ApplyOutcome.CONFLICT)
    again = mixer.allocations[-1].allocations[0]
    assert (again.current, again.desired, again.generation) == (1, 2, 5)


@pytest.mark.parametrize("outcome", [ApplyOutcome.FAILED, ApplyOutcome.FROZEN])
def test_a_failure_is_tried_again_with_the_next_demand_and_not_before(
    outcome: ApplyOutcome,
) -> None:
    mixer = Mixer(0, 1)
    mixer.answers = False
    mixer.demand(8.0)
    assert mixer.answer(H100, outcome) == ()
    mixer.demand(8.0)
    assert len(mixer.allocations) == 2


def test_an_answer_to_another_decision_settles_nothing() -> None:
    mixer = Mixer(0, 1)
    mixer.answers = False
    mixer.demand(8.0)
    mixer.changes = {"decision_id": "of somebody else"}
    assert mixer.answer(H100, ApplyOutcome.UNCHANGED) == ()
    mixer.demand(12.0)
    assert len(mixer.allocations) == 1


def test_advice_is_given_once() -> None:
    mixer = Mixer(0, 1)
    mixer.answers = False
    mixer.demand(8.0, apply="advise")
    mixer.demand(8.0, apply="advise")
    mixer.demand(12.0, apply="advise")
    assert [a.apply for a in mixer.allocations] == ["advise", "advise"]
    assert [[x.current for x in a.allocations] for a in mixer.allocations] == [[0, 1], [0, 1]]
