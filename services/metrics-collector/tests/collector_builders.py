"""Policies, workloads and pages for the tests, in as few words as possible."""

from typing import Any

from inferbus_contracts.events.spec import SpecChanged
from inferbus_contracts.events.workload import PodFact, WorkloadObserved
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.resources.autoscaling import AutoscalingPolicy
from inferbus_contracts.resources.scaling_targets import AutoscalingPolicyBinding
from inferbus_contracts.scaling.intents import PolicyObject
from inferbus_contracts.scaling.settlement import settle
from inferbus_metrics_collector.policy_targets import NamespaceGrants, Planned, plan_samples

API = "workload.serving.volcano.sh/v1alpha1"
CREATED = "2026-01-01T00:00:00Z"
NO_GRANTS = NamespaceGrants()

Scaler = AutoscalingPolicy | AutoscalingPolicyBinding


def metadata(name: str, created: str | None = CREATED, **fields: Any) -> dict[str, Any]:
    own = {"name": name, "namespace": "default"} | fields
    return own | ({"creationTimestamp": created} if created else {})


def policy(
    name: str = "p",
    metrics: list[dict[str, Any]] | None = None,
    created: str | None = CREATED,
    annotations: dict[str, str] | None = None,
    **spec: Any,
) -> AutoscalingPolicy:
    listed = [{"name": "load", "targetValue": 1}] if metrics is None else metrics
    return AutoscalingPolicy.model_validate(
        {
            "apiVersion": API,
            "kind": "AutoscalingPolicy",
            "metadata": metadata(name, created, annotations=annotations or {}),
            "spec": {"metrics": listed, **spec},
        }
    )


def binding(
    name: str = "b", created: str | None = CREATED, **spec: Any
) -> AutoscalingPolicyBinding:
    return AutoscalingPolicyBinding.model_validate(
        {
            "apiVersion": API,
            "kind": "AutoscalingPolicyBinding",
            "metadata": metadata(name, created),
            "spec": {"policyRef": {"name": "p"}, **spec},
        }
    )


def single(name: str = "m", **target: Any) -> dict[str, Any]:
    reference = {"kind": "ModelServing", "name": name} | target.pop("ref", {})
    return {"target": {"targetRef": reference, **target}, "minReplicas": 0, "maxReplicas": 9}


def mix(*names: str) -> dict[str, Any]:
    return {"params": [single(name) for name in names]}


def role(**fields: Any) -> dict[str, Any]:
    return {"minReplicas": 0, "maxReplicas": 9} | fields


def planned(*resources: Scaler, grants: NamespaceGrants = NO_GRANTS) -> Planned:
    objects = {
        key: PolicyObject(key=key, uid=f"uid-{key.name}", generation=1, resource=resource)
        for resource in resources
        for key in [ObjectKey(resource.kind, "default", resource.metadata.name)]
    }
    return plan_samples(settle(objects), grants)


def changed(resource: Scaler, generation: int = 1) -> SpecChanged:
    name = resource.metadata.name
    return SpecChanged(
        uid=f"uid-{name}", generation=generation, digest="", object=resource.to_dict()
    )


def pod(name: str = "m-0", *, ready: bool = True, entry: bool = True, **fields: Any) -> PodFact:
    given = {"phase": "Running", "address": "127.0.0.1", "starting_since_ms": 1} | fields
    return PodFact(name=name, uid=f"uid-{name}", ready=ready, entry=entry, **given)


def workload(*pods: PodFact, generation: int = 1) -> WorkloadObserved:
    return WorkloadObserved(uid="w", generation=generation, pods=list(pods))


def serving(name: str = "m", role: str = "") -> ObjectKey:
    return ObjectKey("ModelServing", "default", name, role)


def gauge_page(value: float, name: str = "load") -> bytes:
    return f"# TYPE {name} gauge\n{name} {value}\n".encode()
