"""Where a state stands: on its decision, by itself, where it once did; and who may replace it."""

import contextlib
import itertools
from collections.abc import Sequence
from dataclasses import replace

import pytest
from prometheus_client import CollectorRegistry

from inferbus_contracts.base import EventData
from inferbus_contracts.events.state import StateStored
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.services import Service
from inferbus_contracts.subjects import subject
from inferbus_contracts.topology import former_state_type, state_type, timer_subject
from inferbus_shared.bus.bus import Bus, no_timer
from inferbus_shared.bus.decider import Decider, Verdict
from inferbus_shared.bus.messages import Outgoing, Received
from inferbus_shared.bus.states import MOST_CARRIED_BYTES, Standing, States, stored_state
from inferbus_shared.bus.store import WrongSequenceError
from tests.support.counting import (
    INPUTS,
    KEY,
    SCHEMA,
    Timers,
    counting,
    decisions,
    handle,
    in_an_hour,
    no_timers,
    said,
    sampled,
)
from tests.support.eventually import eventually
from tests.support.nats import NatsServer

AUTOSCALER = Service.AUTOSCALER
DECIDED = subject("scaling.decided", KEY)
STATE = subject(state_type(AUTOSCALER), KEY)
FORMER = former_state_type(AUTOSCALER)

Event = Received[EventData]


async def standing(server: NatsServer) -> Standing:
    """What somebody reads who remembers nothing."""
    async with server.bus(AUTOSCALER, "reader") as bus:
        return await States(bus).read(KEY)


async def content(server: NatsServer) -> dict[str, object]:
    """What the core keeps, as it stands there."""
    found = await standing(server)
    assert found.state is not None
    return found.state.state


def stored_after(event: Event, **kept: object) -> StateStored:
    return StateStored(
        state_schema=SCHEMA, applied_sequence=event.sequence, cause=event.id, state=kept
    )


def decision(bus: Bus, event: Event) -> Outgoing:
    return bus.event(said(KEY, 0).data, KEY, cause=event)


@pytest.mark.parametrize("timers", [no_timers, in_an_hour], ids=["no timer", "a timer"])
async def test_the_state_is_the_last_one_wherever_it_stands(
    nats_server: NatsServer, timers: Timers
) -> None:
    events = await sampled(nats_server, *(f"sample-{number}" for number in range(5)))
    places = []
    for number, event in enumerate(events):
        async with nats_server.bus(AUTOSCALER) as bus:
            await handle(counting(bus, timers, says=number in (1, 2, 4)), event)
        assert (await content(nats_server))["count"] == number + 1
        log = await decisions(nats_server)
        assert (await standing(nats_server)).revision == log[-1].sequence
        places.append(log[-1].subject)
    assert places == [STATE, DECIDED, DECIDED, STATE, DECIDED]


@pytest.mark.parametrize("before", range(3), ids=["no state", "a state alone", "on a decision"])
@pytest.mark.parametrize("saying", list(itertools.product([False, True], repeat=2)))
async def test_of_two_that_rest_on_one_state_the_second_stores_nothing(
    nats_server: NatsServer, before: int, saying: Sequence[bool]
) -> None:
    """Whichever place each of them wants to store it in."""
    start, first, second = await sampled(nats_server, *INPUTS)
    async with nats_server.bus(AUTOSCALER) as bus:
        if before:
            await handle(counting(bus, says=before == 2), start)
        revision = (await standing(nats_server)).revision
        states = States(bus)
        wanted = [
            (KEY, event, stored_after(event), [decision(bus, event)] if says else [])
            for event, says in zip((first, second), saying, strict=True)
        ]
        await states.store(*wanted[0], revision)
        log = await decisions(nats_server)
        with pytest.raises(WrongSequenceError):
            await states.store(*wanted[1], revision)
    assert await decisions(nats_server) == log
    assert (await standing(nats_server)).state == stored_after(first)


async def test_what_stands_there_of_others_disturbs_nobody(nats_server: NatsServer) -> None:
    """Decisions, states and timers of a key that only looks alike."""
    first, second = await sampled(nats_server, "sample-1", "sample-2")
    async with nats_server.bus(AUTOSCALER) as bus:
        states = States(bus)
        await states.store(KEY, first, stored_after(first), [decision(bus, first)], 0)
        revision = (await standing(nats_server)).revision
        binding = KEY._replace(kind="AutoscalingPolicyBinding")
        for other in (binding, KEY._replace(name="other"), KEY._replace(role="prefill")):
            about_other = replace(second, envelope=replace(second.envelope, key=other))
            await handle(counting(bus, in_an_hour), about_other)
        await states.store(KEY, second, stored_after(second), [decision(bus, second)], revision)
    assert (await standing(nats_server)).state == stored_after(second)


@pytest.mark.parametrize("says", [False, True])
async def test_a_state_of_the_former_place_is_read_until_there_is_another(
    nats_server: NatsServer, says: bool
) -> None:
    first, second, third = await sampled(nats_server, *INPUTS)
    async with nats_server.bus(AUTOSCALER) as bus:
        former = stored_after(first, schema=SCHEMA, count=7)
        await bus.commit(
            [decision(bus, first), bus.event(former, KEY, event_type=FORMER, cause=first)]
        )
        await handle(counting(bus, says=says), second)
        assert (await content(nats_server))["count"] == 8
        await handle(counting(bus, says=says), third)
    assert (await content(nats_server))["count"] == 9


async def test_a_decision_without_a_state_hides_none(nats_server: NatsServer) -> None:
    """As a decider of before writes it, that was started again by mistake."""
    first, second, third = await sampled(nats_server, *INPUTS)
    async with nats_server.bus(AUTOSCALER) as bus:
        await handle(counting(bus, says=False), first)
        await bus.publish(decision(bus, second))
        await handle(counting(bus), third)
    assert (await content(nats_server))["count"] == 2


async def test_a_state_too_large_for_a_header_stands_beside_its_decision(
    nats_server: NatsServer,
) -> None:
    first, second = await sampled(nats_server, "sample-1", "sample-2")
    async with nats_server.bus(AUTOSCALER) as bus:
        states = States(bus)
        large = stored_after(first, text="x" * MOST_CARRIED_BYTES)
        with pytest.raises(WrongSequenceError):
            await states.store(KEY, first, large, [decision(bus, first)], 7)
        assert await decisions(nats_server) == []
        await states.store(KEY, first, large, [decision(bus, first)], 0)
        found = await standing(nats_server)
        assert found == Standing(large, 2)
        assert [message.subject for message in await decisions(nats_server)] == [DECIDED, STATE]
        fits = stored_after(second, text="y" * (MOST_CARRIED_BYTES - 1000))
        await states.store(KEY, second, fits, [decision(bus, second)], found.revision)
    assert (await standing(nats_server)).state == fits


async def test_any_text_comes_back_from_a_decision(nats_server: NatsServer) -> None:
    (first,) = await sampled(nats_server, "sample-1")
    text = "naïve: \r\n\t Größe ≥ 3 🧠 \x7f\x85\u2028 \\ "
    state = stored_after(first, **{text: text})
    async with nats_server.bus(AUTOSCALER) as bus:
        await States(bus).store(KEY, first, state, [decision(bus, first)], 0)
    (message,) = await decisions(nats_server)
    assert stored_state(message) == state


async def test_whoever_remembers_an_older_state_goes_on_from_the_newer(
    nats_server: NatsServer,
) -> None:
    first, second, third = await sampled(nats_server, *INPUTS)
    async with (
        nats_server.bus(AUTOSCALER, "a") as one,
        nats_server.bus(AUTOSCALER, "b") as other,
    ):
        remembering = counting(one)
        await handle(remembering, first)
        await handle(counting(other), second)
        await handle(remembering, third)
    assert await content(nats_server) == {"schema": SCHEMA, "count": 3, "previous": "sample-2"}


async def test_that_nothing_follows_is_said_of_what_stands_there_only(
    nats_server: NatsServer,
) -> None:
    """The older state that is remembered must not swallow an event that the newer one needs."""
    first, second, third = await sampled(nats_server, *INPUTS)

    follower = {first.id: second.id, second.id: third.id, third.id: ""}

    def decide(_: ObjectKey, event: Event, before: StateStored | None) -> Verdict | None:
        awaited = before.state["next"] if before else first.id
        return Verdict({"next": follower[event.id]}) if event.id == awaited else None

    async with (
        nats_server.bus(AUTOSCALER, "a") as one,
        nats_server.bus(AUTOSCALER, "b") as other,
    ):
        remembering, second_instance = (
            Decider(bus, SCHEMA, decide, lambda event: event.key, CollectorRegistry())
            for bus in (one, other)
        )
        await handle(remembering, first)
        await handle(second_instance, second)
        await handle(remembering, third)
    assert await content(nats_server) == {"next": ""}


@pytest.mark.parametrize("saying", list(itertools.product([False, True], repeat=2)))
@pytest.mark.parametrize("timers", [False, True], ids=["no timer", "a timer"])
async def test_an_event_that_others_went_past_is_not_stored_again(
    nats_server: NatsServer, saying: Sequence[bool], timers: bool
) -> None:
    """By an instance that hung, or a server that forgot what it had delivered before.

    It is decided about anew, on a later state, so something else may follow from it than did.
    """
    first, second, third = await sampled(nats_server, *INPUTS)
    async with nats_server.bus(AUTOSCALER) as bus:
        states = States(bus)
        for event, says in ((first, saying[0]), (second, True)):
            revision = (await standing(nats_server)).revision
            said_then = [decision(bus, event)] if says else []
            await states.store(KEY, event, stored_after(event), said_then, revision)
        log = await decisions(nats_server)
        again = [decision(bus, first)] if saying[1] else []
        again += [no_timer(timer_subject(AUTOSCALER, KEY))] if timers else []
        with contextlib.suppress(WrongSequenceError):
            await states.store(KEY, first, stored_after(first), again, log[-1].sequence)
        assert await decisions(nats_server) == log
        assert states.remembered(KEY) is None
        await states.store(KEY, third, stored_after(third), [], log[-1].sequence)


async def test_nothing_is_remembered_of_a_server_that_was_away(nats_server: NatsServer) -> None:
    (first,) = await sampled(nats_server, "sample-1")
    async with nats_server.bus(AUTOSCALER) as bus:
        states = States(bus)
        await states.store(KEY, first, stored_after(first), [], 0)
        assert states.remembered(KEY) is not None
        nats_server.kill()
        nats_server.start()
        await eventually(lambda: states.remembered(KEY) is None)
        assert (await states.read(KEY)).state == stored_after(first)
