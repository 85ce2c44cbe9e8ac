"""Which orders make sense: freeze and thaw a scope, approve a decision that waits for it.

Pure: what is known is handed in; a refusal says what would do.
"""

from inferbus_console.decisions import Decision
from inferbus_contracts.api.console import OrderRequest, OrderVerb
from inferbus_contracts.envelope import LATEST_TIME_MS
from inferbus_contracts.errors import ErrorCode, Problem, ProblemsError
from inferbus_contracts.events.control import ControlApproved, ControlFrozen, ControlThawed, Order
from inferbus_contracts.events.scaling import ScalingAllocated

NEEDS_APPROVAL = "approve"


def order_of(
    request: OrderRequest, decision: Decision | None, now_ms: int, newest: Decision | None = None
) -> Order:
    """The body of the `control.*` event that a request becomes.

    `decision` is the one to approve, None for other verbs; `newest` is the last one under its key;
    `now_ms` is virtual time. Raises `ProblemsError` when nobody or no reason is named, the end has
    passed, nothing is to approve, or what is was superseded.
    """
    _check(request, now_ms)
    said = {"who": request.who, "why": request.why, "until_ms": request.until_ms}
    if request.verb is OrderVerb.FREEZE:
        return ControlFrozen(**said)
    if request.verb is OrderVerb.THAW:
        return ControlThawed(**said)
    if decision is None:
        raise ProblemsError(_nothing_to_approve(request))
    if decision.data.apply != NEEDS_APPROVAL:
        raise ProblemsError(_needs_none(request, decision))
    if newest is not None and newest.sequence > decision.sequence:
        raise ProblemsError(_superseded(request, decision, newest))
    policy = str(decision.key) if isinstance(decision.data, ScalingAllocated) else None
    return ControlApproved(**said, decision_id=decision.id, policy=policy)


def _check(request: OrderRequest, now_ms: int) -> None:
    problems = [
        Problem(
            code=ErrorCode.MISSING_FIELD,
            message=f"an order says {what}",
            field=field,
            remedy=f"name {what} with --{field}",
        )
        for field, what in (("who", "who gives it"), ("why", "why it is given"))
        if not getattr(request, field).strip()
    ]
    if request.until_ms is not None and request.until_ms > LATEST_TIME_MS:
        problems.append(
            Problem(
                code=ErrorCode.VALUE_OUT_OF_RANGE,
                message="the order would end after the year 9999",
                field="untilMs",
                value=request.until_ms,
                remedy="name an earlier end, or none",
            )
        )
    if request.until_ms is not None and request.until_ms <= now_ms:
        problems.append(
            Problem(
                code=ErrorCode.VALUE_OUT_OF_RANGE,
                message="the order would be over already",
                field="untilMs",
                value=request.until_ms,
                remedy="name a time to come, or none",
            )
        )
    if problems:
        raise ProblemsError(*problems)


def _nothing_to_approve(request: OrderRequest) -> Problem:
    return Problem(
        code=ErrorCode.NOT_FOUND,
        message="there is no such decision about this target",
        object=request.scope,
        field="decisionId",
        value=request.decision_id,
        remedy=f"`inferbus why {request.scope}` shows the last one with its id",
    )


def _superseded(request: OrderRequest, decision: Decision, newest: Decision) -> Problem:
    return Problem(
        code=ErrorCode.CONFLICT,
        message=f"the decision was superseded by {newest.id}",
        object=request.scope,
        field="decisionId",
        value=decision.id,
        remedy=f"`inferbus why {request.scope}` shows what is wanted now; approve that",
    )


def _needs_none(request: OrderRequest, decision: Decision) -> Problem:
    return Problem(
        code=ErrorCode.RULE_BROKEN,
        message=f"the decision needs no approval: its policy's mode is {decision.data.apply}",
        object=request.scope,
        field="decisionId",
        value=decision.id,
        remedy="annotate the policy with inferbus.dev/mode=approve to be asked",
    )
