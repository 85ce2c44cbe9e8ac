"""The core as its shell sees it: when it speaks, when it is silent, and what it keeps."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inferbus_contracts.canonical import canonical_json
from inferbus_contracts.errors import ProblemsError
from inferbus_contracts.events.scaling import (
    ApplyOutcome,
    DecisionRecord,
    Limiter,
    ScalingAllocated,
    ScalingDemanded,
    TargetOption,
)
from inferbus_optimizer.core import decide, recompute
from inferbus_optimizer.events import Demanded, Origin, Woken, demanded
from inferbus_optimizer.facts import Facts
from inferbus_optimizer.outcomes import Allocate, ClearTimer, SetTimer
from inferbus_optimizer.state import SCHEMA, MixState
from services.optimizer.tests.builders import (
    A100,
    H100,
    POLICY,
    START_MS,
    T0,
    Mixer,
    demand,
    facts,
    option,
)

MINUTE_MS = 60_000


def test_a_demand_is_allocated() -> None:
    _, effects = decide(MixState(), Demanded(demand=demand(8.0)), facts(), T0)
    (effect,) = effects
    assert isinstance(effect, Allocate)
    assert effect.policy == POLICY
    told = [(a.target, a.uid, a.current, a.desired) for a in effect.data.allocations]
    assert told == [(H100, f"uid of {H100}", 0, 2), (A100, f"uid of {A100}", 1, 1)]
    assert (effect.data.cost, effect.data.optimal_cost) == (260, 260)


def test_the_same_demand_again_changes_nothing_at_all() -> None:
    mixer = Mixer(2, 1)
    mixer.demand(8.0)
    before = mixer.state
    mixer.demand(8.0)
    assert mixer.state is before
    assert len(mixer.allocations) == 1


def test_an_old_allocation_is_made_again() -> None:
    mixer = Mixer(2, 1)
    mixer.demand(8.0)
    mixer.advance(10 * MINUTE_MS)
    mixer.demand(8.0)
    assert len(mixer.allocations) == 2


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


def test_a_conflict_is_decided_again_against_the_newer_generation() -> None:
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


def test_a_kept_mix_is_switched_by_a_timer_when_that_pays() -> None:
    """T0: eight A100 at 480 instead of 260; two starts of a minute at 100, 200 % of them."""
    mixer = Mixer(0, 8)
    assert mixer.demand(8.0) == (0, 8)
    assert mixer.allocations[0].record.binding is Limiter.STABILISATION
    due_ms = T0 + -(-2 * 2 * 100 * START_MS // 220)
    assert mixer.timer_ms == due_ms
    mixer.advance(due_ms - T0 - 1)
    assert mixer.replicas == {H100: 0, A100: 8}
    mixer.advance(1)
    assert mixer.replicas == {H100: 2, A100: 1}
    assert mixer.timer_ms is None


def test_regret_is_carried_over_changes_of_the_demand() -> None:
    mixer = Mixer(0, 8)
    mixer.demand(8.0)
    first_ms = mixer.timer_ms
    mixer.advance(30_000)
    mixer.demand(7.9)
    assert mixer.timer_ms == first_ms


def test_a_timer_is_cleared_when_the_mix_has_become_optimal() -> None:
    mixer = Mixer(0, 8)
    mixer.demand(8.0)
    mixer.demand(1.0)
    assert mixer.replicas == {H100: 0, A100: 1}
    assert mixer.timer_ms is None


def test_a_timer_that_was_replaced_does_nothing() -> None:
    mixer = Mixer(0, 8)
    mixer.demand(8.0)
    before = mixer.state
    after, effects = decide(before, Woken(due_ms=T0 + 1), mixer.facts(), T0 + 1)
    assert after is before
    assert effects == ()


def test_the_timer_is_asked_for_with_the_allocation() -> None:
    _, effects = decide(MixState(), Demanded(demand=demand(8.0, a100=8)), facts(), T0)
    assert [type(effect) for effect in effects] == [Allocate, SetTimer]


def test_a_freeze_is_told_and_ends_with_its_end() -> None:
    mixer = Mixer(0, 5)
    mixer.changes = {"frozen": (H100,)}
    assert mixer.demand(8.0) == (0, 8)
    assert mixer.allocations[-1].record.binding is Limiter.FREEZE
    mixer.changes = {}
    assert mixer.demand(12.0) == (1, 8)


def test_upstream_s_blocks_on_request() -> None:
    compat = facts()
    assert compat.policy is not None
    compat = replace(compat, policy=replace(compat.policy, compat=True))
    _, effects = decide(MixState(), Demanded(demand=demand(8.0)), compat, T0)
    (effect,) = effects
    assert isinstance(effect, Allocate)
    assert [a.desired for a in effect.data.allocations] == [4, 4]


def test_without_a_policy_all_is_forgotten() -> None:
    mixer = Mixer(0, 8)
    mixer.demand(8.0)
    gone = Facts(policy=None)
    assert decide(mixer.state, Woken(due_ms=1), gone, T0) == (MixState(), (ClearTimer(),))
    assert decide(MixState(), Woken(due_ms=1), gone, T0) == (MixState(), ())


def test_another_policy_of_the_same_name_starts_afresh() -> None:
    mixer = Mixer(0, 8)
    mixer.demand(8.0)
    mixer.advance(30_000)
    other = mixer.facts()
    assert other.policy is not None
    other = replace(other, policy=replace(other.policy, uid="another"))
    event = Demanded(demand=demand(8.0, a100=8))
    after, _ = decide(mixer.state, event, other, mixer.now_ms)
    assert after.regret.since_ms == mixer.now_ms


def through_the_log(allocated: ScalingAllocated) -> DecisionRecord:
    """The record as another process reads it."""
    return ScalingAllocated.from_json(allocated.to_json()).record


@settings(max_examples=50)
@given(st.lists(st.tuples(st.floats(0, 30), st.integers(0, 120_000)), min_size=1, max_size=8))
def test_a_record_alone_gives_the_same_bytes(story: list[tuple[float, int]]) -> None:
    mixer = Mixer(1, 4)
    for capacity, pause_ms in story:
        mixer.demand(capacity)
        mixer.advance(pause_ms)
    assert mixer.allocations
    for allocated in mixer.allocations:
        assert recompute(through_the_log(allocated)) == allocated.to_json()


def test_a_record_says_who_decided_by_what_and_from_what() -> None:
    event = Demanded(demand=demand(8.0), sequence=12, causes=("one",))
    after, effects = decide(MixState(), event, facts(), T0)
    (effect,) = effects
    assert isinstance(effect, Allocate)
    record = effect.data.record
    assert (record.decider, record.policy, record.policy_digest) == (
        "optimizer",
        POLICY,
        "policy-digest",
    )
    assert (record.inbox_sequence, record.causes) == (12, ["one"])
    assert (record.state_before, record.state_after) == (MixState().digest(), after.digest())
    assert [step.name for step in record.limiters] == [Limiter.CAPACITY, Limiter.STABILISATION]


def test_a_record_of_another_decider_is_refused() -> None:
    record = DecisionRecord(
        decider="somebody", version="9", policy=POLICY, policy_digest="", input={"x": 1}
    )
    with pytest.raises(ProblemsError, match="none of this decider's"):
        recompute(record)


def test_an_input_that_gives_no_allocation_is_said_to_give_none() -> None:
    mixer = Mixer(2, 1)
    mixer.demand(8.0)
    record = through_the_log(mixer.allocations[0])
    given = record.input | {"state": mixer.state.to_dict()}
    with pytest.raises(ProblemsError, match="gives no allocation"):
        recompute(record.model_copy(update={"input": given}))


def test_a_record_of_a_large_mix_stays_below_16_kb() -> None:
    options = tuple(
        option(
            f"ModelServing/some-namespace/model-on-accelerator-{index:06d}",
            999_999,
            uid="0" * 36,
            generation=999_999,
            max_replicas=1_000_000,
            cost=2**31 - 1,
            capacity=1234.56789,
            schedulable=999_999,
            startup_ms=1_800_000,
        )
        for index in range(12)
    )
    state, _ = decide(MixState(), Demanded(demand=demand(10**10, options=options)), facts(), T0)
    fewer = tuple(replace(each, generation=1_000_000) for each in options)
    _, effects = decide(state, Demanded(demand=demand(9 * 10**9, options=fewer)), facts(), T0 + 1)
    (allocated,) = [effect.data for effect in effects if isinstance(effect, Allocate)]
    assert len(canonical_json(allocated.record.to_dict())) <= 16 * 1024


def test_a_state_survives_the_log() -> None:
    mixer = Mixer(0, 8)
    for capacity in [8.0, 3.0, 20.0, 90.0]:
        mixer.demand(capacity)
        again = MixState.from_dict(mixer.state.to_dict())
        assert again == mixer.state
        assert again.digest() == mixer.state.digest()


@pytest.mark.parametrize("schema", [SCHEMA + 1, SCHEMA - 2, None])
def test_a_state_of_an_unknown_layout_is_refused(schema: int | None) -> None:
    with pytest.raises(ProblemsError, match="layout"):
        MixState.from_dict({"schema": schema})


def test_a_state_of_the_layout_before_is_read() -> None:
    older = {"schema": SCHEMA - 1, "policy_uid": "policy", "gone": 1}
    assert MixState.from_dict(older) == MixState(policy_uid="policy")


def test_the_body_of_a_demand_becomes_its_event() -> None:
    record = DecisionRecord(
        decider="autoscaler", version="1", policy=POLICY, policy_digest="", input={}
    )
    data = ScalingDemanded(
        capacity=7.5,
        replicas=8,
        current=5,
        targets=[
            TargetOption(
                target=H100,
                uid="uid",
                generation=3,
                current=2,
                min_replicas=0,
                max_replicas=4,
                cost=100,
                schedulable=3,
            )
        ],
        record=record,
    )
    event = demanded(data, Origin(sequence=4, causes=("a",)))
    assert (event.sequence, event.causes) == (4, ("a",))
    assert (event.demand.capacity, event.demand.replicas, event.demand.rate_percent) == (
        7.5,
        8,
        200,
    )
    (only,) = event.demand.options
    assert (only.target, only.current, only.schedulable, only.capacity) == (H100, 2, 3, 1.0)
