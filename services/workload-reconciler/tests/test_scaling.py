"""What becomes of scaling decisions (DESIGN sections 4 and 6)."""

from dataclasses import replace
from typing import Any

import pytest
from workload_builders import role, serving

from inferbus_contracts.api.objects import ScaleReply, ScaleRequest
from inferbus_contracts.envelope import event_id
from inferbus_contracts.errors import ErrorCode, Problem
from inferbus_contracts.events.control import ControlApproved, ControlFrozen, Order
from inferbus_contracts.events.scaling import (
    Allocation,
    ApplyOutcome,
    DecisionRecord,
    ScalingAllocated,
    ScalingApplied,
    ScalingDecided,
)
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.orders import Orders
from inferbus_contracts.resources.annotations import DECISION_ID
from inferbus_workload_reconciler.policy_scaling import (
    ScaleDecision,
    ScaleTarget,
    applied,
    decide_scale,
    from_allocated,
    from_decided,
    read_target,
)

TARGET = ObjectKey("ModelServing", "prod", "chat")
ROLE = TARGET._replace(role="decode")
NONE = Orders()
NOW_MS = 1_000_000

DECISION = ScaleDecision(
    decision_id="d1", target=TARGET, replicas=5, uid="u1", generation=3, apply="auto"
)
STORED = ScaleTarget(uid="u1", generation=3, replicas=2)


def freeze(until_ms: int | None = None) -> ControlFrozen:
    return ControlFrozen(who="kim", why="incident", until_ms=until_ms)


def approve(decision_id: str = "d1", until_ms: int | None = None) -> ControlApproved:
    return ControlApproved(who="kim", why="ok", until_ms=until_ms, decision_id=decision_id)


def orders_of(*orders: tuple[ObjectKey, Order]) -> Orders:
    folded = Orders()
    for scope, order in orders:
        folded.take(scope, order, NOW_MS - 1)
    return folded


def outcome(
    decision: ScaleDecision = DECISION,
    stored: ScaleTarget | None = STORED,
    orders: Orders = NONE,
) -> ScalingApplied:
    result = decide_scale(decision, stored, orders, NOW_MS)
    assert isinstance(result, ScalingApplied)
    return result


def test_a_decision_becomes_a_request_for_the_object_it_was_computed_from() -> None:
    request = decide_scale(DECISION, STORED, NONE, NOW_MS)
    assert isinstance(request, ScaleRequest)
    assert (request.key, request.replicas) == ("ModelServing/prod/chat", 5)
    assert request.decision_id == "d1"
    assert (request.preconditions.uid, request.preconditions.generation) == ("u1", 3)


def test_a_role_is_scaled_by_its_own_key() -> None:
    request = decide_scale(replace(DECISION, target=ROLE), STORED, NONE, NOW_MS)
    assert isinstance(request, ScaleRequest)
    assert request.key == "ModelServing/prod/chat/decode"


@pytest.mark.parametrize(
    ("change", "stored", "expected"),
    [
        ({}, None, ApplyOutcome.FAILED),
        ({}, replace(STORED, replicas=None), ApplyOutcome.FAILED),
        ({"uid": "u0"}, STORED, ApplyOutcome.CONFLICT),
        ({"generation": 2}, STORED, ApplyOutcome.CONFLICT),
        ({"generation": 4}, STORED, ApplyOutcome.CONFLICT),
        ({"apply": "advise"}, STORED, ApplyOutcome.ADVISED),
        ({"apply": "advise", "generation": 2}, STORED, ApplyOutcome.ADVISED),
        ({"apply": "approve"}, STORED, ApplyOutcome.AWAITING_APPROVAL),
        ({"replicas": 2}, STORED, ApplyOutcome.UNCHANGED),
        ({"replicas": 2, "generation": 2}, STORED, ApplyOutcome.UNCHANGED),
        ({"replicas": 2, "apply": "approve"}, STORED, ApplyOutcome.UNCHANGED),
        ({"replicas": 2, "uid": "u0"}, STORED, ApplyOutcome.CONFLICT),
    ],
)
def test_decisions_that_are_not_carried_out(
    change: dict[str, Any], stored: ScaleTarget | None, expected: ApplyOutcome
) -> None:
    told = outcome(replace(DECISION, **change), stored)
    assert told.outcome is expected
    assert told.decision_id == "d1"
    if stored is not None and stored.replicas is not None:
        assert (told.replicas, told.generation, told.uid) == (2, 3, "u1")


@pytest.mark.parametrize(
    ("generation", "last", "holds"),
    [(3, "", True), (4, "other", True), (4, "d0", False), (5, "other", False), (2, "other", False)],
)
def test_a_role_is_scaled_though_the_decision_about_the_other_was_carried_out_before(
    generation: int, last: str, holds: bool
) -> None:
    """And though nothing else was: a user's change in between is a conflict as ever."""
    decision = replace(DECISION, target=ROLE, companions=frozenset({"other"}))
    stored = replace(STORED, generation=generation, decision_id=last)
    result = decide_scale(decision, stored, NONE, NOW_MS)
    assert isinstance(result, ScaleRequest) is holds
    if isinstance(result, ScaleRequest):
        assert result.preconditions.generation == generation
    else:
        assert result.outcome is ApplyOutcome.CONFLICT


def test_decisions_of_one_cause_know_each_other_by_id() -> None:
    record = DecisionRecord(decider="d", version="1", policy="p", policy_digest="", input={})
    event = ScalingDecided(
        current=1,
        desired=2,
        target_uid="u1",
        target_generation=3,
        companions=[str(ROLE)],
        record=record,
    )
    decision = from_decided("d1", TARGET._replace(role="prefill"), event, "sample-1")
    assert decision.companions == {event_id("scaling.decided", ROLE, "sample-1")}


@pytest.mark.parametrize(
    ("scope", "holds"),
    [
        ("ModelServing/prod/chat", True),
        ("Namespace/_/prod", True),
        ("Platform/_/all", True),
        ("ModelServing/prod/chat/decode", False),
        ("ModelServing/prod/other", False),
        ("Namespace/_/dev", False),
    ],
)
def test_an_order_holds_everything_in_its_scope(scope: str, holds: bool) -> None:
    orders = orders_of((ObjectKey.parse(scope), freeze()))
    result = decide_scale(DECISION, STORED, orders, NOW_MS)
    assert isinstance(result, ScaleRequest) is not holds
    if isinstance(result, ScalingApplied):
        assert result.outcome is ApplyOutcome.FROZEN
        assert "kim" in result.message
        assert scope in result.message


def test_freezing_a_whole_object_holds_its_roles() -> None:
    orders = orders_of((TARGET, freeze()))
    assert outcome(replace(DECISION, target=ROLE), orders=orders).outcome is ApplyOutcome.FROZEN


@pytest.mark.parametrize(("until_ms", "holds"), [(NOW_MS + 1, True), (NOW_MS, False)])
def test_an_order_ends_when_it_said_so(until_ms: int, holds: bool) -> None:
    orders = orders_of((TARGET, freeze(until_ms)))
    assert isinstance(decide_scale(DECISION, STORED, orders, NOW_MS), ScalingApplied) is holds


def test_an_advised_or_unchanged_number_is_told_as_such_even_when_frozen() -> None:
    orders = orders_of((TARGET, freeze()))
    advised = outcome(replace(DECISION, apply="advise"), orders=orders)
    unchanged = outcome(replace(DECISION, replicas=2), orders=orders)
    assert advised.outcome is ApplyOutcome.ADVISED
    assert unchanged.outcome is ApplyOutcome.UNCHANGED


@pytest.mark.parametrize(
    ("approval", "goes"),
    [
        (approve(), True),
        (approve("d0"), False),
        (approve(until_ms=NOW_MS), False),
        (approve(until_ms=NOW_MS + 1), True),
    ],
)
def test_a_decision_that_needs_approval_waits_for_its_own(
    approval: ControlApproved, goes: bool
) -> None:
    decision = replace(DECISION, apply="approve")
    result = decide_scale(decision, STORED, orders_of((TARGET, approval)), NOW_MS)
    assert isinstance(result, ScaleRequest) is goes


def test_an_approved_decision_is_still_stale_when_the_object_changed() -> None:
    decision = replace(DECISION, apply="approve", generation=2)
    orders = orders_of((TARGET, approve()))
    assert outcome(decision, orders=orders).outcome is ApplyOutcome.CONFLICT


def record() -> DecisionRecord:
    return DecisionRecord(decider="a", version="1", policy="p", policy_digest="d", input={})


def test_decisions_of_both_deciders_read_alike() -> None:
    decided = ScalingDecided(
        current=2, desired=5, target_uid="u1", target_generation=3, record=record()
    )
    share = Allocation(target=str(TARGET), uid="u1", generation=3, current=2, desired=5)
    allocated = ScalingAllocated(allocations=[share], cost=1, optimal_cost=1, record=record())
    assert from_decided("d1", TARGET, decided) == DECISION
    assert list(from_allocated("d1", allocated)) == [DECISION]


def test_a_number_that_the_decision_itself_gave_was_applied() -> None:
    given = replace(STORED, replicas=DECISION.replicas, decision_id=DECISION.decision_id)
    assert outcome(DECISION, given).outcome is ApplyOutcome.APPLIED
    other = replace(given, decision_id="another")
    assert outcome(DECISION, other).outcome is ApplyOutcome.UNCHANGED


def test_targets_are_read_from_the_stored_object() -> None:
    document = serving(4, [role("decode", replicas=3)], uid="u1", generation=9)
    assert read_target(document, TARGET) == ScaleTarget(uid="u1", generation=9, replicas=4)
    assert read_target(document, ROLE) == ScaleTarget(uid="u1", generation=9, replicas=3)
    assert read_target(document, TARGET._replace(role="none")).replicas is None
    document["metadata"]["annotations"] = {DECISION_ID: "d1"}
    assert read_target(document, TARGET).decision_id == "d1"


@pytest.mark.parametrize(
    ("reply", "expected", "replicas"),
    [
        (ScaleReply(changed=True, replicas=5, uid="u1", generation=4), ApplyOutcome.APPLIED, 5),
        (ScaleReply(changed=False, replicas=5, uid="u1", generation=4), ApplyOutcome.UNCHANGED, 5),
        (
            ScaleReply(problems=[Problem(code=ErrorCode.CONFLICT, message="changed")]),
            ApplyOutcome.CONFLICT,
            2,
        ),
        (
            ScaleReply(problems=[Problem(code=ErrorCode.NOT_FOUND, message="gone")]),
            ApplyOutcome.FAILED,
            2,
        ),
    ],
)
def test_the_answer_to_a_request_is_told(
    reply: ScaleReply, expected: ApplyOutcome, replicas: int
) -> None:
    told = applied(DECISION, STORED, reply)
    assert (told.outcome, told.replicas, told.decision_id) == (expected, replicas, "d1")
    if reply.problems:
        assert reply.problems[0].message in told.message
