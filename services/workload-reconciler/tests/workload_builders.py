"""Manifests and observed pods for the tests of the planner."""

from typing import Any

from inferbus_workload_reconciler.observed import ObservedPod, Owner
from inferbus_workload_reconciler.policy_parsing import parse_workload
from inferbus_workload_reconciler.workload import WorkloadSpec

UID = "ms-1"


def pod_template(image: str, **metadata: Any) -> dict[str, Any]:
    """A pod template with one container."""
    return {"metadata": metadata, "spec": {"containers": [{"name": "engine", "image": image}]}}


def role(
    name: str = "prefill", replicas: int = 1, workers: int = 0, image: str = "a", **fields: Any
) -> dict[str, Any]:
    """One entry of `template.roles`; a worker template comes with workers."""
    built = {
        "name": name,
        "replicas": replicas,
        "workerReplicas": workers,
        "entryTemplate": pod_template(image),
        **fields,
    }
    if workers:
        built.setdefault("workerTemplate", pod_template(image))
    return built


def serving(
    replicas: int = 1,
    roles: list[dict[str, Any]] | None = None,
    *,
    name: str = "x",
    rollout: dict[str, Any] | None = None,
    by_role: bool = False,
    grace_seconds: int = 0,
    uid: str = UID,
    generation: int = 1,
    annotations: dict[str, str] | None = None,
    **spec: Any,
) -> dict[str, Any]:
    """A ModelServing as it is stored."""
    strategy: dict[str, Any] = {}
    if rollout is not None:
        strategy = {"type": "ServingGroupRollingUpdate", "rollingUpdateConfiguration": rollout}
    if by_role:
        strategy = {"type": "RoleRollingUpdate"}
    return {
        "apiVersion": "workload.serving.volcano.sh/v1alpha1",
        "kind": "ModelServing",
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": uid,
            "generation": generation,
            "annotations": annotations or {},
        },
        "spec": {
            "replicas": replicas,
            "schedulerName": "volcano",
            "template": {
                "restartGracePeriodSeconds": grace_seconds,
                "roles": [role()] if roles is None else roles,
            },
            **({"rolloutStrategy": strategy} if strategy else {}),
            **spec,
        },
    }


def leader_worker_set(
    replicas: int = 1, size: int = 1, image: str = "a", leader: bool = False, **template: Any
) -> dict[str, Any]:
    """A LeaderWorkerSet as it is stored."""
    workload: dict[str, Any] = {"workerTemplate": pod_template(image), "size": size, **template}
    if leader:
        workload["leaderTemplate"] = pod_template(f"{image}-leader")
    return {
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "metadata": {"name": "p", "namespace": "default", "uid": "svc-1", "generation": 1},
        "spec": {"replicas": replicas, "leaderWorkerTemplate": workload},
    }


def workload(*args: Any, **kwargs: Any) -> WorkloadSpec:
    """A parsed ModelServing."""
    return parse_workload(serving(*args, **kwargs))


def observed_pod(name: str = "x-0-prefill-0-0", **fields: Any) -> ObservedPod:
    """A running, ready pod of the ModelServing `x`."""
    defaults: dict[str, Any] = {
        "name": name,
        "uid": f"uid-of-{name}",
        "owner": Owner("ModelServing", "x", UID),
        "labels": {},
        "annotations": {},
        "phase": "Running",
        "ready": True,
        "deletion_due_ms": None,
        "node": "n1",
        "address": "10.0.0.1",
        "restarts": 0,
        "created_ms": 0,
        "ready_since_ms": 0,
        "deletion_cost": 0,
        "message": "",
        "spec": {},
    }
    return ObservedPod(**{**defaults, **fields})
