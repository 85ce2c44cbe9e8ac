"""Status of every kind on a real server: what others tell comes back as what the object says."""

from typing import Any

from expansion_builders import backend, booster, open_model, playground, runtime
from watching import (
    Document,
    apply,
    conditions,
    delete,
    find,
    last_sequence,
    saying,
    spec_watcher,
    there,
)

from inferbus_contracts.api.objects import (
    ObjectVerb,
    ScaleReply,
    ScaleRequest,
    StatusReply,
    StatusRequest,
    object_subject,
)
from inferbus_contracts.base import EventData
from inferbus_contracts.conditions import condition
from inferbus_contracts.events.route import RoutesResolved
from inferbus_contracts.events.scaling import (
    Allocation,
    ApplyOutcome,
    DecisionRecord,
    Mode,
    ScalingAllocated,
    ScalingApplied,
    ScalingDecided,
)
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.services import Service
from inferbus_contracts.topology import OBJECTS_BUCKET, bucket_stream
from inferbus_shared.bus.bus import Bus
from tests.support.eventually import eventually
from tests.support.nats import NatsServer
from tests.support.platform import model_manifests

RECORD = DecisionRecord(decider="d", version="1", policy="p", policy_digest="d", input={})


async def tell(server: NatsServer, service: Service, data: EventData, key: str, id_: str) -> None:
    async with server.bus(service) as bus:
        await bus.publish(bus.event(data, ObjectKey.parse(key), id=id_))


async def set_status(server: NatsServer, key: str, **fields: Any) -> None:
    """What the workload-reconciler says of its workload."""
    async with server.bus(Service.WORKLOAD_RECONCILER) as bus:
        (found,) = await there(bus, key)
        mine = {"type": "Available", "status": "True", "reason": "AllGroupsReady", "message": ""}
        status = {**(found.get("status") or {}), **fields, "observedGeneration": 1}
        kept = [one for one in status.get("conditions", ()) if one["type"] != "Available"]
        stamped = {**mine, "observedGeneration": 1, "lastTransitionTime": "2026-01-01T00:00:00Z"}
        status["conditions"] = [*kept, stamped]
        request = StatusRequest(key=key, status=status)
        await bus.ask(object_subject(ObjectVerb.STATUS), request, StatusReply)


async def with_fields(bus: Bus, key: str, **fields: Any) -> Document:
    """The status, once it holds these fields."""
    last: Document = {}

    async def holds() -> Document | None:
        nonlocal last
        last = (await there(bus, key))[0].get("status") or {}
        return last if fields.items() <= last.items() else None

    found = await eventually(holds, what=lambda: f"{key} has {fields}: {last}")
    assert found is not None
    return found


async def test_a_booster_is_active_with_its_workloads(nats_server: NatsServer) -> None:
    async with spec_watcher(nats_server), nats_server.bus(Service.CLI) as bus:
        await apply(bus, booster(backend(name="a"), backend(name="b")))
        key = "ModelBooster/llm/chat"
        await saying(
            bus,
            key,
            Accepted=("True", "Accepted"),
            Initialized=("True", "ModelCreating"),
            Active=("False", "ModelProcessing"),
        )
        await set_status(nats_server, "ModelServing/llm/chat-a", availableReplicas=1)
        replicas = [{"name": "a", "replicas": 1}, {"name": "b", "replicas": 0}]
        await with_fields(bus, key, backendStatuses=replicas)
        await set_status(nats_server, "ModelServing/llm/chat-b", availableReplicas=2)
        said = await saying(bus, key, Active=("True", "ModelAvailable"))
        assert said["status"]["backendStatuses"][1] == {"name": "b", "replicas": 2}
        assert said["status"]["observedGeneration"] == 1
        assert "Failed" not in conditions(said)
        await saying(bus, "ModelServing/llm/chat-a", Accepted=("True", "Accepted"))


async def test_what_runs_flows_up_from_workload_to_service_to_playground(
    nats_server: NatsServer,
) -> None:
    async with spec_watcher(nats_server), nats_server.bus(Service.CLI) as bus:
        await apply(bus, open_model(), playground())
        key = "Playground/default/play"
        await saying(bus, key, Progressing=("True", "Pending"))
        workload = "LeaderWorkerSet/default/play"
        await set_status(nats_server, workload, replicas=2, hpaPodSelector="a=b")
        service = await saying(
            bus,
            "Service/default/play",
            Available=("True", "ServiceReady"),
            Progressing=("False", "ServiceReady"),
        )
        own = await saying(
            bus,
            key,
            Available=("True", "PlaygroundReady"),
            Progressing=("False", "PlaygroundReady"),
        )
        for one in (service, own):
            assert (one["status"]["replicas"], one["status"]["selector"]) == (2, "a=b")
        await delete(bus, workload)
        await saying(
            bus,
            key,
            Available=("False", "PlaygroundNotReady"),
            Progressing=("True", "PlaygroundInProgress"),
        )


async def test_a_route_and_a_server_say_what_became_of_them(nats_server: NatsServer) -> None:
    _, server, route = model_manifests("chat")
    async with spec_watcher(nats_server), nats_server.bus(Service.CLI) as bus:
        results = (await apply(bus, server, route)).results
        for result in results:
            fact = RoutesResolved(
                uid=result.uid,
                generation=1,
                conditions=[condition("Ready", False, "NoEndpoints", "0 of 0")],
                endpoints=3,
                ready_endpoints=2,
            )
            publisher = Service.ROUTER_CONFIG_PUBLISHER
            await tell(nats_server, publisher, fact, result.key, f"of {result.key}")
        for result in results:
            said = await saying(bus, result.key, Ready=("False", "NoEndpoints"))
            assert said["status"]["endpoints"] == 3
            assert said["status"]["readyEndpoints"] == 2
            assert said["status"]["observedGeneration"] == 1


async def test_a_binding_says_what_scales_from_how_many_to_how_many(
    nats_server: NatsServer,
) -> None:
    serving, _, _, policy, binding = model_manifests("chat", scaling=(1, 5))
    target, key = "ModelServing/default/chat", "AutoscalingPolicyBinding/default/chat"
    async with spec_watcher(nats_server), nats_server.bus(Service.CLI) as bus:
        await apply(bus, policy, binding)
        await saying(
            bus, key, Ready=("False", "ReconcileFailed"), TargetFound=("False", "TargetInvalid")
        )
        uid = (await apply(bus, serving)).results[0].uid
        await saying(bus, key, Ready=("True", "Reconciled"), TargetFound=("True", "TargetFound"))
        one = {"name": "chat", "currentReplicas": 1, "desiredReplicas": 1}
        await with_fields(bus, key, homogeneousStatus=one)

        decided = ScalingDecided(
            current=1,
            desired=4,
            mode=Mode.PANIC,
            target_uid=uid,
            target_generation=1,
            record=RECORD,
        )
        await tell(nats_server, Service.AUTOSCALER, decided, target, "decision")
        four = one | {"desiredReplicas": 4, "mode": "Panic"}
        await with_fields(bus, key, homogeneousStatus=four)

        async with nats_server.bus(Service.WORKLOAD_RECONCILER) as reconciler:
            scale = ScaleRequest(key=target, replicas=4, decision_id="decision")
            await reconciler.ask(object_subject(ObjectVerb.SCALE), scale, ScaleReply)
        await with_fields(bus, key, homogeneousStatus=four | {"currentReplicas": 4})
        applied = ScalingApplied(
            decision_id="decision", outcome=ApplyOutcome.APPLIED, replicas=4, generation=2, uid=uid
        )
        await tell(nats_server, Service.WORKLOAD_RECONCILER, applied, target, "applied")
        await eventually(lambda: has_scale_time(bus, key))

        rival = {**binding, "metadata": {"name": "rival"}}
        await apply(bus, rival)
        await saying(
            bus, "AutoscalingPolicyBinding/default/rival", Ready=("False", "ReconcileFailed")
        )
        await delete(bus, key)
        await saying(bus, "AutoscalingPolicyBinding/default/rival", Ready=("True", "Reconciled"))


async def has_scale_time(bus: Bus, key: str) -> bool:
    (found,) = await there(bus, key)
    return "lastScaleTime" in found["status"]["homogeneousStatus"]


async def test_a_mix_says_what_the_optimizer_gave_each_target(nats_server: NatsServer) -> None:
    first, *_ = model_manifests("first")
    second, _, _, policy, binding = model_manifests("second", scaling=(1, 5))
    targets = [
        {"target": {"targetRef": {"name": name}}, "minReplicas": 1, "maxReplicas": 5, "cost": 10}
        for name in ("first", "second")
    ]
    mix = {"policyRef": {"name": "second"}, "heterogeneousTarget": {"params": targets}}
    async with spec_watcher(nats_server), nats_server.bus(Service.CLI) as bus:
        results = (await apply(bus, first, second, policy, {**binding, "spec": mix})).results
        shares = [
            Allocation(target=one.key, uid=one.uid, generation=1, current=1, desired=desired)
            for one, desired in zip(results, (2, 3), strict=False)
        ]
        allocated = ScalingAllocated(allocations=shares, cost=50, optimal_cost=50, record=RECORD)
        key = "AutoscalingPolicyBinding/default/second"
        await tell(nats_server, Service.OPTIMIZER, allocated, key, "allocation")
        await with_fields(
            bus,
            key,
            heterogeneousStatus=[
                {"name": "first", "currentReplicas": 1, "desiredReplicas": 2},
                {"name": "second", "currentReplicas": 1, "desiredReplicas": 3},
            ],
        )


async def test_everything_else_says_that_it_is_accepted_and_what_is_doubtful(
    nats_server: NatsServer,
) -> None:
    serving, _, _, policy, _ = model_manifests("chat", scaling=(1, 5))
    provider = {
        "apiVersion": "networking.serving.volcano.sh/v1alpha1",
        "kind": "ExternalModelProvider",
        "metadata": {"name": "hub"},
        "spec": {"providerType": "OpenAI", "baseURL": "https://example.com/v1"},
    }
    objects = [serving, policy, open_model(), runtime("engine"), provider]
    async with spec_watcher(nats_server), nats_server.bus(Service.CLI) as bus:
        for result in (await apply(bus, *objects)).results:
            said = await saying(bus, result.key, Accepted=("True", "Accepted"))
            assert conditions(said).keys() == {"Accepted"}


async def test_a_restart_writes_no_status_again(nats_server: NatsServer) -> None:
    bucket = bucket_stream(OBJECTS_BUCKET)
    async with spec_watcher(nats_server), nats_server.bus(Service.CLI) as bus:
        await apply(
            bus, open_model(), playground(), booster(), *model_manifests("x", scaling=(1, 2))
        )
        await saying(bus, "Playground/default/play", Progressing=("True", "Pending"))
        await saying(bus, "ModelBooster/llm/chat", Active=("False", "ModelProcessing"))
        await saying(bus, "AutoscalingPolicyBinding/default/x", Ready=("True", "Reconciled"))
        await saying(bus, "BackendRuntime/_/vllm", Accepted=("True", "Accepted"))
        before = await settled(nats_server, bucket)
    async with spec_watcher(nats_server), nats_server.bus(Service.CLI) as bus:
        await apply(bus, open_model("marker"))
        await saying(bus, "OpenModel/_/marker", Accepted=("True", "Accepted"))
        created_and_accepted = 2
        assert await settled(nats_server, bucket) == before + created_and_accepted
        assert await find(bus, "Playground/default/play") is not None


async def settled(server: NatsServer, stream: str) -> int:
    """The last sequence of a stream once it stays the same for a while."""
    last = [-1] * 5

    async def same() -> bool:
        last.append(await last_sequence(server, stream))
        return len(set(last[-5:])) == 1

    await eventually(same)
    return last[-1]
