"""Two roles of one workload, decided about together and carried out, on a real server.

The autoscaler, the workload-reconciler and the spec-watcher are the real services; the test says
what the engines report.
"""

import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Any

from inferbus_autoscaler import main as autoscaler
from inferbus_autoscaler.core import recompute
from inferbus_autoscaler.settings import AutoscalerSettings
from inferbus_contracts.api.objects import AppliedDocument
from inferbus_contracts.catalog import Stream
from inferbus_contracts.events.control import ControlFrozen, ControlThawed
from inferbus_contracts.events.metrics import (
    MetricAggregate,
    MetricKind,
    MetricsSampled,
    TargetSample,
)
from inferbus_contracts.events.scaling import (
    ApplyOutcome,
    Limiter,
    ScalingApplied,
    ScalingDecided,
)
from inferbus_contracts.events.state import StateStored
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.services import Service
from inferbus_contracts.subjects import ROOT, subject
from inferbus_contracts.topology import state_type
from inferbus_shared.bus.bus import Bus
from inferbus_shared.bus.follow import Follower, Start
from inferbus_shared.bus.messages import Delivered
from inferbus_shared.objects.client import ObjectClient
from inferbus_spec_watcher import main as spec_watcher
from inferbus_spec_watcher.settings import SpecWatcherSettings
from inferbus_workload_reconciler import main as workload_reconciler
from inferbus_workload_reconciler.settings import WorkloadReconcilerSettings
from tests.support.eventually import eventually
from tests.support.ledger import contradictions, read_ledger
from tests.support.nats import NatsServer
from tests.support.platform import model_manifests
from tests.support.roles import roles_policy, split_into_roles
from tests.support.services import running_service

CHAT = ObjectKey("ModelServing", "default", "chat")
DECODE, PREFILL = CHAT._replace(role="decode"), CHAT._replace(role="prefill")
POLICY = ObjectKey("AutoscalingPolicy", "default", "chat")
STATE = subject(state_type(Service.AUTOSCALER), POLICY)
LOAD = "load"


def manifests(prefill: int, decode: int) -> list[dict[str, Any]]:
    """A workload of two roles, and a policy with one unit of load per replica of each."""
    workload = model_manifests("chat")[0]
    split_into_roles(workload, {"prefill": prefill, "decode": decode})
    at_once = {"scaleDown": {"period": "0s", "stabilizationWindow": "0s"}}
    metric = {"name": LOAD, "targetValue": "1"}
    return [workload, roles_policy(workload, metric, 9, ("0.5", "1"), behavior=at_once)]


class Roles:
    """The workload, and what its engines report."""

    def __init__(self, server: NatsServer, cli: Bus, collector: Bus) -> None:
        self._server = server
        self._cli = cli
        self._collector = collector
        self._objects = ObjectClient(cli, "test")
        self._rounds = 0

    async def apply(self, prefill: int, decode: int) -> None:
        documents = [AppliedDocument(object=one) for one in manifests(prefill, decode)]
        await self._objects.apply(documents)

    async def sample(self, prefill: float, decode: float) -> None:
        """One round of samples with these loads."""
        self._rounds += 1
        data = MetricsSampled(
            policy=str(POLICY),
            taken_at_ms=self._collector.clock.now_ms(),
            window_ms=0,
            targets=[_part(DECODE, decode), _part(PREFILL, prefill)],
        )
        event = self._collector.event(data, POLICY, id=f"sample-{self._rounds}")
        await self._collector.publish(event)

    async def pair(self) -> tuple[int, int]:
        """Replicas of prefill and decode, as they are stored."""
        stored = await self._objects.get(CHAT)
        roles = {role["name"]: role["replicas"] for role in stored["spec"]["template"]["roles"]}
        return roles["prefill"], roles["decode"]

    async def becomes(self, prefill: int, decode: int, load: Callable[[], Any]) -> None:
        """Wait until the pair is that, while the load is sampled again and again."""

        async def there() -> bool:
            if await self.pair() == (prefill, decode):
                return True
            await load()
            return False

        await eventually(there, 30, f"prefill/decode is {prefill}/{decode}")

    async def status(self) -> dict[str, Any]:
        return dict((await self._objects.get(POLICY)).get("status") or {})

    async def log(self) -> list[Delivered]:
        """Decisions, timers and states in the order in which they were stored."""
        async with self._server.connection() as connection:
            everything = Follower(connection, Stream.DECISIONS, f"{ROOT}.>", Start.everything())
            return [message async for message in everything.snapshot()]

    async def answers(self) -> list[ScalingApplied]:
        """What the reconciler said."""
        ledger = await read_ledger(self._cli)
        return [event.data for event in ledger.answers if isinstance(event.data, ScalingApplied)]

    async def adds_up(self) -> None:
        """Wait until nothing in the log contradicts the rest."""

        async def settled() -> bool:
            said = contradictions(await read_ledger(self._cli))
            assert not said, said
            return True

        await eventually(settled, 30)


def _part(key: ObjectKey, load: float) -> TargetSample:
    metric = MetricAggregate(name=LOAD, kind=MetricKind.GAUGE, value=load, pods=1)
    return TargetSample(target=str(key), metrics=[metric], ready_pods=1)


@contextlib.asynccontextmanager
async def running(server: NatsServer) -> AsyncIterator[Roles]:
    async with (
        running_service(server, spec_watcher.serve, SpecWatcherSettings()),
        running_service(server, workload_reconciler.serve, WorkloadReconcilerSettings()),
        running_service(server, autoscaler.serve, AutoscalerSettings()),
        server.bus(Service.CLI) as cli,
        server.bus(Service.METRICS_COLLECTOR) as collector,
    ):
        yield Roles(server, cli, collector)


def decisions_in(log: list[Delivered]) -> list[tuple[int, ObjectKey, ScalingDecided]]:
    """Position in the log, role, decision."""
    found = []
    for position, message in enumerate(log):
        for key in (DECODE, PREFILL):
            if message.subject == subject("scaling.decided", key):
                found.append((position, key, ScalingDecided.from_json(message.data)))
    return found


async def test_two_roles_move_together_and_every_decision_can_be_computed_again(
    nats_server: NatsServer,
) -> None:
    async with running(nats_server) as roles:
        await roles.apply(1, 2)
        await roles.becomes(4, 4, lambda: roles.sample(4, 2))
        await roles.becomes(2, 3, lambda: roles.sample(1, 3))
        await roles.adds_up()
        log = await roles.log()
        answers = await roles.answers()

    found = decisions_in(log)
    for position, _, decided in found:
        assert recompute(decided.record) == log[position].data
    up = [(key, one) for _, key, one in found if one.desired == 4 != one.current]
    assert [(key, one.current, one.record.binding) for key, one in up] == [
        (DECODE, 2, Limiter.RATIO),
        (PREFILL, 1, Limiter.NONE),
    ]
    first = next(position for position, _, one in found if one.desired == 4)
    assert [message.subject for message in log[first : first + 2]] == [
        subject("scaling.decided", DECODE),
        subject("scaling.decided", PREFILL),
    ]
    causes = {message.headers["ce-causationid"] for message in log[first : first + 2]}
    assert len(causes) == 1, "both follow from one sample, in one commit"
    assert {one.outcome for one in answers} <= {ApplyOutcome.APPLIED, ApplyOutcome.UNCHANGED}
    state = StateStored.from_json(next(one.data for one in log if one.subject == STATE))
    assert state.decision_ids is not None
    assert state.decision_ids.keys() == {str(DECODE), str(PREFILL)}


async def until_frozen(roles: Roles) -> int:
    """Ask for one more replica of both, until that is held back; what was asked for then.

    A sample that comes before the freeze is decided about as ever. Then the reconciler, which reads
    the log, holds both.
    """
    for number in range(4, 9):
        await roles.sample(number, number)

        async def settled(asked: int = number) -> str:
            if await roles.pair() == (asked, asked):
                return "carried out"
            answers = await roles.answers()
            frozen = {one.decision_id for one in answers if one.outcome is ApplyOutcome.FROZEN}
            log = await roles.log()
            last = {
                key: (log[position].headers["ce-id"], one.record)
                for position, key, one in decisions_in(log)
            }
            held = all(
                record.metrics[0].want == asked
                and (record.binding is Limiter.FREEZE or id_ in frozen)
                for id_, record in last.values()
            )
            return "held" if held else ""

        if await eventually(settled, 30, f"{number} is carried out, or held") == "held":
            return number
    raise AssertionError("the freeze is never heard of")


async def test_a_freeze_of_one_role_holds_the_other_and_the_status_says_how_they_stand(
    nats_server: NatsServer,
) -> None:
    async with (
        running(nats_server) as roles,
        nats_server.bus(Service.CONSOLE) as console,
    ):
        await roles.apply(2, 2)
        await roles.becomes(3, 3, lambda: roles.sample(3, 3))
        freeze = ControlFrozen(who="kim", why="test")
        await console.publish(console.event(freeze, PREFILL, id="freeze"))

        number = await until_frozen(roles)
        assert await roles.pair() == (number - 1, number - 1)
        thaw = ControlThawed(who="kim", why="done")
        await console.publish(console.event(thaw, PREFILL, id="thaw"))
        await roles.becomes(number, number, lambda: roles.sample(number, number))

        async def told() -> bool:
            status = (await roles.status()).get("disaggregatedStatus") or {}
            numbers = [
                (one["name"], one["currentReplicas"], one["desiredReplicas"])
                for one in status.get("roles", ())
            ]
            ratio = status.get("ratioStatus", {}).get("currentRatio")
            both = [("decode", number, number), ("prefill", number, number)]
            return (numbers, ratio) == (both, "1")

        await eventually(told, 30, "the status has both roles and their ratio")
        conditions = {one["type"]: one["status"] for one in (await roles.status())["conditions"]}
        assert conditions["RatioConstraintViolated"] == "False"
