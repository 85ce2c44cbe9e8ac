"""A key's timer: it fires once, when it is due, whatever happens to the server meanwhile.

That something doesn't happen is known from a later timer of another key, the witness, that fired:
timers arrive in the order in which they were due.
"""

from collections.abc import Mapping, Sequence

import pytest

from inferbus_contracts.base import EventData
from inferbus_contracts.deciding import ClearTimer, SetTimer
from inferbus_contracts.envelope import event_id, format_time
from inferbus_contracts.events.scaling import Woken
from inferbus_contracts.services import Service
from inferbus_contracts.subjects import subject
from inferbus_contracts.topology import is_timer
from inferbus_shared.bus.bus import Bus
from inferbus_shared.bus.messages import Delivered, Received
from inferbus_shared.bus.provision import set_clock
from inferbus_shared.clock import real_now_ms
from tests.support.counting import (
    KEY,
    autoscaler,
    counting,
    decisions,
    handle,
    inbox,
    sample,
    sampled,
)
from tests.support.eventually import eventually
from tests.support.nats import NatsServer

WITNESS = KEY._replace(name="witness")
WOKEN = "woken.autoscaler"

Inputs = Mapping[str, Received[EventData]]
Wishes = Mapping[str, SetTimer | ClearTimer]


def woken_id(sample_id: str, due_ms: int) -> str:
    key = WITNESS if sample_id == "witness" else KEY
    return event_id(WOKEN, key, f"{sample_id}|{due_ms}")


def woken_ids(events: Sequence[Received[EventData]]) -> list[str]:
    return [event.id for event in events if isinstance(event.data, Woken)]


def fired(log: Sequence[Delivered]) -> list[Delivered]:
    return [message for message in log if message.subject == subject(WOKEN, KEY)]


def waiting(log: Sequence[Delivered]) -> list[Delivered]:
    return [message for message in log if is_timer(message.subject)]


async def samples(server: NatsServer, *ids: str) -> Inputs:
    """Samples in the inbox, by id; the one called witness is about another key."""
    await sample(server, *(name for name in ids if name != "witness"))
    if "witness" in ids:
        await sample(server, "witness", key=WITNESS)
    return {event.id: event for event in await inbox(server, *ids)}


async def wish(server: NatsServer, inputs: Inputs, wishes: Wishes) -> None:
    """Each input leads to the timer that is wished under its id, one after the other."""
    async with autoscaler(server, lambda event: (wishes[event.id],)) as decider:
        for name in wishes:
            await handle(decider, inputs[name])


async def test_a_timer_fires_once_when_it_is_due(nats_server: NatsServer) -> None:
    inputs = await samples(nats_server, "sample-1", "witness")
    due_ms = real_now_ms() + 400
    witness_ms = due_ms + 200
    await wish(
        nats_server,
        inputs,
        {"sample-1": SetTimer(due_ms, "look again"), "witness": SetTimer(witness_ms, "w")},
    )
    own, witness = woken_id("sample-1", due_ms), woken_id("witness", witness_ms)
    events = await inbox(nats_server, own, witness)
    assert woken_ids(events) == [own, witness]

    woken = next(event for event in events if event.id == own)
    assert (woken.envelope.type, woken.key) == (WOKEN, KEY)
    assert woken.data == Woken(due_ms=due_ms, reason="look again")
    assert (woken.time_ms, woken.clamped) == (due_ms, False)

    log = await decisions(nats_server)
    (message,) = fired(log)
    assert message.stamp_ms >= due_ms
    assert not waiting(log)

    async with autoscaler(nats_server) as decider:
        await handle(decider, woken)
    assert (await decisions(nats_server))[-1].headers["ce-causationid"] == own


@pytest.mark.parametrize("then_ms", [1_000, 300], ids=["later", "earlier"])
async def test_a_new_timer_of_a_key_replaces_the_one_before(
    nats_server: NatsServer, then_ms: int
) -> None:
    inputs = await samples(nats_server, "sample-1", "sample-2", "witness")
    now_ms = real_now_ms()
    first_ms, second_ms, witness_ms = now_ms + 800, now_ms + then_ms, now_ms + 1_100
    await wish(
        nats_server,
        inputs,
        {
            "sample-1": SetTimer(first_ms, "first"),
            "sample-2": SetTimer(second_ms, "second"),
            "witness": SetTimer(witness_ms, "w"),
        },
    )
    own, witness = woken_id("sample-2", second_ms), woken_id("witness", witness_ms)
    assert woken_ids(await inbox(nats_server, own, witness)) == [own, witness]
    assert not waiting(await decisions(nats_server)), "none is left for the server's next start"


async def test_a_timer_that_was_cleared_does_not_fire(nats_server: NatsServer) -> None:
    inputs = await samples(nats_server, "sample-1", "sample-2", "witness")
    now_ms = real_now_ms()
    due_ms, witness_ms = now_ms + 600, now_ms + 800
    await wish(
        nats_server,
        inputs,
        {
            "sample-1": SetTimer(due_ms, "look again"),
            "sample-2": ClearTimer(),
            "witness": SetTimer(witness_ms, "w"),
        },
    )
    witness = woken_id("witness", witness_ms)
    assert woken_ids(await inbox(nats_server, witness)) == [witness]
    (marker,) = waiting(await decisions(nats_server))
    assert "Nats-Schedule" not in marker.headers, "none is left for the server's next start"


async def test_of_several_wishes_of_one_input_the_last_counts(nats_server: NatsServer) -> None:
    (event,) = await sampled(nats_server, "sample-1")
    now_ms = real_now_ms()
    first, last = SetTimer(now_ms + 100, "first"), SetTimer(now_ms + 400, "last")
    async with autoscaler(nats_server, lambda _: (first, ClearTimer(), last)) as decider:
        await handle(decider, event)
    own = woken_id("sample-1", last.at_ms)
    assert woken_ids(await inbox(nats_server, own)) == [own]


async def test_timers_survive_a_kill_of_the_server(nats_server: NatsServer) -> None:
    """One is due while the server is away, one afterwards."""
    inputs = await samples(nats_server, "sample-1", "witness")
    now_ms = real_now_ms()
    missed_ms, later_ms = now_ms + 500, now_ms + 1_500
    await wish(
        nats_server,
        inputs,
        {"sample-1": SetTimer(missed_ms, "missed"), "witness": SetTimer(later_ms, "later")},
    )
    nats_server.kill()
    await eventually(lambda: real_now_ms() > missed_ms)
    nats_server.start()
    missed, later = woken_id("sample-1", missed_ms), woken_id("witness", later_ms)
    assert woken_ids(await inbox(nats_server, missed, later)) == [missed, later]
    assert (await decisions(nats_server))[-1].stamp_ms >= later_ms


async def test_on_a_fast_clock_a_timer_fires_at_its_real_time(nats_server: NatsServer) -> None:
    async with nats_server.connection() as admin:
        anchor = await set_clock(admin, 100.0)
    (event,) = await sampled(nats_server, "sample-1")
    async with nats_server.bus(Service.AUTOSCALER) as bus:
        due_ms = bus.clock.now_ms() + 60_000
        await handle(counting(bus, lambda _: (SetTimer(due_ms, "in a minute"),)), event)
        (timer,) = waiting(await decisions(nats_server))
        real_ms = anchor.to_real(due_ms)
        assert timer.headers["Nats-Schedule"] == f"@at {format_time(real_ms)}"
        await woken_at(nats_server, bus, due_ms)
    (message,) = fired(await decisions(nats_server))
    assert real_ms <= message.stamp_ms < real_ms + 5_000, "a minute is 0.6 s"


async def woken_at(server: NatsServer, bus: Bus, due_ms: int) -> None:
    own = woken_id("sample-1", due_ms)
    woken = next(event for event in await inbox(server, own) if event.id == own)
    assert (woken.time_ms, woken.clamped) == (due_ms, False)
    assert bus.clock.now_ms() >= due_ms
