"""Decisions become scale requests, or the reason why not; each is answered by scaling.applied."""

import logging

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
from inferbus_contracts.orders import Orders
from inferbus_shared.bus.bus import Bus
from inferbus_shared.bus.fate import Reject, Retry
from inferbus_shared.bus.messages import Received
from inferbus_shared.objects.client import ObjectClient
from inferbus_workload_reconciler.policy_scaling import (
    ScaleDecision,
    ScaleTarget,
    applied,
    decide_scale,
    from_allocated,
    from_decided,
    read_target,
)
from inferbus_workload_reconciler.ports import Substrate

log = logging.getLogger("inferbus.workload-reconciler")

RETRY_SECONDS = 1.0


class DecisionHandler:
    """The only hand that turns a decision into replicas."""

    def __init__(
        self, bus: Bus, substrate: Substrate, client: ObjectClient, orders: Orders
    ) -> None:
        self._bus = bus
        self._substrate = substrate
        self._client = client
        self._orders = orders

    async def handle(self, event: Received[EventData], _: object) -> None:
        """One decision, or the approval of an earlier one."""
        if isinstance(event.data, ScalingDecided):
            cause = event.envelope.causation_id
            await self._carry_out(event, from_decided(event.id, event.key, event.data, cause))
        elif isinstance(event.data, ScalingAllocated):
            for decision in from_allocated(event.id, event.data):
                await self._carry_out(event, decision)
        elif isinstance(event.data, ControlApproved):
            await self._approved(event, event.data)
        else:
            raise Reject(f"no rule for {event.envelope.type}")

    async def _approved(self, event: Received[EventData], order: ControlApproved) -> None:
        self._orders.take(event.key, order, event.time_ms)
        decided = await self._bus.last(ScalingDecided.event_type, event.key)
        if decided is None or decided.id != order.decision_id:
            raise Reject(f"{order.decision_id} is not the last decision about {event.key}")
        assert isinstance(decided.data, ScalingDecided)
        cause = decided.envelope.causation_id
        await self._carry_out(event, from_decided(decided.id, event.key, decided.data, cause))

    async def _carry_out(self, event: Received[EventData], decision: ScaleDecision) -> None:
        if event.deliveries > 1 and await self._is_answered(event, decision.target):
            return
        told = await self._outcome(decision)
        for _ in decision.companions:
            if told.outcome is ApplyOutcome.CONFLICT:  # perhaps a companion, at this very moment
                told = await self._outcome(decision)
        if told.outcome not in (ApplyOutcome.APPLIED, ApplyOutcome.UNCHANGED):
            log.info(
                "decision not applied",
                extra={"target": decision.target, "outcome": told.outcome.value},
            )
        key = decision.target
        # The outcome is left out: handled a second time, an applied decision looks unchanged.
        id_ = event_id(ScalingApplied.event_type, key, f"{decision.decision_id}|{event.id}")
        await self._bus.publish(self._bus.event(told, key, id=id_, cause=event))

    async def _outcome(self, decision: ScaleDecision) -> ScalingApplied:
        """What becomes of a decision about the target as it stands; raises `Retry`."""
        target = await self._target(decision.target)
        wanted = decide_scale(decision, target, self._orders, self._bus.clock.now_ms())
        if isinstance(wanted, ScalingApplied):
            return wanted
        assert target is not None
        reply = await self._substrate.scale(wanted)
        if any(problem.code in _TRANSIENT for problem in reply.problems):
            raise Retry(RETRY_SECONDS, str(reply.problems[0]))
        return applied(decision, target, reply)

    async def _is_answered(self, event: Received[EventData], target: ObjectKey) -> bool:
        """Whether only the acknowledgement was lost; the server forgets ids after two minutes."""
        last = await self._bus.last(ScalingApplied.event_type, target)
        return last is not None and last.envelope.causation_id == event.id

    async def _target(self, key: ObjectKey) -> ScaleTarget | None:
        try:
            document = await self._client.get(key.owner)
        except ProblemsError as error:
            if error.problems[0].code is ErrorCode.NOT_FOUND:
                return None
            raise Retry(RETRY_SECONDS, str(error)) from error
        return read_target(document, key)


_TRANSIENT = frozenset(
    {
        ErrorCode.BUS_TIMEOUT,
        ErrorCode.BUS_UNREACHABLE,
        ErrorCode.BUS_REFUSED,
        ErrorCode.BUS_FULL,
    }
)
