"""The questions of people and their answers; the work is the picture's and the log's."""

import itertools

from inferbus_console.decisions import Decision
from inferbus_console.history import stored_answers, stored_decisions
from inferbus_console.inventory import Inventory
from inferbus_console.picture import Picture
from inferbus_console.policy_orders import order_of
from inferbus_console.policy_scopes import scope_of
from inferbus_console.settings import ConsoleSettings
from inferbus_console.standing import demand_of, standing_of
from inferbus_contracts.api.console import (
    ConsoleQuery,
    ExplainedDecision,
    InventoryReply,
    InventoryRequest,
    OrderReply,
    OrderRequest,
    OrderVerb,
    TopReply,
    TopRequest,
    WhyReply,
    WhyRequest,
    console_subject,
)
from inferbus_contracts.canonical import digest
from inferbus_contracts.envelope import observation_id
from inferbus_contracts.errors import ErrorCode, Problem, ProblemsError
from inferbus_contracts.events.control import (
    ControlApproved,
    ControlFrozen,
    ControlThawed,
    Order,
)
from inferbus_contracts.keys import ObjectKey
from inferbus_shared.bus.bus import Bus
from inferbus_shared.bus.service import Runtime

_ORDER_TYPES = tuple(one.event_type for one in (ControlFrozen, ControlThawed, ControlApproved))


MAX_REPLY_BYTES = 1_500_000
"""Below the server's limit for one message, 2 MB."""


class ConsoleApi:
    """Serves every query."""

    def __init__(self, bus: Bus, picture: Picture) -> None:
        self._bus = bus
        self._picture = picture

    def register(self, runtime: Runtime[ConsoleSettings]) -> None:
        """Listen for requests."""
        runtime.on_request(console_subject(ConsoleQuery.WHY), WhyRequest, self.why)
        runtime.on_request(console_subject(ConsoleQuery.TOP), TopRequest, self.top)
        runtime.on_request(console_subject(ConsoleQuery.STATUS), InventoryRequest, self.status)
        runtime.on_request(console_subject(ConsoleQuery.ORDER), OrderRequest, self.order)

    async def why(self, request: WhyRequest) -> WhyReply:
        """The last decisions about a target, newest first, and what became of each."""
        key = self._picture.decided(request.target)
        decisions = await self._decisions(key, request.limit)
        if not decisions:
            raise ProblemsError(*self._undecided(key))
        last = {one.key: one for one in reversed(decisions)}
        explained = [await self._explained(one, last[one.key] is one) for one in decisions]
        return WhyReply(target=str(key), decisions=_that_fit(explained))

    async def top(self, request: TopRequest) -> TopReply:
        """The live picture."""
        del request
        return self._picture.top(self._bus.clock.now_ms())

    async def status(self, request: InventoryRequest) -> InventoryReply:
        """What stands on the bus."""
        found = await Inventory.take(self._bus.connection, request.nodes)
        return InventoryReply(
            now_ms=self._bus.clock.now_ms(),
            clock_rate=self._bus.clock.anchor.rate,
            streams=found.streams,
            durables=found.durables,
            missing=found.missing,
            dead_letters=found.dead_letters,
            routers=self._picture.routers(),
        )

    async def order(self, request: OrderRequest) -> OrderReply:
        """Write what a person ordered; the approval of a mix is one event for each target."""
        decision: Decision | None = None
        newest: Decision | None = None
        if request.verb is OrderVerb.APPROVE:
            key = self._picture.decided(request.scope)
            decision = await self._decision(key, request.decision_id)
            if decision is not None:
                newest = next(iter(self._picture.decisions.newest(decision.key)), None)
            scopes = decision.targets if decision else (key,)
        else:
            scopes = (scope_of(request.scope, self._picture.freezable, self._picture.namespaces),)
        order = order_of(request, decision, self._bus.clock.now_ms(), newest)
        ids = [await self._write(scope, order) for scope in scopes]
        return OrderReply(event_id=ids[0])

    async def _decisions(self, key: ObjectKey, limit: int) -> list[Decision]:
        """The newest of each key that is meant, at most `limit` of one, newest first."""
        found: list[Decision] = []
        for place in self._picture.decision_keys(key):
            known = list(self._picture.decisions.newest(place))
            if known and len(known) < limit:
                known = await stored_decisions(self._bus, place, known[0].data.event_type, limit)
            found += known[:limit]
        return sorted(found, key=lambda one: one.sequence, reverse=True)

    async def _decision(self, key: ObjectKey, decision_id: str | None) -> Decision | None:
        known = await self._decisions(key, 100 if decision_id else 1)
        if decision_id is None:
            return known[0] if known else None
        return next((one for one in known if one.id == decision_id), None)

    async def _explained(self, decision: Decision, is_last: bool) -> ExplainedDecision:
        answers = [
            answer
            for target in decision.targets
            for answer in await stored_answers(self._bus, target)
        ]
        explained = decision.explained(answers)
        if not is_last:
            return explained
        standing = await standing_of(self._bus, self._picture, decision)
        demand = await demand_of(self._bus, decision)
        return explained.model_copy(update={"standing": standing, "demand": demand})

    async def _write(self, scope: ObjectKey, order: Order) -> str:
        """Store an order, under an id that two consoles would both give it."""
        last = [await self._bus.last(event_type, scope) for event_type in _ORDER_TYPES]
        previous = "|".join(event.id for event in last if event is not None)
        content = digest(order.to_dict())
        id_ = observation_id(order.event_type, scope, "", content, previous)
        await self._bus.publish(self._bus.event(order, scope, id=id_))
        return id_

    def _undecided(self, key: ObjectKey) -> tuple[Problem, ...]:
        """Why nothing was decided about a target or policy."""
        policies = self._picture.settled.policies_of(key)
        blocked = [one for policy in (key, *policies) for one in self._picture.problems(policy)]
        return tuple(blocked) or (_undecided(key, policies[0] if policies else None),)


def _that_fit(decisions: list[ExplainedDecision]) -> list[ExplainedDecision]:
    """As many of the first as one reply can carry, at least one."""
    sizes = itertools.accumulate(len(one.to_json()) for one in decisions)
    fitting = sum(size <= MAX_REPLY_BYTES for size in sizes)
    return decisions[: max(fitting, 1)]


def _undecided(key: ObjectKey, policy: ObjectKey | None) -> Problem:
    waits = (
        f"{policy} scales it, and decides once its first sample is there: "
        "`inferbus tap 'inferbus.v1.metrics.sampled.>'` shows the samples"
    )
    unscaled = "no policy scales it; apply an AutoscalingPolicy that names it as target"
    return Problem(
        code=ErrorCode.NOT_FOUND,
        message="nothing was decided about it yet",
        object=str(key),
        remedy=waits if policy else unscaled,
    )
