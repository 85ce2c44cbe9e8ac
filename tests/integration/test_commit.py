"""The atomic commit: what follows from one event is stored whole and once, whatever goes wrong."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

import pytest

from inferbus_contracts.catalog import Stream
from inferbus_contracts.envelope import event_id, format_time
from inferbus_contracts.errors import ErrorCode, ProblemsError
from inferbus_contracts.events.scaling import ApplyOutcome, ScalingApplied, ScalingDecided
from inferbus_contracts.events.state import StateStored
from inferbus_contracts.services import Service
from inferbus_contracts.subjects import subject
from inferbus_contracts.topology import state_filter, timer_subject
from inferbus_shared.bus.bus import Bus
from inferbus_shared.bus.fate import Retry
from inferbus_shared.bus.jetstream import api
from inferbus_shared.bus.messages import Delivered, Outgoing
from inferbus_shared.bus.states import States, stored_state
from inferbus_shared.bus.store import Stored, WrongSequenceError, expecting
from inferbus_shared.clock import SystemClock
from tests.support.counting import (
    HOUR_MS,
    INPUTS,
    KEY,
    SCHEMA,
    autoscaler,
    counting,
    decisions,
    handle,
    in_an_hour,
    inbox,
    sampled,
)
from tests.support.eventually import eventually
from tests.support.nats import NatsServer

DECIDED = subject("scaling.decided", KEY)
PLACES = state_filter(Service.AUTOSCALER, KEY)
TIMER = timer_subject(Service.AUTOSCALER, KEY)


def id_of(message: Delivered) -> str:
    return str(message.headers["ce-id"])


def caused(message: Delivered) -> tuple[str, str]:
    return message.headers["ce-causationid"], message.headers["ce-correlationid"]


def desired(log: Sequence[Delivered]) -> list[int]:
    """The numbers decided, in order."""
    return [
        ScalingDecided.from_json(message.data).desired
        for message in log
        if message.subject == DECIDED
    ]


async def state_of(bus: Bus) -> StateStored:
    standing = await States(bus).read(KEY)
    assert standing.state is not None
    return standing.state


async def test_what_follows_from_an_input_stands_together(nats_server: NatsServer) -> None:
    (first,) = await sampled(nats_server, "sample-1")
    async with autoscaler(nats_server, in_an_hour) as decider:
        await handle(decider, first)
    log = await decisions(nats_server)
    timer, decision = log
    assert [message.subject for message in log] == [TIMER, DECIDED]
    assert [message.sequence for message in log] == [1, 2]

    assert id_of(decision) == event_id("scaling.decided", KEY, "sample-1")
    due_ms = first.time_ms + HOUR_MS
    assert id_of(timer) == event_id("woken.autoscaler", KEY, f"sample-1|{due_ms}")
    assert timer.headers["Nats-Schedule"] == f"@at {format_time(due_ms)}"
    assert caused(decision) == ("sample-1", "sample-1")

    assert stored_state(decision) == StateStored(
        state_schema=SCHEMA,
        applied_sequence=first.sequence,
        cause="sample-1",
        decision_id=id_of(decision),
        state={"schema": SCHEMA, "count": 1, "previous": ""},
    )


async def test_the_causes_of_an_input_are_those_of_what_follows(nats_server: NatsServer) -> None:
    (first,) = await sampled(nats_server, "sample-1")
    async with (
        autoscaler(nats_server) as decider,
        nats_server.bus(Service.WORKLOAD_RECONCILER) as reconciler,
    ):
        await handle(decider, first)
        decision = await reconciler.last("scaling.decided", KEY)
        assert decision is not None
        answer = ScalingApplied(
            decision_id=decision.id,
            outcome=ApplyOutcome.APPLIED,
            replicas=1,
            generation=2,
            uid="u",
        )
        message = reconciler.event(answer, KEY, cause=decision)
        await reconciler.publish(message)
        answer_id = message.headers["ce-id"]
        _, applied = await inbox(nats_server, answer_id)
        await handle(decider, applied)
    _, later = await decisions(nats_server)
    assert caused(later) == (answer_id, "sample-1")


class MeetingBus(Bus):
    """Commits when every other instance has read the state as well, and is about to."""

    meeting: asyncio.Barrier

    async def commit(self, messages: Sequence[Outgoing]) -> Stored:
        await self.meeting.wait()
        return await super().commit(messages)


@contextlib.asynccontextmanager
async def meeting_instances(server: NatsServer, count: int) -> AsyncIterator[list[MeetingBus]]:
    meeting = asyncio.Barrier(count)
    async with contextlib.AsyncExitStack() as stack:
        buses = []
        for number in range(count):
            connection = server.connection(Service.AUTOSCALER, f"a{number}")
            bus = MeetingBus(await stack.enter_async_context(connection), SystemClock())
            bus.meeting = meeting
            buses.append(bus)
        yield buses


@pytest.mark.parametrize("before", [0, 2], ids=["no state", "a state"])
async def test_of_instances_that_read_the_same_state_one_is_heard(
    nats_server: NatsServer, before: int
) -> None:
    events = await sampled(nats_server, *(f"sample-{number}" for number in range(before + 1)))
    async with autoscaler(nats_server, in_an_hour) as decider:
        for event in events[:-1]:
            await handle(decider, event)
    async with meeting_instances(nats_server, 3) as buses:
        outcomes = await asyncio.gather(
            *(handle(counting(bus, in_an_hour), events[-1]) for bus in buses),
            return_exceptions=True,
        )
        losers = [
            bus for bus, outcome in zip(buses, outcomes, strict=True) if isinstance(outcome, Retry)
        ]
        assert (len(losers), outcomes.count(None)) == (2, 1), outcomes
        log = await decisions(nats_server)
        assert desired(log) == list(range(1, before + 2))

        for bus in losers:
            await handle(counting(Bus(bus.connection, bus.clock), in_an_hour), events[-1], 2)
    assert await decisions(nats_server) == log


class OvertakenBus(Bus):
    """Lets another instance decide after the state was read, and before it is written."""

    overtake: Callable[[], Awaitable[None]]

    async def commit(self, messages: Sequence[Outgoing]) -> Stored:
        await self.overtake()
        return await super().commit(messages)


async def test_whoever_is_overtaken_decides_anew_on_the_state_of_the_other(
    nats_server: NatsServer,
) -> None:
    first, second = await sampled(nats_server, "sample-1", "sample-2")
    async with (
        autoscaler(nats_server) as other,
        nats_server.connection(Service.AUTOSCALER, "overtaken") as connection,
    ):
        bus = OvertakenBus(connection, SystemClock())
        bus.overtake = lambda: handle(other, first)
        with pytest.raises(Retry):
            await handle(counting(bus), second)
        assert desired(await decisions(nats_server)) == [1]

        await handle(counting(Bus(connection, SystemClock())), second, 2)
        state = await state_of(bus)
    assert (state.state["previous"], state.cause) == ("sample-1", "sample-2")
    assert desired(await decisions(nats_server)) == [1, 2]


async def test_a_batch_that_expects_another_state_leaves_nothing(nats_server: NatsServer) -> None:
    first, second = await sampled(nats_server, "sample-1", "sample-2")
    async with nats_server.bus(Service.AUTOSCALER) as bus:
        await handle(counting(bus, in_an_hour), first)
        log = await decisions(nats_server)
        revision = log[-1].sequence

        def batch(expected: int) -> list[Outgoing]:
            decided = ScalingDecided.from_json(log[-1].data)
            decision = bus.event(decided, KEY, cause=second)
            other = bus.event(decided, KEY, cause=second, ordinal=1)
            return [expecting(decision, expected, PLACES), other]

        for wrong in (0, revision - 1, revision + 1):
            with pytest.raises(WrongSequenceError):
                await bus.commit(batch(wrong))
            assert await decisions(nats_server) == log
        first, other = batch(revision)
        in_flight = [first, expecting(other, revision)]
        with pytest.raises(WrongSequenceError):  # what a replicated stream says of another's write
            await bus.commit(in_flight)
        assert await decisions(nats_server) == log
        stored = await bus.commit(batch(revision))
        assert stored.sequence == revision + 2, "what was rejected has no place in the log"


async def forget_ids(server: NatsServer, bus: Bus) -> None:
    """As the server does by itself when its window is over."""
    async with server.connection() as admin:
        config = (await api(admin, f"STREAM.INFO.{Stream.DECISIONS}"))["config"]
        shorter = config | {"duplicate_window": 10**8}
        await api(admin, f"STREAM.UPDATE.{Stream.DECISIONS}", shorter)
    decided = ScalingDecided.from_json((await decisions(server))[-1].data)
    probe = bus.event(decided, KEY._replace(name="probe"), id="probe")
    await bus.publish(probe)

    async def is_forgotten() -> bool:
        return not (await bus.publish(probe)).duplicate

    await eventually(is_forgotten)


@pytest.mark.parametrize("forgotten", [False, True], ids=["ids known", "ids forgotten"])
@pytest.mark.parametrize("deliveries", [1, 2])
async def test_an_event_that_is_handled_again_adds_nothing(
    nats_server: NatsServer, forgotten: bool, deliveries: int
) -> None:
    """Once more as the first delivery: an instance that hung while another did the work."""
    (first,) = await sampled(nats_server, "sample-1")
    async with nats_server.bus(Service.AUTOSCALER) as bus:
        decider = counting(bus, in_an_hour)
        await handle(decider, first)
        if forgotten:
            await forget_ids(nats_server, bus)
        log = await decisions(nats_server)
        await handle(decider, first, deliveries)
    assert await decisions(nats_server) == log


async def test_a_late_redelivery_of_an_earlier_event_adds_nothing(nats_server: NatsServer) -> None:
    events = await sampled(nats_server, "sample-1", "sample-2", "sample-3")
    async with nats_server.bus(Service.AUTOSCALER) as bus:
        decider = counting(bus, in_an_hour)
        for event in events:
            await handle(decider, event)
        await forget_ids(nats_server, bus)
        log = await decisions(nats_server)
        for event in events:
            await handle(decider, event, deliveries=2)
    assert await decisions(nats_server) == log


async def test_the_inputs_of_a_key_are_a_chain(nats_server: NatsServer) -> None:
    events = await sampled(nats_server, *INPUTS)
    async with nats_server.bus(Service.AUTOSCALER) as bus:
        chain = []
        for event in events:
            await handle(counting(bus), event)
            chain.append(await state_of(bus))
    log = await decisions(nats_server)
    assert [state.cause for state in chain] == list(INPUTS)
    assert [state.state["previous"] for state in chain] == ["", "sample-1", "sample-2"]
    assert [state.applied_sequence for state in chain] == [event.sequence for event in events]
    decided = [message for message in log if message.subject == DECIDED]
    assert desired(log) == [1, 2, 3]
    assert [state.decision_id for state in chain] == [id_of(message) for message in decided]
    assert [message.subject for message in log] == [DECIDED] * 3, "one message a decision"


async def test_a_state_of_the_layout_before_is_read_and_none_older(
    nats_server: NatsServer,
) -> None:
    first, second, third = await sampled(nats_server, *INPUTS)
    async with nats_server.bus(Service.AUTOSCALER) as bus:
        await handle(counting(bus, schema=1), first)
        await handle(counting(bus, schema=2), second)
        state = await state_of(bus)
        assert (state.state_schema, state.state["count"]) == (2, 2)
        log = await decisions(nats_server)
        with pytest.raises(ProblemsError) as caught:
            await handle(counting(bus, schema=4), third)
    (problem,) = caught.value.problems
    assert (problem.code, problem.value) == (ErrorCode.RULE_BROKEN, 2)
    assert await decisions(nats_server) == log
