"""States that events of several keys are folded into: these may stand in several partitions.

Between partitions there is no order, and each may be served by another instance, so an event that
comes late isn't part of the state because one of another key with a later sequence is.
"""

from prometheus_client import CollectorRegistry

from inferbus_contracts.base import EventData
from inferbus_contracts.envelope import event_id
from inferbus_contracts.events.state import StateStored
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.services import Service
from inferbus_shared.bus.bus import Bus
from inferbus_shared.bus.decider import MOST_KEYS, Decider, Verdict
from inferbus_shared.bus.messages import Received
from inferbus_shared.bus.states import States
from tests.support.counting import KEY, SCHEMA, Count, counting, handle, inbox, said, sample
from tests.support.nats import NatsServer

POLICY = ObjectKey("AutoscalingPolicy", "default", "both")
ROLES = (KEY._replace(role="decode"), KEY._replace(role="prefill"))


async def samples_of(server: NatsServer, *keys: ObjectKey) -> list[Received[EventData]]:
    """One sample about each key, in that order."""
    ids = [f"sample-{number}" for number in range(len(keys))]
    for id_, key in zip(ids, keys, strict=True):
        await sample(server, id_, key=key)
    return await inbox(server, *ids)


async def state_of(bus: Bus) -> StateStored:
    standing = await States(bus).read(POLICY)
    assert standing.state is not None
    return standing.state


async def test_a_redelivery_is_heard_though_another_key_went_ahead(
    nats_server: NatsServer,
) -> None:
    early, late = await samples_of(nats_server, *ROLES)
    async with nats_server.bus(Service.AUTOSCALER) as bus:
        decider = counting(bus, state_key=POLICY)
        await handle(decider, late)
        await handle(decider, early, deliveries=2)
        state = await state_of(bus)
    assert (state.state["count"], state.cause) == (2, early.id)


async def test_what_was_folded_in_is_not_folded_in_twice(nats_server: NatsServer) -> None:
    events = await samples_of(nats_server, POLICY, *ROLES, POLICY)
    async with nats_server.bus(Service.AUTOSCALER) as bus:
        decider = counting(bus, state_key=POLICY)
        for event in events:
            await handle(decider, event)
        for event in events:
            await handle(decider, event, deliveries=2)
        state = await state_of(bus)
    assert state.state["count"] == len(events)
    assert state.applied_sequences == {
        str(event.key): event.sequence for event in events if event is not events[0]
    }


async def test_keys_that_fell_silent_are_forgotten_at_last(nats_server: NatsServer) -> None:
    (event,) = await samples_of(nats_server, ROLES[0])
    many = {f"ModelServing/default/former-{number}": number + 1 for number in range(MOST_KEYS)}

    async with nats_server.bus(Service.AUTOSCALER) as bus:
        stored = StateStored(
            state_schema=SCHEMA,
            applied_sequence=MOST_KEYS,
            applied_sequences=many,
            cause="before",
            state={"schema": SCHEMA, "count": 7, "previous": ""},
        )
        message = bus.event(stored, POLICY, event_type="state.autoscaler", id="state-before")
        await bus.publish(message)
        newer = Received(event.envelope, event.data, event.stream, MOST_KEYS + 1)
        await handle(counting(bus, state_key=POLICY), newer)
        applied = (await state_of(bus)).applied_sequences
    assert applied is not None
    assert len(applied) == MOST_KEYS
    assert applied[str(ROLES[0])] == MOST_KEYS + 1
    assert "ModelServing/default/former-0" not in applied


async def test_decisions_of_one_input_stand_under_their_own_keys_and_are_remembered_by_them(
    nats_server: NatsServer,
) -> None:
    first, second = await samples_of(nats_server, POLICY, POLICY)

    async with nats_server.bus(Service.AUTOSCALER) as bus:

        def both(_: ObjectKey, __: Received[EventData], before: StateStored | None) -> Verdict:
            effects: list[Count] = [said(role, 1) for role in ROLES[: 1 if before else 2]]
            return Verdict({"schema": SCHEMA}, effects)

        decider = Decider(bus, SCHEMA, both, lambda _: POLICY, CollectorRegistry())
        await handle(decider, first)
        ids = {str(role): event_id("scaling.decided", role, first.id) for role in ROLES}
        assert (await state_of(bus)).decision_ids == ids
        for role in ROLES:
            found = await bus.last("scaling.decided", role)
            assert found is not None
            assert found.id == ids[str(role)]

        await handle(decider, second)
        changed = ids | {str(ROLES[0]): event_id("scaling.decided", ROLES[0], second.id)}
        assert (await state_of(bus)).decision_ids == changed
