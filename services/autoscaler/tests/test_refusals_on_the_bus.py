"""A policy that can't be decided by is told once, by however many, until it is mended."""

from typing import Any

from inferbus_autoscaler.main import serve
from inferbus_autoscaler.settings import AutoscalerSettings
from inferbus_contracts.events.scaling import ScalingRefused
from inferbus_contracts.events.spec import SpecChanged
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.services import Service
from inferbus_contracts.subjects import wildcard
from inferbus_shared.bus.bus import Bus
from inferbus_shared.bus.jetstream import api
from tests.support.eventually import eventually
from tests.support.nats import NatsServer
from tests.support.services import running_service

GROUP = "workload.serving.volcano.sh/v1alpha1"
METRIC = {"metricName": "waiting", "targetValue": "2"}
POLICY = ObjectKey("AutoscalingPolicy", "default", "scale")
BINDING = ObjectKey("AutoscalingPolicyBinding", "default", "scale")


def fact(key: ObjectKey, generation: int, spec: dict[str, Any]) -> SpecChanged:
    metadata = {"name": key.name, "namespace": key.namespace}
    document = {"apiVersion": GROUP, "kind": key.kind, "metadata": metadata, "spec": spec}
    return SpecChanged(
        uid=f"uid of {key}", generation=generation, digest=f"d{generation}", object=document
    )


def binding(least: int, most: int, generation: int) -> SpecChanged:
    single = {"target": {"targetRef": {"name": "chat"}}, "minReplicas": least, "maxReplicas": most}
    spec = {"policyRef": {"name": POLICY.name}, "homogeneousTarget": single}
    return fact(BINDING, generation, spec)


async def tell(watcher: Bus, key: ObjectKey, data: SpecChanged) -> None:
    await watcher.publish(watcher.event(data, key, id=f"{key} {data.generation}"))


async def refusal(bus: Bus) -> ScalingRefused | None:
    event = await bus.last(ScalingRefused.event_type, BINDING)
    return event.data if event and isinstance(event.data, ScalingRefused) else None


async def told(server: NatsServer) -> int:
    """How often anything was refused, or taken back."""
    async with server.connection() as connection:
        about = {"subjects_filter": wildcard(ScalingRefused.event_type)}
        info = await api(connection, "STREAM.INFO.FACTS", about)
        return sum((info["state"].get("subjects") or {}).values())


async def test_as_d18_crossed_bounds_are_told_once_and_taken_back(nats_server: NatsServer) -> None:
    settings = AutoscalerSettings()
    async with (
        nats_server.bus(Service.SPEC_WATCHER) as watcher,
        nats_server.bus(Service.CLI) as people,
    ):
        await tell(watcher, POLICY, fact(POLICY, 1, {"metrics": [METRIC]}))
        await tell(watcher, BINDING, binding(12, 9, 1))
        async with (
            running_service(nats_server, serve, settings, "a"),
            running_service(nats_server, serve, settings, "b"),
        ):
            refused = await eventually(lambda: refusal(people))
            assert refused is not None
            (problem,) = refused.problems
            assert problem.field == "targets[0].minReplicas"
            assert problem.value == 12
            assert "maxReplicas (9)" in problem.message
            assert problem.remedy

            await tell(watcher, BINDING, binding(1, 9, 2))

            async def mended() -> bool:
                last = await refusal(people)
                return last is not None and not last.problems

            await eventually(mended)
            assert await told(nats_server) == 2
