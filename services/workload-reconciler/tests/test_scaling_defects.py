"""Defects of the reference in applying decisions (autoscaling spec 7, D23 and 4.1, 4.2).

Shown in the other direction by the mutants of `workload_mutants`.
"""

from dataclasses import replace

from test_scaling import DECISION, NOW_MS, STORED

from inferbus_contracts.api.objects import ScaleReply, ScaleRequest
from inferbus_contracts.errors import ErrorCode, Problem
from inferbus_contracts.events.scaling import ApplyOutcome, ScalingApplied
from inferbus_contracts.orders import Orders
from inferbus_workload_reconciler.policy_scaling import applied, decide_scale


def test_as_d23_a_request_holds_only_for_the_object_that_was_looked_at() -> None:
    """Upstream patches without a precondition: the last writer wins, whoever it is."""
    request = decide_scale(DECISION, STORED, Orders(), NOW_MS)
    assert isinstance(request, ScaleRequest)
    assert request.preconditions.uid == DECISION.uid
    assert request.preconditions.generation == DECISION.generation


def test_as_d23_what_somebody_changed_since_is_reported_and_not_written_over() -> None:
    """By hand, by KEDA or by another policy: a newer generation is a conflict."""
    edited = replace(STORED, generation=STORED.generation + 1, replicas=7)
    answer = decide_scale(DECISION, edited, Orders(), NOW_MS)
    assert isinstance(answer, ScalingApplied)
    assert (answer.outcome, answer.replicas) == (ApplyOutcome.CONFLICT, 7)
    assert "generation" in answer.message


def test_as_d23_a_change_in_the_same_moment_is_reported_too() -> None:
    refused = ScaleReply(problems=[Problem(code=ErrorCode.CONFLICT, message="generation 4, not 3")])
    answer = applied(DECISION, STORED, refused)
    assert answer.outcome is ApplyOutcome.CONFLICT
    assert "generation 4, not 3" in answer.message
