"""The console on a real bus: questions through the bus, as the user of the command line."""

import contextlib
from collections.abc import AsyncIterator, Sequence

import pytest

from inferbus_console import history
from inferbus_console.decisions import KEPT
from inferbus_console.main import serve
from inferbus_console.settings import ConsoleSettings
from inferbus_contracts.api.console import (
    ConsoleQuery,
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
from inferbus_contracts.errors import ErrorCode, ProblemsError
from inferbus_contracts.events.control import ControlApproved
from inferbus_contracts.events.demand import DemandObserved, ModelDemand
from inferbus_contracts.events.scaling import ApplyOutcome, ScalingApplied
from inferbus_contracts.events.workload import WorkloadObserved
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.services import Service
from inferbus_shared.bus.bus import Bus
from inferbus_shared.bus.jetstream import api
from services.console.tests.console_builders import (
    A100,
    H100,
    MIX,
    TARGET,
    allocated,
    decided,
    policy_specs,
)
from tests.support.eventually import eventually
from tests.support.nats import NODES, NatsServer
from tests.support.services import running_service


@contextlib.asynccontextmanager
async def console(server: NatsServer, instance: str = "c") -> AsyncIterator[None]:
    async with running_service(server, serve, ConsoleSettings(), instance):
        yield


async def why(people: Bus, target: str, limit: int = 1) -> WhyReply:
    request = WhyRequest(target=target, limit=limit)
    return await people.ask(console_subject(ConsoleQuery.WHY), request, WhyReply)


async def order(people: Bus, verb: OrderVerb, scope: str, decision_id: str | None = None) -> str:
    request = OrderRequest(verb=verb, scope=scope, who="ada", why="a test", decision_id=decision_id)
    reply = await people.ask(console_subject(ConsoleQuery.ORDER), request, OrderReply)
    return reply.event_id


async def decide(decider: Bus, count: int, apply: str = "auto") -> list[str]:
    """That many decisions about `chat`; their ids, oldest first."""
    ids = [f"decision-{number}-{apply}" for number in range(count)]
    for number, id_ in enumerate(ids):
        await decider.publish(decider.event(decided(number, apply=apply), TARGET, id=id_))
    return ids


async def answer(reconciler: Bus, target: ObjectKey, decision_id: str, *, id_: str) -> None:
    data = ScalingApplied(
        decision_id=decision_id, outcome=ApplyOutcome.APPLIED, replicas=1, generation=1, uid="u"
    )
    await reconciler.publish(reconciler.event(data, target, id=id_))


async def seen(people: Bus, ids: Sequence[str]) -> bool:
    reply = await why(people, str(TARGET))
    return reply.decisions[0].id == ids[-1]


@pytest.mark.parametrize("look_back_hours", [(1,), (0,)], ids=["lately", "long ago"])
async def test_decisions_older_than_memory_are_read_from_the_log(
    nats_server: NatsServer, monkeypatch: pytest.MonkeyPatch, look_back_hours: tuple[int, ...]
) -> None:
    monkeypatch.setattr(history, "_LOOK_BACK_HOURS", look_back_hours)
    async with (
        nats_server.bus(Service.AUTOSCALER) as decider,
        nats_server.bus(Service.WORKLOAD_RECONCILER) as reconciler,
        nats_server.bus(Service.CLI) as people,
    ):
        ids = await decide(decider, KEPT + 5)
        await answer(reconciler, TARGET, ids[-1], id_="a1")
        await answer(reconciler, TARGET, ids[-3], id_="a2")
        await answer(reconciler, TARGET, ids[-1], id_="a3")
        async with console(nats_server):
            reply = await why(people, "chat", 100)
            assert [one.id for one in reply.decisions] == ids[::-1]
            assert [len(one.applied) for one in reply.decisions][:4] == [2, 0, 1, 0]
            last = (await why(people, "chat")).decisions
            assert [one.id for one in last] == [ids[-1]]
            assert last[0].body == decided(KEPT + 4).to_dict()


async def test_a_mix_is_explained_by_the_name_of_any_of_its_targets(
    nats_server: NatsServer,
) -> None:
    async with (
        nats_server.bus(Service.SPEC_WATCHER) as watcher,
        nats_server.bus(Service.OPTIMIZER) as optimizer,
        nats_server.bus(Service.WORKLOAD_RECONCILER) as reconciler,
        nats_server.bus(Service.CLI) as people,
    ):
        for key, data in policy_specs().items():
            await watcher.publish(watcher.event(data, key, id=f"spec {key}"))
        mix = allocated({H100: (0, 1), A100: (1, 0)}, apply="approve")
        await optimizer.publish(optimizer.event(mix, MIX, id="mix-1"))
        for target in (H100, A100):
            await answer(reconciler, target, "mix-1", id_=f"answer {target}")
        async with console(nats_server):
            for word in ("h100", "a100", "mix", str(MIX)):
                (decision,) = (await why(people, word)).decisions
                assert (decision.id, decision.key, len(decision.applied)) == ("mix-1", str(MIX), 2)
            with pytest.raises(ProblemsError) as told:
                await why(people, str(TARGET))
            (problem,) = told.value.problems
            assert problem.code is ErrorCode.NOT_FOUND
            assert "AutoscalingPolicyBinding/default/chat scales it" in problem.remedy

            await order(people, OrderVerb.APPROVE, "h100")
            for target in (H100, A100):
                approved = await people.last("control.approved", target)
                assert approved is not None
                assert isinstance(approved.data, ControlApproved)
                assert approved.data.decision_id == "mix-1"


async def test_orders_are_written_once_and_in_their_order(nats_server: NatsServer) -> None:
    async with (
        nats_server.bus(Service.AUTOSCALER) as decider,
        nats_server.bus(Service.WORKLOAD_RECONCILER) as reconciler,
        nats_server.bus(Service.CLI) as people,
    ):
        observed = WorkloadObserved(uid="u", generation=1, desired=1, replicas=1, ready=1)
        await reconciler.publish(reconciler.event(observed, TARGET, id="observed"))
        ids = await decide(decider, 2, apply="approve")
        async with console(nats_server), console(nats_server, "second"):
            verbs = (OrderVerb.FREEZE, OrderVerb.THAW, OrderVerb.FREEZE)
            written = [await order(people, verb, "chat") for verb in verbs]
            assert len(set(written)) == 3, "frozen, thawed and frozen again"
            frozen = await people.last("control.frozen", TARGET)
            assert frozen is not None
            assert frozen.id == written[-1]

            with pytest.raises(ProblemsError, match=f"superseded by {ids[1]}"):
                await order(people, OrderVerb.APPROVE, str(TARGET), ids[0])
            await order(people, OrderVerb.APPROVE, str(TARGET), ids[1])
            approved = await people.last("control.approved", TARGET)
            assert approved is not None
            assert isinstance(approved.data, ControlApproved)
            assert approved.data.decision_id == ids[1]
            with pytest.raises(ProblemsError, match="no such decision"):
                await order(people, OrderVerb.APPROVE, str(TARGET), "another")
            with pytest.raises(ProblemsError, match="nothing of that name"):
                await order(people, OrderVerb.FREEZE, "chatt")


async def test_top_shows_what_was_said_and_what_is_said_now(nats_server: NatsServer) -> None:
    async with (
        nats_server.bus(Service.AUTOSCALER) as decider,
        nats_server.bus(Service.WORKLOAD_RECONCILER) as reconciler,
        nats_server.bus(Service.ROUTER) as router,
        nats_server.bus(Service.CLI) as people,
    ):
        observed = WorkloadObserved(uid="u", generation=1, desired=2, replicas=2, ready=1)
        await reconciler.publish(reconciler.event(observed, TARGET, id="observed"))
        async with console(nats_server):
            ids = await decide(decider, 1)
            await eventually(lambda: seen(people, ids))

            async def traffic() -> TopReply | None:
                now_ms = router.clock.now_ms()
                demand = DemandObserved(
                    router="r",
                    interval_start_ms=now_ms - 1000,
                    interval_ms=1000,
                    models=[ModelDemand(model="chat", arrivals=20)],
                )
                await router.publish(router.event(demand, TARGET, id=f"demand {now_ms}"))
                subject = console_subject(ConsoleQuery.TOP)
                reply = await people.ask(subject, TopRequest(), TopReply)
                return reply if reply.models else None

            reply = await eventually(traffic)
            assert reply is not None
            assert (reply.targets[0].ready, reply.targets[0].last_decision) == (1, "1 → 0")
            assert reply.models[0].requests_per_second >= 2


async def test_the_inventory_names_what_is_missing(nats_server: NatsServer) -> None:
    async with console(nats_server), nats_server.bus(Service.CLI) as people:
        subject = console_subject(ConsoleQuery.STATUS)
        request = InventoryRequest(nodes=list(NODES))
        whole = await people.ask(subject, request, InventoryReply)
        assert whole.missing == []
        async with nats_server.connection() as provisioner:
            await api(provisioner, "CONSUMER.DELETE.INBOX_AUTOSCALER.autoscaler-p3")
            await api(provisioner, "STREAM.DELETE.AUDIT")
        reply = await people.ask(subject, request, InventoryReply)
        assert [what.partition(":")[0] for what in reply.missing] == [
            "stream AUDIT",
            "durable INBOX_AUTOSCALER.autoscaler-p3",
        ]
        assert len(reply.streams) == len(whole.streams) - 1
        assert len(reply.durables) == len(whole.durables) - 1
