"""What deciders want of a target: the newest counts, whatever the order of arrival."""

from hypothesis import given
from hypothesis import strategies as st

from inferbus_contracts.base import EventData
from inferbus_contracts.events.scaling import (
    Allocation,
    ApplyOutcome,
    DecisionRecord,
    Mode,
    ScalingAllocated,
    ScalingApplied,
    ScalingDecided,
)
from inferbus_contracts.keys import ObjectKey
from inferbus_spec_watcher.status.decisions import Decisions

CHAT = ObjectKey("ModelServing", "default", "chat")
MIX = ObjectKey("AutoscalingPolicyBinding", "default", "mix")
RECORD = DecisionRecord(decider="d", version="1", policy="p", policy_digest="d", input={})


def decided(desired: int) -> ScalingDecided:
    return ScalingDecided(
        current=1, desired=desired, target_uid="u", target_generation=1, record=RECORD
    )


def allocated(desired: int) -> ScalingAllocated:
    share = Allocation(target=str(CHAT), uid="u", generation=1, current=1, desired=desired)
    return ScalingAllocated(allocations=[share], cost=1, optimal_cost=1, record=RECORD)


def applied(outcome: ApplyOutcome) -> ScalingApplied:
    return ScalingApplied(decision_id="d", outcome=outcome, replicas=2, generation=2, uid="u")


def wanted_after(*events: tuple[ObjectKey, EventData, int]) -> tuple[int, Mode | None]:
    decisions = Decisions()
    for event in events:
        decisions.take(*event)
    wanted = decisions.wanted(CHAT)
    assert wanted is not None
    return wanted.replicas, wanted.mode


@given(st.permutations([(CHAT, decided(2), 1), (MIX, allocated(5), 2), (CHAT, decided(3), 3)]))
def test_the_newest_counts(events: list[tuple[ObjectKey, EventData, int]]) -> None:
    assert wanted_after(*events) == (3, Mode.STABLE)


def test_of_one_moment_the_later_counts() -> None:
    assert wanted_after((CHAT, decided(2), 1), (MIX, allocated(5), 1)) == (5, None)


def test_only_what_is_news_is_told() -> None:
    decisions = Decisions()
    assert decisions.take(MIX, allocated(5), 2) == [CHAT]
    assert decisions.take(CHAT, decided(2), 1) == []


def test_roles_of_a_workload_are_targets_of_their_own() -> None:
    decisions = Decisions()
    role = CHAT._replace(role="decode")
    assert decisions.take(role, decided(4), 1) == [role]
    assert decisions.wanted(CHAT) is None


def test_only_what_was_applied_changed_the_target() -> None:
    decisions = Decisions()
    for outcome in set(ApplyOutcome) - {ApplyOutcome.APPLIED}:
        assert decisions.take(CHAT, applied(outcome), 1) == [CHAT]
        assert decisions.take(CHAT, applied(outcome), 2) == [], "the same answer is no news"
    assert decisions.scaled(CHAT) is None
    assert decisions.take(CHAT, applied(ApplyOutcome.APPLIED), 7) == [CHAT]
    scaled = decisions.scaled(CHAT)
    assert scaled is not None
    assert (scaled.uid, scaled.at_ms) == ("u", 7)
