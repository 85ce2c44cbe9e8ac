"""Recorded decisions, computed again by the deciders that are installed."""

from typing import Any

import pytest

from inferbus_cli.deciders import installed_deciders
from inferbus_cli.verify import MOST_DIFFERENCES, verify
from inferbus_contracts.canonical import canonical_json
from inferbus_contracts.errors import ErrorCode, Problem, ProblemsError
from inferbus_contracts.events.scaling import DecisionRecord, ScalingAllocated, ScalingDecided
from services.autoscaler.tests.builders import WEBHOOK_DEFAULTS, Fleet, policy
from services.optimizer.tests.builders import Mixer

DECIDERS = installed_deciders()


def scaled() -> list[ScalingDecided]:
    """Decisions through a rise, a fall and a missing sample."""
    fleet = Fleet(2, policy(behaviour=WEBHOOK_DEFAULTS))
    fleet.run([20, 90, 200, None, 40, 5, 5, 5])
    return fleet.decisions


def allocated() -> list[ScalingAllocated]:
    mixer = Mixer(0, 1)
    for capacity in (1.0, 9.0, 2.0):
        mixer.demand(capacity)
        mixer.advance(600_000)
    return mixer.allocations


def changed(decision: ScalingDecided, **changes: Any) -> bytes:
    return canonical_json({**decision.to_dict(), **changes})


def test_every_decider_can_be_found() -> None:
    assert set(DECIDERS) == {"autoscaler", "optimizer"}


@pytest.mark.parametrize("decisions", [scaled(), allocated()], ids=["autoscaler", "optimizer"])
def test_what_the_cores_decided_comes_out_the_same(
    decisions: list[ScalingDecided | ScalingAllocated],
) -> None:
    assert len(decisions) > 1
    for decision in decisions:
        assert verify(decision.to_json(), decision.record, DECIDERS).identical


def test_a_changed_number_is_found_with_its_field() -> None:
    decision = scaled()[0]
    verdict = verify(changed(decision, desired=decision.desired + 1), decision.record, DECIDERS)
    assert not verdict.identical
    (difference,) = verdict.differences
    assert difference.field == "desired"
    assert (difference.recorded, difference.recomputed) == (decision.desired + 1, decision.desired)


def test_a_changed_input_is_found() -> None:
    decision = scaled()[0]
    data = decision.record.to_dict()
    data["input"]["facts"]["policy"]["tolerance_percent"] = 90
    record = DecisionRecord.model_validate(data)
    body = decision.model_copy(update={"record": record}).to_json()
    verdict = verify(body, record, DECIDERS)
    assert not verdict.identical
    assert 0 < len(verdict.differences) <= MOST_DIFFERENCES


def test_a_single_byte_counts() -> None:
    decision = scaled()[0]
    verdict = verify(decision.to_json() + b" ", decision.record, DECIDERS)
    assert not verdict.identical


def test_one_and_one_point_zero_are_different_bytes() -> None:
    decision = scaled()[0]
    verdict = verify(changed(decision, current=float(decision.current)), decision.record, DECIDERS)
    assert [one.field for one in verdict.differences] == ["current"]


def test_an_unknown_decider_is_told() -> None:
    decision = scaled()[0]
    verdict = verify(decision.to_json(), decision.record, {})
    assert "autoscaler" in verdict.reason


def test_a_record_of_other_rules_is_told_with_its_version() -> None:
    def refuse(_: DecisionRecord) -> bytes:
        raise ProblemsError(Problem(code=ErrorCode.RULE_BROKEN, message="not mine"))

    decision = scaled()[0]
    verdict = verify(decision.to_json(), decision.record, {"autoscaler": refuse})
    assert f"version {decision.record.version} of autoscaler" in verdict.reason
    assert "not mine" in verdict.reason
    assert not verdict.identical
