"""What one replica asks for."""

from fractions import Fraction
from typing import Any

from inferbus_contracts.replica_pods import pod_amounts, replica_amounts

GPU = "nvidia.com/gpu"


def container(gpus: int | str, **fields: Any) -> dict[str, Any]:
    return {"resources": {"limits": {GPU: gpus}}, **fields}


def test_containers_of_a_pod_add_up() -> None:
    assert pod_amounts({"containers": [container(1), container("2")]}) == {GPU: 3}


def test_an_init_container_runs_before_the_others() -> None:
    assert pod_amounts({"containers": [container(1)], "initContainers": [container(4)]}) == {GPU: 4}


def test_a_sidecar_runs_beside_the_others() -> None:
    sidecar = container(4, restartPolicy="Always")
    assert pod_amounts({"containers": [container(1)], "initContainers": [sidecar]}) == {GPU: 5}


def test_a_request_goes_before_a_limit() -> None:
    both = {"resources": {"requests": {"cpu": "500m"}, "limits": {"cpu": 2, GPU: 1}}}
    assert pod_amounts({"containers": [both]}) == {"cpu": Fraction(1, 2), GPU: 1}


def test_a_group_is_all_replicas_of_all_roles() -> None:
    template = {"spec": {"containers": [container(2)]}}
    roles = [
        {"name": "a", "replicas": 2, "entryTemplate": template},
        {"name": "b", "entryTemplate": template, "workerReplicas": 1, "workerTemplate": template},
    ]
    document = {"kind": "ModelServing", "spec": {"template": {"roles": roles}}}
    assert replica_amounts(document) == {GPU: 8}
    assert replica_amounts(document, "a") == {GPU: 2}
    assert replica_amounts(document, "b") == {GPU: 4}


def test_other_objects_have_no_pods() -> None:
    assert replica_amounts({"kind": "Service", "spec": {}}) == {}
    assert replica_amounts({"kind": "ModelServing"}) == {}


def test_what_is_no_quantity_asks_for_nothing() -> None:
    assert pod_amounts({"containers": [container("many"), container(1)]}) == {GPU: 1}
    assert pod_amounts({"containers": [container([])]}) == {}  # type: ignore[arg-type]
