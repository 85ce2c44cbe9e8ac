"""What is told of actions that failed, and how often Events are told."""

import pytest
from workload_builders import serving
from workload_world import World

from inferbus_contracts.events.workload import Outcome
from inferbus_workload_reconciler.actions import (
    Action,
    ChildKind,
    Create,
    Delete,
    EventReason,
    Motive,
    Reason,
)
from inferbus_workload_reconciler.policy_event_budget import BURST, REFILL_MS, EventBudget
from inferbus_workload_reconciler.policy_refusals import (
    LONGEST_MESSAGE,
    failure_condition,
    failure_events,
)
from inferbus_workload_reconciler.ports import ActionResult, Done

MOTIVE = Motive(Reason.SCALE_UP, "more")


def create(name: str) -> Action:
    return Create(child=ChildKind.POD, manifest={"metadata": {"name": name}}, motive=MOTIVE)


def done(action: Action, outcome: Outcome, error: str = "") -> Done:
    return Done(action, ActionResult(outcome=outcome, error=error))


def test_nothing_is_told_where_all_went_well() -> None:
    well = [done(create("a"), Outcome.DONE), done(create("b"), Outcome.ALREADY)]
    assert failure_condition(well) == ()
    assert failure_events(well) == ()


def test_a_failure_is_told_in_the_server_s_words() -> None:
    failed = [
        done(create("b"), Outcome.FAILED, "no image"),
        done(create("a"), Outcome.FAILED, "no image"),
        done(create("c"), Outcome.DONE),
    ]
    (told,) = failure_condition(failed)
    assert (told.type, told.reason) == ("ActionFailed", "FailedCreate")
    assert told.message == "Pod a: no image; 1 more failed"
    assert failure_condition(reversed(failed)) == (told,)
    events = failure_events(failed)
    assert [event.message for event in events] == ["Pod a: no image", "Pod b: no image"]
    assert all(event.reason.is_warning for event in events)


def test_ms_t56_a_name_that_is_taken_is_told_as_such() -> None:
    (told,) = failure_condition([done(create("a"), Outcome.CONFLICT, "held by x")])
    assert told.reason == "NameTaken"


def test_ms_t57_a_deletion_that_failed_is_told() -> None:
    delete = Delete(child=ChildKind.POD, name="a", uid="u", motive=MOTIVE)
    (told,) = failure_condition([done(delete, Outcome.CONFLICT, "another uid")])
    assert told.reason == EventReason.FAILED_DELETE


def test_a_message_is_as_long_as_an_event_s_may_be() -> None:
    failed = [done(create(name), Outcome.FAILED, "x" * 2000) for name in ("a", "b")]
    (told,) = failure_condition(failed)
    assert len(told.message) == LONGEST_MESSAGE
    assert told.message.endswith("; 1 more failed")


def test_events_of_role_replicas_are_no_warnings() -> None:
    world = World(serving(1))
    world.settle()
    assert world.events
    assert not any(EventReason(reason).is_warning for reason in world.events)


@pytest.mark.parametrize("uid", ["a", "b"])
def test_an_object_tells_a_burst_and_then_one_at_a_time(uid: str) -> None:
    budget = EventBudget()
    assert all(budget.take(uid, "RoleCreating", 0) for _ in range(BURST))
    assert not budget.take(uid, "RoleCreating", 0)
    assert budget.take(uid, "RoleRunning", 0), "each reason has a budget of its own"
    assert budget.take("other", "RoleCreating", 0)
    assert not budget.take(uid, "RoleCreating", REFILL_MS - 1)
    assert budget.take(uid, "RoleCreating", REFILL_MS + 1)
    assert not budget.take(uid, "RoleCreating", REFILL_MS + 2)
