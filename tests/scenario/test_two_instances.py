"""Two instances of a deciding service decide what one does, each about half of it.

The same input, down to ids and times, is fed to one instance and to two, each a process of its own
at a server of its own. Policies only advise, so that nothing but the input leads to a decision.
"""

import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

import pytest

from inferbus_contracts.base import EventData
from inferbus_contracts.events.metrics import (
    MetricAggregate,
    MetricKind,
    MetricsSampled,
    TargetSample,
)
from inferbus_contracts.events.scaling import DecisionRecord, ScalingDemanded, TargetOption
from inferbus_contracts.events.spec import SpecChanged
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.resources.annotations import MODE, ApplyMode
from inferbus_contracts.resources.kinds import key_of
from inferbus_contracts.services import Service
from inferbus_contracts.topology import inbox_stream
from inferbus_shared.bus.jetstream import api
from inferbus_shared.clock import real_now_ms
from tests.scenario.fleet import mix_manifests
from tests.support.eventually import eventually
from tests.support.instances import running_instances, until_waiting
from tests.support.ledger import Event, read_ledger
from tests.support.nats import NatsServer, running_server
from tests.support.platform import SCALING_METRIC, model_manifests

pytestmark = pytest.mark.slow

MODELS = tuple(f"model-{number:02}" for number in range(32))
ROUNDS = 8
FAIR_SHARE = 0.3
LOOKS_BACK = {"period": "30m", "stabilizationWindow": "0s"}
"""Over all samples, so that their order counts; its timers don't fire while this runs."""

Input = Iterator[tuple[EventData, ObjectKey, int]]
"""What is said about which key, and when."""


def samples(start_ms: int) -> Input:
    """What the metrics collector would say of every model, again and again."""
    chance = random.Random(20)
    for number in range(ROUNDS):
        for model in MODELS:
            key, time_ms = ObjectKey("ModelServing", "default", model), start_ms + number
            metric = MetricAggregate(
                name=SCALING_METRIC, kind=MetricKind.GAUGE, value=chance.uniform(0, 40), pods=1
            )
            target = TargetSample(target=str(key), metrics=[metric], ready_pods=1)
            policy = str(key._replace(kind="AutoscalingPolicyBinding"))
            sample = MetricsSampled(
                policy=policy, taken_at_ms=time_ms, window_ms=0, targets=[target]
            )
            yield sample, key, time_ms


def demands(start_ms: int) -> Input:
    """What the autoscaler would say of every mix, again and again."""
    chance = random.Random(21)
    record = DecisionRecord(decider="d", version="1", policy="p", policy_digest="", input={})
    for number in range(ROUNDS):
        for model in MODELS:
            replicas = chance.randint(2, 12)
            demand = ScalingDemanded(
                capacity=replicas,
                replicas=replicas,
                current=2,
                apply=ApplyMode.ADVISE.value,
                targets=[option(f"{model}-cheap", 10), option(f"{model}-costly", 30)],
                record=record,
            )
            key = ObjectKey("AutoscalingPolicyBinding", "default", f"{model}-cheap")
            yield demand, key, start_ms + number


def option(name: str, cost: int) -> TargetOption:
    return TargetOption(
        target=f"ModelServing/default/{name}",
        uid=f"ModelServing/default/{name}",
        generation=1,
        current=1,
        min_replicas=1,
        max_replicas=8,
        cost=cost,
    )


def specs(service: Service) -> Iterator[tuple[SpecChanged, ObjectKey]]:
    """The objects that decisions rest on."""
    for model in MODELS:
        if service is Service.AUTOSCALER:
            documents = model_manifests(model, scaling=(1, 9))
        else:
            documents = mix_manifests(f"{model}-cheap", f"{model}-costly", most=8)
        for document in documents:
            key = key_of(document)
            document["metadata"]["annotations"] = {MODE: ApplyMode.ADVISE.value}
            if key.kind == "AutoscalingPolicy":
                document["spec"]["behavior"] = {
                    "scaleUp": {"stablePolicy": LOOKS_BACK},
                    "scaleDown": LOOKS_BACK,
                }
            uid = str(key)
            yield SpecChanged(uid=uid, generation=1, digest=uid, object=document), key


@pytest.mark.parametrize(
    ("service", "writer", "said"),
    [
        (Service.AUTOSCALER, Service.METRICS_COLLECTOR, samples),
        (Service.OPTIMIZER, Service.AUTOSCALER, demands),
    ],
)
async def test_two_instances_decide_like_one_and_share_the_work(
    service: Service,
    writer: Service,
    said: Callable[[int], Input],
) -> None:
    start_ms = real_now_ms()
    events = list(said(start_ms))
    (alone, _), (together, work) = [
        await decisions(service, instances, writer, events) for instances in (["a"], ["a", "b"])
    ]
    assert alone.keys() == together.keys()
    assert len(alone) == len(MODELS)
    assert sum(map(len, alone.values())) > 2 * len(MODELS), "few decisions to compare"
    for key, bodies in alone.items():
        assert together[key] == bodies, key
    assert work.keys() == {f"{service}/a", f"{service}/b"}
    assert min(work.values()) >= FAIR_SHARE * work.total(), work


async def decisions(
    service: Service,
    instances: Sequence[str],
    writer: Service,
    events: Sequence[tuple[EventData, ObjectKey, int]],
) -> tuple[dict[str, list[bytes]], Counter[str]]:
    """The bodies of all decisions by key, in order, and how many each instance made."""
    with running_server() as server:
        await server.provision()
        async with server.bus(Service.SPEC_WATCHER) as bus:
            for spec, key in specs(service):
                await bus.publish(bus.event(spec, key, id=spec.uid))
        with running_instances(server, service, instances):
            await until_waiting(server, service, len(instances))
            async with server.bus(writer) as bus:
                for number, (data, key, time_ms) in enumerate(events):
                    id_ = f"input-{number}"
                    await bus.publish(bus.event(data, key, id=id_, time_ms=time_ms))
            await until_handled(server, service, len(events))
        async with server.bus(Service.CLI) as bus:
            ledger = await read_ledger(bus)
    assert not ledger.dead_letters
    made = [one for one in ledger.decisions if one.envelope.source.startswith(f"{service}/")]
    return bodies_by_key(made), Counter(one.envelope.source for one in made)


def bodies_by_key(made: Sequence[Event]) -> dict[str, list[bytes]]:
    found: dict[str, list[bytes]] = {}
    for decision in made:
        found.setdefault(str(decision.key), []).append(decision.data.to_json())
    return found


async def until_handled(server: NatsServer, service: Service, events: int) -> None:
    """Wait until all of the input is acknowledged."""
    inbox = inbox_stream(service)
    async with server.connection() as connection:

        async def handled() -> bool:
            durables = (await api(connection, f"CONSUMER.LIST.{inbox}"))["consumers"]
            left = sum(one["num_pending"] + one["num_ack_pending"] for one in durables)
            info = await api(connection, f"STREAM.INFO.{inbox}")
            return not left and int(info["state"]["last_seq"]) >= events

        await eventually(handled, 60)
