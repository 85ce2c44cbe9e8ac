"""Events that wait at the same time are stored in one go, each as if it were alone."""

import asyncio
from collections.abc import Sequence

import pytest

from inferbus_contracts.catalog import Stream
from inferbus_contracts.errors import ErrorCode, Problem, ProblemsError
from inferbus_contracts.events.spec import SpecChanged
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.services import Service
from inferbus_shared.bus.bus import Bus
from inferbus_shared.bus.group_commit import FEWEST_TOGETHER, GroupCommit
from inferbus_shared.bus.jetstream import api
from inferbus_shared.bus.messages import Outgoing
from inferbus_shared.bus.store import MAX_BATCH, Stored
from inferbus_shared.clock import SystemClock
from tests.support.nats import NatsServer


class CountingBus(Bus):
    """Counts how events were stored, and refuses some of them."""

    refused = ""
    commits = 0
    alone = 0

    async def commit(self, messages: Sequence[Outgoing]) -> Stored:
        self.commits += 1
        if any(one.headers["ce-id"] == self.refused for one in messages):
            raise ProblemsError(refusal())
        return await super().commit(messages)

    async def publish(self, message: Outgoing) -> Stored:
        self.alone += 1
        if message.headers["ce-id"] == self.refused:
            raise ProblemsError(refusal())
        return await super().publish(message)


def refusal() -> Problem:
    return Problem(code=ErrorCode.BUS_REFUSED, message="not this one")


def event(bus: Bus, number: int) -> Outgoing:
    key = ObjectKey("ModelServing", "default", f"m{number}")
    fact = SpecChanged(uid="u", generation=1, digest="d", object={})
    return bus.event(fact, key, id=f"id-{number}")


async def stored(bus: Bus) -> int:
    info = await api(bus.connection, f"STREAM.INFO.{Stream.FACTS}")
    return int(info["state"]["messages"])


async def publish_all(group: GroupCommit, messages: Sequence[Outgoing], each: int) -> list[object]:
    """By callers that bring so many each, all at once."""
    parts = (messages[at : at + each] for at in range(0, len(messages), each))
    return await asyncio.gather(*map(group.publish, parts), return_exceptions=True)


@pytest.mark.parametrize(
    ("number", "each", "commits", "alone"),
    [
        (0, 1, 0, 0),
        (FEWEST_TOGETHER - 1, FEWEST_TOGETHER - 1, 0, FEWEST_TOGETHER - 1),
        (3 * FEWEST_TOGETHER, FEWEST_TOGETHER, 2, 0),
        (MAX_BATCH + 2 * FEWEST_TOGETHER, FEWEST_TOGETHER, 3, 0),
        (MAX_BATCH + 1, MAX_BATCH + 1, 0, MAX_BATCH + 1),
    ],
)
async def test_many_are_stored_in_one_go_and_few_one_by_one(
    nats_server: NatsServer, number: int, each: int, commits: int, alone: int
) -> None:
    """The first doesn't wait for company; whoever comes meanwhile has some."""
    async with nats_server.connection(Service.SPEC_WATCHER) as connection:
        bus = CountingBus(connection, SystemClock())
        messages = [event(bus, one) for one in range(number)]
        assert not any(await publish_all(GroupCommit(bus), messages, each))
        assert await stored(bus) == number
        assert (bus.commits, bus.alone) == (commits, alone)


async def test_an_event_that_was_stored_before_is_stored_once_and_keeps_none_back(
    nats_server: NatsServer,
) -> None:
    async with nats_server.bus(Service.SPEC_WATCHER) as bus:
        messages = [event(bus, one) for one in range(2 * FEWEST_TOGETHER)]
        await bus.publish(messages[7])
        assert not any(await publish_all(GroupCommit(bus), messages, 3))
        assert await stored(bus) == len(messages)


async def test_what_cannot_be_stored_is_told_to_who_brought_it_and_keeps_none_back(
    nats_server: NatsServer,
) -> None:
    async with nats_server.connection(Service.SPEC_WATCHER) as connection:
        bus = CountingBus(connection, SystemClock())
        bus.refused = "id-7"
        messages = [event(bus, one) for one in range(2 * FEWEST_TOGETHER)]
        answers = await publish_all(GroupCommit(bus), messages, 3)
        assert [at for at, answer in enumerate(answers) if answer] == [7 // 3]
        assert isinstance(answers[7 // 3], ProblemsError)
        assert await stored(bus) == len(messages) - 1


async def test_whoever_waits_no_more_takes_no_other_along(nats_server: NatsServer) -> None:
    async with nats_server.bus(Service.SPEC_WATCHER) as bus:
        group = GroupCommit(bus)
        messages = [event(bus, one) for one in range(2 * FEWEST_TOGETHER)]
        waiting = [asyncio.ensure_future(group.publish([one])) for one in messages]
        await asyncio.sleep(0)
        waiting[0].cancel()
        answers = await asyncio.gather(*waiting, return_exceptions=True)
        assert isinstance(answers[0], asyncio.CancelledError)
        assert not any(answers[1:])
        assert await stored(bus) >= len(messages) - 1
