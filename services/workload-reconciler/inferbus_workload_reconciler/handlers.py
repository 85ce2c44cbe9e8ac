"""Decisions become scale requests, or the reason why not; each is answered by scaling.applied."""

import asyncio
import logging

from inferbus_contracts.api.objects import ScaleReply, ScaleRequest
from inferbus_contracts.base import EventData
from inferbus_contracts.envelope import event_id
from inferbus_contracts.errors import ErrorCode, ProblemsError
from inferbus_contracts.events.control import ControlApproved
from inferbus_contracts.events.scaling import (
    ApplyOutcome,
    ScalingAllocated,
    ScalingApplied,
    ScalingDecided,
)
from inferbus_contracts.keys import ObjectKey
from inferbus_shared.bus.bus import Bus
from inferbus_shared.bus.fate import Reject, Retry
from inferbus_shared.bus.messages import Received
from inferbus_workload_reconciler.order_book import OrderBook
from inferbus_workload_reconciler.policy_guard import Guard
from inferbus_workload_reconciler.policy_scaling import (
    ScaleDecision,
    ScaleTarget,
    applied,
    decide_scale,
    decisions_in,
    read_target,
    superseded,
)
from inferbus_workload_reconciler.ports import Substrate
from inferbus_workload_reconciler.telemetry import ReconcilerMetrics

log = logging.getLogger("inferbus.workload-reconciler")

RETRY_SECONDS = 1.0

LONGEST_ORDER_DELAY_SECONDS = 0.9
"""How long a request may be under way after orders were looked at: they hold within a second."""


class DecisionHandler:
    """The only hand that turns a decision into replicas."""

    def __init__(
        self,
        bus: Bus,
        substrate: Substrate,
        orders: OrderBook,
        metrics: ReconcilerMetrics,
        guard: Guard | None = None,
    ) -> None:
        self._bus = bus
        self._substrate = substrate
        self._orders = orders
        self._metrics = metrics
        self._guard = guard or Guard(orders.policies)

    async def handle(self, event: Received[EventData], _: object) -> None:
        """One decision, or the approval of an earlier one."""
        if isinstance(event.data, ScalingDecided | ScalingAllocated):
            for decision in _decisions_in(event):
                await self._carry_out(event, decision)
        elif isinstance(event.data, ControlApproved):
            await self._approved(event, event.data)
        else:
            raise Reject(f"no rule for {event.envelope.type}")

    async def _approved(self, event: Received[EventData], order: ControlApproved) -> None:
        self._orders.take(event)
        last = await self._last_decision(event.key, order.policy)
        if last is not None and last.decision_id == order.decision_id:
            await self._carry_out(event, last)
            return
        target = await self._target(event.key)
        if target is not None:
            await self._answer(event, event.key, superseded(order.decision_id, last, target))

    async def _last_decision(self, target: ObjectKey, policy: str | None) -> ScaleDecision | None:
        """The last decision about a target; that of a mix stands under its policy."""
        if policy:
            last = await self._bus.last(ScalingAllocated.event_type, ObjectKey.parse(policy))
        else:
            last = await self._bus.last(ScalingDecided.event_type, target)
        found = _decisions_in(last) if last else ()
        return next((one for one in found if one.target == target), None)

    async def _carry_out(self, event: Received[EventData], decision: ScaleDecision) -> None:
        if event.deliveries > 1 and await self._is_answered(event, decision.target):
            return
        answer = await self._outcome(decision)
        for _ in decision.companions:
            if answer.outcome is ApplyOutcome.CONFLICT:  # perhaps a companion, at this very moment
                answer = await self._outcome(decision)
        if answer.outcome not in (ApplyOutcome.APPLIED, ApplyOutcome.UNCHANGED):
            log.info(
                "decision not applied",
                extra={"target": decision.target, "outcome": answer.outcome.value},
            )
        await self._answer(event, decision.target, answer)

    async def _outcome(self, decision: ScaleDecision) -> ScalingApplied:
        """What becomes of a decision about the target as it stands; raises `Retry`."""
        target = await self._target(decision.target)
        wanted = self._wanted(decision, target)
        if isinstance(wanted, ScaleRequest) or wanted.outcome is ApplyOutcome.FROZEN:
            await self._orders.confirm(decision.target)
            wanted = self._wanted(decision, target)
        if isinstance(wanted, ScalingApplied):
            return wanted
        assert target is not None
        return applied(decision, target, await self._scale(decision, wanted))

    def _wanted(
        self, decision: ScaleDecision, target: ScaleTarget | None
    ) -> ScaleRequest | ScalingApplied:
        return decide_scale(
            decision,
            target,
            self._orders.orders,
            self._bus.clock.now_ms(),
            policies=self._orders.policies_of(decision.target),
            together=self._orders.decided_with(decision.target),
            refusal=self._guard.refusal(decision, target) if target else "",
        )

    async def _scale(self, decision: ScaleDecision, request: ScaleRequest) -> ScaleReply:
        """Ask once, and only as long as an order may be late: then orders are looked at anew."""
        self._guard.grant(decision)
        try:
            async with asyncio.timeout(LONGEST_ORDER_DELAY_SECONDS):
                reply = await self._substrate.scale(request)
        except TimeoutError as error:
            self._guard.withdraw(decision)
            raise Retry(RETRY_SECONDS, f"{request.key} could not be scaled in time") from error
        if reply.problems:
            self._guard.withdraw(decision)
        if any(problem.code in _TRANSIENT for problem in reply.problems):
            raise Retry(RETRY_SECONDS, str(reply.problems[0]))
        return reply

    async def _answer(
        self, event: Received[EventData], target: ObjectKey, answer: ScalingApplied
    ) -> None:
        # The outcome is left out: handled a second time, an applied decision looks unchanged.
        id_ = event_id(ScalingApplied.event_type, target, f"{answer.decision_id}|{event.id}")
        await self._bus.publish(self._bus.event(answer, target, id=id_, cause=event))
        self._metrics.answered(answer.outcome, self._bus.clock.now_ms() - event.time_ms)

    async def _is_answered(self, event: Received[EventData], target: ObjectKey) -> bool:
        """Whether only the acknowledgement was lost; the server forgets ids after two minutes."""
        last = await self._bus.last(ScalingApplied.event_type, target)
        return last is not None and last.envelope.causation_id == event.id

    async def _target(self, key: ObjectKey) -> ScaleTarget | None:
        try:
            document = await self._substrate.target(key)
        except ProblemsError as error:
            raise Retry(RETRY_SECONDS, str(error)) from error
        return None if document is None else read_target(document, key)


def _decisions_in(event: Received[EventData]) -> tuple[ScaleDecision, ...]:
    return decisions_in(event.id, event.key, event.data, event.envelope.causation_id)


_TRANSIENT = frozenset(
    {
        ErrorCode.BUS_TIMEOUT,
        ErrorCode.BUS_UNREACHABLE,
        ErrorCode.BUS_REFUSED,
        ErrorCode.BUS_FULL,
        ErrorCode.KUBE_UNREACHABLE,
        ErrorCode.KUBE_THROTTLED,
        ErrorCode.KUBE_FAILED,
    }
)
