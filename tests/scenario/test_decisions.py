"""Decisions under real load: each is made once, carried out once, and can be computed again."""

import json
import uuid
from collections.abc import Sequence

import pytest

from inferbus_contracts.catalog import Stream
from inferbus_contracts.events.metrics import MetricsSampled
from inferbus_contracts.events.scaling import ApplyOutcome, ScalingApplied, ScalingDecided
from inferbus_contracts.events.spec import SpecChanged
from inferbus_contracts.services import Service
from inferbus_contracts.subjects import subject
from inferbus_shared.bus.bus import Bus
from inferbus_shared.bus.direct import last_message
from inferbus_shared.bus.follow import Start
from inferbus_shared.bus.messages import Outgoing
from inferbus_shared.bus.store import store
from tests.scenario.fleet import CHAT, QUICK, Fleet, fleet_manifests, fleet_on
from tests.support.ledger import Event, Ledger, record_of
from tests.support.load import running_load
from tests.support.platform import Platform, model_manifests, running_platform

pytestmark = pytest.mark.slow

SAMPLES = 8
FORGED = ("now_ms", "replicas", "policyDigest", "stateBefore", "stateAfter", "before", "desired")
"""Fields of a decision, some of what it was computed from and some of what came of that."""
LONG_TOKENS = 100
"""Of an answer of some seconds: no sample falls between two requests of every client."""


async def test_one_decision_is_one_change_and_no_second_decision() -> None:
    with running_platform("--startup", "0", environment=QUICK) as platform:
        platform.apply(*model_manifests("chat", scaling=(1, 3)))
        async with (
            fleet_on(platform) as fleet,
            platform.bus() as bus,
            running_load(platform.router) as load,
        ):
            await fleet.serving(["chat"])
            load.clients("chat", 2, max_tokens=LONG_TOKENS)
            await samples(bus, SAMPLES)
            before = await fleet.adds_up()
            await samples(bus, 1)  # the next one is a whole interval away
            load.clients("chat", 6, max_tokens=LONG_TOKENS)
            await fleet.scaled(3)
            await samples(bus, SAMPLES)
            after = await fleet.adds_up()
            assert load.counts.bad == 0, load.counts

    (decided,) = new(before.decisions, after.decisions)
    assert isinstance(decided.data, ScalingDecided)
    assert (decided.data.current, decided.data.desired) == (1, 3)
    (answer,) = new(before.answers, after.answers)
    assert isinstance(answer.data, ScalingApplied)
    assert (answer.data.decision_id, answer.data.outcome) == (decided.id, ApplyOutcome.APPLIED)
    (change,) = new(before.changes, after.changes)
    assert isinstance(change.data, SpecChanged)
    assert (change.key, change.data.changed_by) == (CHAT, "scale")
    assert change.data.generation == answer.data.generation == decided.data.target_generation + 1


async def samples(bus: Bus, number: int) -> None:
    """Wait for so many more samples of `chat`."""
    events = bus.events(bus.follow(MetricsSampled.event_type, Start.new(), kind=CHAT.kind))
    for _ in range(number):
        await anext(events)


def new(before: Sequence[Event], after: Sequence[Event]) -> Sequence[Event]:
    """What came since."""
    known = {event.id for event in before}
    return [event for event in after if event.id not in known]


async def test_a_history_computed_again_is_the_same_to_the_byte_and_a_changed_one_is_not() -> None:
    with running_platform("--startup", "0", environment=QUICK) as platform:
        platform.apply(*fleet_manifests())
        async with fleet_on(platform) as fleet:
            await fleet.serving()
            ledger = await up_and_down(fleet)
        deciders = {record_of(decision).decider for decision in ledger.decisions}
        assert deciders == {Service.AUTOSCALER, Service.OPTIMIZER}
        code, number, different = replayed(platform)
        assert (code, different) == (0, [])
        assert number >= len(ledger.decisions)

        async with platform.bus(Service.AUTOSCALER) as bus:
            forged = {field: await forge(bus, field) for field in FORGED}
        code, _, different = replayed(platform)
        assert code == 1
        assert sorted(different) == sorted(forged.values()), forged


async def up_and_down(fleet: Fleet) -> Ledger:
    """Load that asks for three replicas, and then for one."""
    async with running_load(fleet.platform.router) as load:
        for replicas in (3, 1):
            fleet.load(load, replicas)
            await fleet.scaled(replicas)
    return await fleet.adds_up()


def replayed(platform: Platform) -> tuple[int, int, list[str]]:
    """Exit code, number of decisions, and the ids of those that came out different."""
    result = platform.inferbus("replay", "--verify", "-o", "json", check=False)
    report = json.loads(result.stdout)
    assert report["identical"] == report["decisions"] - len(report["different"])
    return result.returncode, report["decisions"], [one["id"] for one in report["different"]]


async def forge(bus: Bus, field: str) -> str:
    """Store the last decision about `chat` once more with one byte of it changed; its id."""
    place = subject(ScalingDecided.event_type, CHAT)
    last = await last_message(bus.connection, Stream.DECISIONS, place)
    assert last is not None
    at = last.data.index(f'"{field}":'.encode()) + len(field) + 3
    at += last.data[at : at + 1] == b'"'
    changed = b"1" if last.data[at : at + 1] != b"1" else b"2"
    id_ = str(uuid.uuid4())
    own = {name: value for name, value in last.headers.items() if name.startswith("ce-")}
    headers = own | {"ce-id": id_, "Nats-Msg-Id": id_}
    await store(
        bus.connection, Outgoing(place, last.data[:at] + changed + last.data[at + 1 :], headers)
    )
    return id_
