"""Mixes: one total, told to the optimizer."""

from dataclasses import replace

from inferbus_autoscaler.core import decide
from inferbus_autoscaler.outcomes import Demand
from inferbus_autoscaler.state import TargetState
from inferbus_contracts.deciding import Applied
from inferbus_contracts.events.scaling import ApplyOutcome, ScalingDemanded
from inferbus_contracts.resources.annotations import Compat
from services.autoscaler.tests.builders import MIX, STEP_MS, T0, mix_facts, mix_sample


def demanded(effects: tuple[object, ...]) -> list[ScalingDemanded]:
    return [effect.data for effect in effects if isinstance(effect, Demand)]


def test_a_mix_demands_its_total_from_the_optimizer() -> None:
    _, effects = decide(TargetState(), mix_sample((40.0, 40.0)), mix_facts((2, 2)), T0)
    (demand,) = demanded(effects)
    assert (demand.current, demand.replicas, demand.capacity) == (4, 8, 8.0)
    assert [(o.target, o.current, o.cost, o.max_replicas) for o in demand.targets] == [
        (MIX[0], 2, 100, 4),
        (MIX[1], 2, 60, 8),
    ]


def test_a_mix_counts_in_capacity_units() -> None:
    """Three H100 of 4 units and one A100: 13 units, of at most 24."""
    the_facts = mix_facts((3, 1), capacity=4.0)
    _, effects = decide(TargetState(), mix_sample((150.0, 10.0)), the_facts, T0)
    (demand,) = demanded(effects)
    assert (demand.current, demand.replicas, demand.capacity) == (13, 16, 16.0)


def test_a_mix_that_holds_demands_exactly_what_it_has() -> None:
    """12.5 units carry 12.2: neither 12 nor 13 may be asked for."""
    the_facts = mix_facts((3, 5), capacity=2.5)
    _, effects = decide(TargetState(), mix_sample((60.0, 62.0)), the_facts, T0)
    assert (demanded(effects)[0].current, demanded(effects)[0].capacity) == (12, 12.5)


def test_a_mix_that_is_unchanged_is_silent() -> None:
    the_facts = mix_facts((2, 2))
    state, _ = decide(TargetState(), mix_sample((20.0, 20.0)), the_facts, T0)
    later = T0 + STEP_MS
    again, effects = decide(state, mix_sample((20.0, 20.0), later), the_facts, later)
    assert again is state
    assert effects == ()


def test_the_optimizer_hears_of_a_mix_that_changed_under_it() -> None:
    the_facts = mix_facts((2, 2))
    state, _ = decide(TargetState(), mix_sample((20.0, 20.0)), the_facts, T0)
    fewer = replace(
        the_facts, targets=(replace(the_facts.targets[0], schedulable=2), the_facts.targets[1])
    )
    later = T0 + STEP_MS
    _, effects = decide(state, mix_sample((20.0, 20.0), later), fewer, later)
    assert demanded(effects)[0].targets[0].schedulable == 2


def test_a_target_of_a_mix_that_does_not_exist_is_left_out() -> None:
    the_facts = mix_facts((2, 2))
    only = replace(the_facts, targets=the_facts.targets[1:])
    _, effects = decide(TargetState(), mix_sample((0.0, 40.0)), only, T0)
    (demand,) = demanded(effects)
    assert [option.target for option in demand.targets] == [MIX[1]]
    assert demand.replicas == 4


def test_a_target_of_a_mix_that_was_made_anew_is_as_its_spec_says() -> None:
    the_facts = mix_facts((2, 2))
    state, _ = decide(TargetState(), mix_sample((20.0, 20.0)), the_facts, T0)
    answer = Applied(
        target=MIX[0],
        decision_id="of the optimizer",
        outcome=ApplyOutcome.APPLIED,
        replicas=4,
        generation=9,
        uid="target-uid",
    )
    state, _ = decide(state, answer, the_facts, T0 + 1)
    anew = (replace(the_facts.targets[0], uid="another"), the_facts.targets[1])
    for seen, replicas in [(the_facts, 4), (replace(the_facts, targets=anew), 2)]:
        _, effects = decide(state, mix_sample((20.0, 20.0)), seen, T0 + 2)
        assert demanded(effects)[0].targets[0].current == replicas


def test_upstream_leaves_a_mix_alone_while_a_target_is_missing() -> None:
    the_facts = mix_facts((2, 2), compat=Compat.KTHENA_HEAD)
    only = replace(the_facts, targets=the_facts.targets[1:])
    assert decide(TargetState(), mix_sample((0.0, 40.0)), only, T0)[1] == ()


def test_upstream_s_total_of_a_mix() -> None:
    """T24: two targets at 38 and 45 give 9."""
    the_facts = mix_facts((3, 3), compat=Compat.KTHENA_HEAD)
    _, effects = decide(TargetState(), mix_sample((38.0, 45.0)), the_facts, T0)
    assert demanded(effects)[0].replicas == 9


def test_version_0_1_is_blind_for_mixes() -> None:
    the_facts = mix_facts((3, 3), compat=Compat.KTHENA_V01)
    assert decide(TargetState(), mix_sample((38.0, 45.0)), the_facts, T0)[1] == ()
