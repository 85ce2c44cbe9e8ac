"""Records and stored state: they explain, stay small, and give the same bytes again."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inferbus_contracts.canonical import canonical_json
from inferbus_contracts.deciding import Origin
from inferbus_contracts.errors import ProblemsError
from inferbus_contracts.events.scaling import (
    DecisionRecord,
    Limiter,
    ScalingAllocated,
    ScalingDemanded,
    TargetOption,
)
from inferbus_optimizer.core import decide, recompute
from inferbus_optimizer.events import Demanded, demanded
from inferbus_optimizer.outcomes import Allocate
from inferbus_optimizer.state import SCHEMA, MixState
from services.optimizer.tests.builders import H100, POLICY, T0, Mixer, demand, facts, option


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
    with pytest.raises(ProblemsError, match="gives no decision"):
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
