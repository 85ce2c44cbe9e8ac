"""Manifests that users already have are planned as they are."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from workload_world import World

EXAMPLES = Path(__file__).parents[4] / "shared" / "examples"


def stored(file: str, kind: str) -> dict[str, Any]:
    path = EXAMPLES / file
    if not path.exists():
        pytest.skip(f"the example manifests are not beside this checkout: {path}")
    text = path.read_text(encoding="utf-8-sig")
    document: dict[str, Any] = next(one for one in yaml.safe_load_all(text) if one["kind"] == kind)
    document["metadata"] |= {"uid": "u1", "generation": 1}
    document["metadata"].setdefault("namespace", "default")
    return document


def as_leader_worker_set(service: dict[str, Any]) -> dict[str, Any]:
    """What the service's expansion makes of it, without what the expansion injects."""
    spec = service["spec"]
    return {
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "metadata": service["metadata"],
        "spec": {
            "replicas": spec["replicas"],
            "leaderWorkerTemplate": spec["workloadTemplate"],
        },
    }


def env(world: World, pod: str, container: int = 0) -> dict[str, Any]:
    variables = world.pod(pod)["spec"]["containers"][container]["env"]
    return {one["name"]: one.get("value") for one in variables}


def test_a_model_serving_with_entries_and_workers() -> None:
    world = World(stored("kthena/sample.yaml", "ModelServing"))
    world.settle()
    assert len(world.pod_names()) == 8
    assert env(world, "sample-0-decode-0-3")["WORKER_INDEX"] == "3"
    assert env(world, "sample-0-decode-0-3")["GROUP_SIZE"] == "4"
    assert world.services() == ["sample-0-decode-0-0", "sample-0-prefill-0-0"]
    assert world.true_conditions() == ["Available"]


def test_prefill_and_decode_recreated_as_a_group_after_a_minute() -> None:
    world = World(stored("kthena/prefill-decode-disaggregation.yaml", "ModelServing"))
    world.settle()
    names = ["deepseek-v2-lite-0-decode-0-0", "deepseek-v2-lite-0-prefill-0-0"]
    assert world.pod_names() == names
    assert env(world, names[0], container=1)["ENTRY_ADDRESS"] == f"{names[0]}.dev"
    before = {world.uid(name) for name in names}
    world.crash(names[0])
    planned = world.reconcile()
    assert (planned.actions, planned.next_check_ms) == ((), world.now_ms + 60_000)
    world.now_ms += 60_000
    world.settle()
    assert not before & {world.uid(name) for name in names}


def test_a_multi_node_inference_service() -> None:
    world = World(as_leader_worker_set(stored("llmaz/multi-nodes-service.yaml", "Service")))
    world.settle()
    name = "llama3-405b-instruct"
    assert world.pod_names() == [f"{name}-0", f"{name}-0-1", f"{name}-1", f"{name}-1-1"]
    assert world.services() == [name]
    found = env(world, f"{name}-1-1")
    assert found["LWS_LEADER_ADDRESS"] == f"{name}-1.{name}.default"
    assert (found["LWS_GROUP_SIZE"], found["LWS_WORKER_INDEX"]) == ("2", "1")
    variables = world.pod(f"{name}-0")["spec"]["containers"][0]["env"]
    assert [one["name"] for one in variables].count("LWS_WORKER_INDEX") == 1
    assert world.label(f"{name}-0", "worker-index") == "0"
    assert world.pod(f"{name}-0")["metadata"]["labels"]["role"] == "leader"
