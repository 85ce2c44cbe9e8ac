"""Which orders make sense."""

import pytest

from inferbus_console.policy_orders import order_of
from inferbus_contracts.api.console import OrderRequest, OrderVerb
from inferbus_contracts.envelope import LATEST_TIME_MS
from inferbus_contracts.errors import ErrorCode, ProblemsError
from inferbus_contracts.events.control import ControlApproved, ControlFrozen, ControlThawed
from services.console.tests.console_builders import MIX, TARGET, allocated, decided, decision

NOW_MS = 1000
WAITING = decision(decided(apply="approve"), TARGET, 7)


def request(verb: OrderVerb, **changes: object) -> OrderRequest:
    given = {"verb": verb, "scope": str(TARGET), "who": "ada", "why": "a test"} | changes
    return OrderRequest.model_validate(given)


def refusal(asked: OrderRequest, waiting: object = None) -> tuple[ErrorCode, str | None, str]:
    with pytest.raises(ProblemsError) as told:
        order_of(asked, waiting, NOW_MS)  # type: ignore[arg-type]
    problem = told.value.problems[0]
    assert problem.remedy
    return problem.code, problem.field, problem.message


def test_each_verb_becomes_its_event() -> None:
    frozen = order_of(request(OrderVerb.FREEZE, until_ms=NOW_MS + 1), None, NOW_MS)
    assert isinstance(frozen, ControlFrozen)
    assert (frozen.who, frozen.why, frozen.until_ms) == ("ada", "a test", NOW_MS + 1)
    assert isinstance(order_of(request(OrderVerb.THAW), None, NOW_MS), ControlThawed)
    approved = order_of(request(OrderVerb.APPROVE), WAITING, NOW_MS)
    assert isinstance(approved, ControlApproved)
    assert approved.decision_id == WAITING.id


@pytest.mark.parametrize("field", ["who", "why"])
def test_an_order_says_who_and_why(field: str) -> None:
    code, told, _ = refusal(request(OrderVerb.FREEZE, **{field: "  "}))
    assert (code, told) == (ErrorCode.MISSING_FIELD, field)


def test_an_order_that_is_over_already_is_refused() -> None:
    code, field, _ = refusal(request(OrderVerb.FREEZE, until_ms=NOW_MS))
    assert (code, field) == (ErrorCode.VALUE_OUT_OF_RANGE, "untilMs")


def test_an_order_ends_at_a_time_that_can_be_told() -> None:
    code, field, message = refusal(request(OrderVerb.FREEZE, until_ms=LATEST_TIME_MS + 1))
    assert (code, field) == (ErrorCode.VALUE_OUT_OF_RANGE, "untilMs")
    assert "9999" in message


def test_only_a_decision_that_waits_can_be_approved() -> None:
    assert refusal(request(OrderVerb.APPROVE))[0] is ErrorCode.NOT_FOUND
    automatic = decision(decided(apply="auto"), TARGET, 7)
    code, _, message = refusal(request(OrderVerb.APPROVE), automatic)
    assert code is ErrorCode.RULE_BROKEN
    assert "mode is auto" in message


def test_the_approval_of_a_mix_says_under_which_policy_it_stands() -> None:
    mix = decision(allocated({TARGET: (1, 2)}, apply="approve"), MIX, 8)
    approved = order_of(request(OrderVerb.APPROVE), mix, NOW_MS)
    assert isinstance(approved, ControlApproved)
    assert (approved.decision_id, approved.policy) == (mix.id, str(MIX))
    single = order_of(request(OrderVerb.APPROVE), WAITING, NOW_MS, WAITING)
    assert isinstance(single, ControlApproved)
    assert single.policy is None


def test_a_decision_that_was_superseded_is_not_approved() -> None:
    newer = decision(decided(desired=9, apply="approve"), TARGET, 8)
    with pytest.raises(ProblemsError) as told:
        order_of(request(OrderVerb.APPROVE), WAITING, NOW_MS, newer)
    (problem,) = told.value.problems
    assert (problem.code, problem.value) == (ErrorCode.CONFLICT, WAITING.id)
    assert newer.id in problem.message
    assert "inferbus why" in problem.remedy
