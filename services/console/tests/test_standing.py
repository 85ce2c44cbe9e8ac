"""What holds now about roles that are decided about together: they wait together."""

from inferbus_console.picture import Picture
from inferbus_console.standing import standing_of
from inferbus_contracts.events.control import ControlFrozen
from inferbus_contracts.events.scaling import Woken
from inferbus_contracts.services import Service
from inferbus_contracts.topology import timer_subject, woken_type
from inferbus_shared.bus.bus import Bus, timer
from services.console.tests.console_builders import (
    POLICY,
    TARGET,
    decided,
    decision,
    received,
    spec,
)
from tests.support.nats import NatsServer

DECODE, PREFILL = TARGET._replace(role="decode"), TARGET._replace(role="prefill")
HOUR_MS = 3_600_000


def pair() -> Picture:
    """Two roles under one policy."""
    scaling = {"minReplicas": 1, "maxReplicas": 9, "metricSources": {"load": {"pod": {}}}}
    target = {
        "targetRef": {"kind": TARGET.kind, "name": TARGET.name},
        "roles": {key.role: scaling for key in (DECODE, PREFILL)},
    }
    metrics = [{"name": "load", "targetValue": "1"}]
    body = {"metrics": metrics, "disaggregatedTarget": target}
    picture = Picture()
    picture.take(received(spec(POLICY, body), POLICY))
    return picture


async def set_timer(bus: Bus, due_ms: int) -> None:
    """The autoscaler's own, of the state that both roles share."""
    woken = bus.event(
        Woken(due_ms=due_ms, reason="rate ends"),
        POLICY,
        event_type=woken_type(bus.service),
        time_ms=due_ms,
        id="w",
    )
    place = timer_subject(bus.service, POLICY)
    await bus.commit([timer(place, woken, bus.clock.anchor.to_real(due_ms))])


async def test_the_freeze_of_one_role_and_the_timer_of_both_are_told_of_each(
    nats_server: NatsServer,
) -> None:
    picture = pair()
    async with (
        nats_server.bus(Service.AUTOSCALER) as autoscaler,
        nats_server.bus(Service.CONSOLE) as bus,
    ):
        due_ms = autoscaler.clock.now_ms() + HOUR_MS
        await set_timer(autoscaler, due_ms)
        picture.take(received(ControlFrozen(who="ada", why="incident"), PREFILL))
        for role in (DECODE, PREFILL):
            standing = await standing_of(bus, picture, decision(decided(), role, 1))
            assert [one.scope for one in standing.freezes] == [str(PREFILL)]
            assert (standing.next_look_ms, standing.next_look_reason) == (due_ms, "rate ends")
