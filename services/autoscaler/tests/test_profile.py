"""What the accelerators that a replica names promise of it."""

from typing import Any

import pytest

from inferbus_autoscaler.policy_profile import profile, profiles

H100, A100 = "NVIDIA-H100-80GB-HBM3", "NVIDIA-A100-SXM4-80GB"


def pod(product: str | None, gpus: int = 1, **environment: str) -> dict[str, Any]:
    container = {
        "name": "engine",
        "resources": {"limits": {"nvidia.com/gpu": str(gpus)}} if gpus else {},
        "env": [{"name": name, "value": value} for name, value in environment.items()],
    }
    selector = {"nodeSelector": {"nvidia.com/gpu.product": product}} if product else {}
    return {"spec": {"containers": [container], **selector}}


def serving(*roles: dict[str, Any]) -> dict[str, Any]:
    return {"kind": "ModelServing", "spec": {"template": {"roles": list(roles)}}}


def role(name: str, entry: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"name": name, "entryTemplate": entry, **fields}


def test_one_pod_has_the_bandwidth_of_its_devices() -> None:
    assert profile(serving(role("r", pod(H100, 8)))) == 8 * 3350


def test_all_pods_of_a_replica_count() -> None:
    workers = {"workerReplicas": 3, "workerTemplate": pod(A100, 2)}
    document = serving(
        role("prefill", pod(H100), replicas=2), role("decode", pod(A100, 2), **workers)
    )
    assert profile(document) == 2 * 3350 + 4 * 2 * 2039
    assert profiles(document) == {
        "": 2 * 3350 + 8 * 2039,
        "prefill": 3350,
        "decode": 8 * 2039,
    }


def test_a_leader_and_its_workers_are_a_replica() -> None:
    template = {"size": 4, "workerTemplate": pod("NVIDIA-L4")}
    document = {"kind": "LeaderWorkerSet", "spec": {"leaderWorkerTemplate": template}}
    assert profile(document) == 4 * 300


@pytest.mark.parametrize(
    "entry",
    [pod(None), pod("NVIDIA-H100-80GB-HBM3-MIG-1g.10gb"), pod(None, 0)],
    ids=["no product", "a part of one", "no accelerator"],
)
def test_what_is_not_told_is_not_guessed(entry: dict[str, Any]) -> None:
    assert profile(serving(role("r", entry))) is None
    assert profiles(serving(role("r", entry))) == {}


def test_a_pod_without_accelerators_beside_one_with_adds_nothing() -> None:
    assert profile(serving(role("r", pod(H100)), role("proxy", pod(None, 0)))) == 3350


def test_a_simulated_engine_is_what_it_stands_for() -> None:
    simulated = pod(None, 0, INFERBUS_ENGINE_SIMULATOR_ACCELERATOR="a10")
    assert profile(serving(role("r", simulated))) == 600
    assert profile(serving(role("r", pod("nvidia-l4", 0)))) == 300
