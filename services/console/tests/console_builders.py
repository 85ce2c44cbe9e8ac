"""Short ways to say what a test is about."""

from typing import Any

from inferbus_console.decisions import Decision
from inferbus_contracts.base import EventData
from inferbus_contracts.envelope import Envelope
from inferbus_contracts.events.scaling import (
    Allocation,
    DecisionRecord,
    Limiter,
    ScalingAllocated,
    ScalingDecided,
)
from inferbus_contracts.events.spec import SpecChanged
from inferbus_contracts.keys import ObjectKey
from inferbus_shared.bus.messages import Received

TARGET = ObjectKey("ModelServing", "default", "chat")
POLICY = ObjectKey("AutoscalingPolicy", "default", "chat")
BINDING = ObjectKey("AutoscalingPolicyBinding", "default", "chat")
MIX = ObjectKey("AutoscalingPolicyBinding", "default", "mix")
H100 = ObjectKey("ModelServing", "default", "h100")
A100 = ObjectKey("ModelServing", "default", "a100")
GROUP = "workload.serving.volcano.sh/v1alpha1"


def received(data: EventData, key: ObjectKey, sequence: int = 1, **changes: Any) -> Any:
    """An event as it stands in the log."""
    given: dict[str, Any] = {
        "id": f"event-{sequence}",
        "type": data.event_type,
        "source": "s",
        "time_ms": 1000 * sequence,
        "key": key,
    }
    return Received(Envelope(**(given | changes)), data, "STREAM", sequence)


def record(binding: Limiter = Limiter.NONE) -> DecisionRecord:
    return DecisionRecord(
        decider="d", version="1", policy="p", policy_digest="d", input={}, binding=binding
    )


def decided(desired: int = 3, binding: Limiter = Limiter.NONE, apply: str = "auto") -> Any:
    return ScalingDecided(
        current=1,
        desired=desired,
        apply=apply,
        target_uid="u",
        target_generation=1,
        record=record(binding),
    )


def allocated(shares: dict[ObjectKey, tuple[int, int]], apply: str = "auto") -> ScalingAllocated:
    """Current and desired replicas by target."""
    return ScalingAllocated(
        apply=apply,
        allocations=[
            Allocation(target=str(key), uid="u", generation=1, current=current, desired=desired)
            for key, (current, desired) in shares.items()
        ],
        cost=10,
        optimal_cost=9,
        record=record(),
    )


def decision(data: ScalingDecided | ScalingAllocated, key: ObjectKey, sequence: int) -> Decision:
    return Decision(f"event-{sequence}", 1000 * sequence, sequence, key, data)


def spec(key: ObjectKey, body: dict[str, Any]) -> SpecChanged:
    metadata = {"name": key.name, "namespace": key.namespace}
    document = {"apiVersion": GROUP, "kind": key.kind, "metadata": metadata, "spec": body}
    return SpecChanged(uid=f"uid of {key}", generation=1, digest="d", object=document)


def policy_specs() -> dict[ObjectKey, SpecChanged]:
    """`chat` is scaled by the binding `chat`, `h100` and `a100` by the binding `mix`."""
    metrics = {"metrics": [{"metricName": "waiting", "targetValue": "2"}]}
    single = {"target": {"targetRef": {"name": "chat"}}, "minReplicas": 1, "maxReplicas": 9}
    params = [
        {"target": {"targetRef": {"name": name}}, "minReplicas": 0, "maxReplicas": 4, "cost": 1}
        for name in ("h100", "a100")
    ]
    return {
        POLICY: spec(POLICY, metrics),
        BINDING: spec(BINDING, {"policyRef": {"name": "chat"}, "homogeneousTarget": single}),
        MIX: spec(MIX, {"policyRef": {"name": "chat"}, "heterogeneousTarget": {"params": params}}),
    }
