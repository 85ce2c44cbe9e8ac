"""What holds about a decided key now: freezes, refusals, and when it is looked at again by itself.

A decision tells what was so when it was made; this is read when the question is asked.
"""

from inferbus_console.decisions import Decision
from inferbus_console.picture import Picture
from inferbus_contracts.api.console import DemandRow, FreezeRow, Standing
from inferbus_contracts.catalog import Stream
from inferbus_contracts.events.scaling import ScalingAllocated, ScalingDemanded, Woken
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.services import Service
from inferbus_contracts.topology import timer_subject
from inferbus_shared.bus.bus import Bus
from inferbus_shared.bus.direct import last_message


async def standing_of(bus: Bus, picture: Picture, decision: Decision) -> Standing:
    """How things stand for the key of a decision.

    Roles that are decided about together wait together: for the freeze of any, and for one timer.
    """
    now_ms = bus.clock.now_ms()
    settled = picture.settled
    intent = settled.owners.get(decision.targets[0]) if decision.targets else None
    targets, state_key = decision.targets, decision.key
    if intent is not None and intent.joint:
        targets, state_key = tuple(one.key for one in intent.targets), intent.key
    freezes = {
        freeze.scope: freeze.order
        for target in targets
        if (freeze := picture.freeze(target, now_ms)) is not None
    }
    policies = {key for target in targets for key in settled.policies_of(target)}
    look = await _next_look(bus, decision, state_key, now_ms)
    return Standing(
        freezes=[
            FreezeRow(scope=str(scope), who=order.who, why=order.why, until_ms=order.until_ms)
            for scope, order in sorted(freezes.items())
        ],
        problems=[problem for key in sorted(policies) for problem in picture.problems(key)],
        next_look_ms=look.due_ms if look else None,
        next_look_reason=look.reason if look else "",
    )


async def demand_of(bus: Bus, decision: Decision) -> DemandRow | None:
    """The newest total of a mix; None for a single target, or where it left the log."""
    if not isinstance(decision.data, ScalingAllocated):
        return None
    event = await bus.last(ScalingDemanded.event_type, decision.key)
    if event is None:
        return None
    return DemandRow(id=event.id, time_ms=event.time_ms, body=event.data.to_dict())


async def _next_look(
    bus: Bus, decision: Decision, state_key: ObjectKey, now_ms: int
) -> Woken | None:
    """The timer of the deciders' state that fires first."""
    deciders = (
        (Service.AUTOSCALER, Service.OPTIMIZER)
        if isinstance(decision.data, ScalingAllocated)
        else (Service.AUTOSCALER,)
    )
    timers = [await _timer(bus, service, state_key) for service in deciders]
    ahead = [timer for timer in timers if timer is not None and timer.due_ms > now_ms]
    return min(ahead, key=lambda timer: timer.due_ms, default=None)


async def _timer(bus: Bus, service: Service, key: ObjectKey) -> Woken | None:
    """A decider's timer of a key; an empty message stands where one was taken back."""
    place = timer_subject(service, key)
    message = await last_message(bus.connection, Stream.DECISIONS, place)
    return Woken.from_json(message.data) if message is not None and message.data else None
