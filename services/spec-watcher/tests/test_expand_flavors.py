"""Flavors as node affinity and tolerations (llmaz spec 2.6, 8; rulings on flavors)."""

import json
from typing import Any

import pytest
from expansion_builders import flavor, open_model, service
from expansion_store import Document, Store, child, conditions

from inferbus_spec_watcher.expansion import Expansion

GPU = "karpenter.k8s.aws/instance-gpu-name"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def expanded(*flavors: Document, claim: list[str] | None = None, **fields: Any) -> Expansion:
    claims: Document = {"models": [{"name": "opt"}]}
    if claim:
        claims["inferenceFlavors"] = claim
    model = open_model(inferenceConfig={"flavors": list(flavors)})
    store = Store(model, service(modelClaims=claims, **fields))
    return store.expand("Service", "svc")


def pod(result: Expansion) -> Document:
    groups = child(result, "LeaderWorkerSet")["spec"]["leaderWorkerTemplate"]
    found: Document = groups["workerTemplate"]["spec"]
    return found


def nodes(result: Expansion) -> Document:
    found: Document = pod(result)["affinity"]["nodeAffinity"]
    return found


def on(name: str, *values: str) -> Document:
    return {"key": name, "operator": "In", "values": list(values)}


def term(*expressions: Document) -> Document:
    return {"matchExpressions": list(expressions)}


def test_lz_d2_lz_t61_a_pod_runs_on_nodes_of_its_flavor_alone() -> None:
    result = expanded(flavor("t4", nodeSelector={GPU: "t4", "zone": "a"}))
    assert nodes(result) == {
        REQUIRED: {"nodeSelectorTerms": [term(on(GPU, "t4"), on("zone", "a"))]}
    }


def test_lz_t53_flavors_are_preferred_in_their_order() -> None:
    named = [flavor(name, nodeSelector={GPU: name}) for name in ("a100", "a10", "t4")]
    found = nodes(expanded(*named))
    assert found[REQUIRED]["nodeSelectorTerms"] == [
        term(on(GPU, name)) for name in ("a100", "a10", "t4")
    ]
    weights = {
        one["preference"]["matchExpressions"][0]["values"][0]: one["weight"]
        for one in found[PREFERRED]
    }
    assert weights == {"a100": 34, "a10": 21, "t4": 13}


def test_lz_t52_a_claims_own_order_counts() -> None:
    named = [flavor(name, nodeSelector={GPU: name}) for name in ("a100", "a10", "t4")]
    found = nodes(expanded(*named, claim=["t4", "a100"]))
    assert found[REQUIRED]["nodeSelectorTerms"] == [term(on(GPU, "t4")), term(on(GPU, "a100"))]
    assert [one["weight"] for one in found[PREFERRED]] == [34, 21]


def test_lz_t51_a_flavor_for_any_node_leaves_all_nodes_open() -> None:
    result = expanded(flavor("t4", nodeSelector={GPU: "t4"}), flavor("any"))
    assert "affinity" not in pod(result)
    assert "affinity" not in pod(expanded())


def test_lz_t62_a_flavor_that_the_model_does_not_have_is_told() -> None:
    result = expanded(flavor("t4"), claim=["t4", "h100"])
    assert result.blocked
    assert conditions(result)["Expanded"] == ("False", "FlavorMissing")
    message = result.conditions[0].message
    assert "h100" in message
    assert "use one of t4" in message


def test_an_instance_type_is_an_alternative() -> None:
    params = {"INSTANCE-TYPE": "g4dn.xlarge, g5.xlarge"}
    result = expanded(flavor("t4", nodeSelector={GPU: "t4"}, params=params))
    types = on("node.kubernetes.io/instance-type", "g4dn.xlarge", "g5.xlarge")
    assert nodes(result)[REQUIRED]["nodeSelectorTerms"] == [term(on(GPU, "t4")), term(types)]


def test_the_pods_own_affinity_holds_as_well() -> None:
    own = [term(on("zone", "a")), {"matchFields": [on("metadata.name", "n1")]}]
    kept = {"weight": 1, "preference": term(on("disk", "fast"))}
    affinity = {
        "nodeAffinity": {REQUIRED: {"nodeSelectorTerms": own}, PREFERRED: [kept]},
        "podAntiAffinity": {REQUIRED: []},
    }
    named = [flavor(name, nodeSelector={GPU: name}) for name in ("a", "b")]
    result = expanded(*named, pod={"affinity": affinity})
    assert nodes(result)[REQUIRED]["nodeSelectorTerms"] == [
        term(on("zone", "a"), on(GPU, "a")),
        term(on("zone", "a"), on(GPU, "b")),
        {"matchFields": [on("metadata.name", "n1")], **term(on(GPU, "a"))},
        {"matchFields": [on("metadata.name", "n1")], **term(on(GPU, "b"))},
    ]
    assert nodes(result)[PREFERRED][0] == kept
    assert "podAntiAffinity" in pod(result)["affinity"]


def test_flavors_of_other_amounts_are_left_out_and_told() -> None:
    result = expanded(
        flavor("a100", 1, nodeSelector={GPU: "a100"}),
        flavor("a10", 2, nodeSelector={GPU: "a10"}),
        flavor("h100", 1, nodeSelector={GPU: "h100"}),
    )
    assert conditions(result)["FlavorsDiffer"] == ("True", "FlavorsDiffer")
    assert nodes(result)[REQUIRED]["nodeSelectorTerms"] == [
        term(on(GPU, "a100")),
        term(on(GPU, "h100")),
    ]
    (runner,) = pod(result)["containers"]
    assert runner["resources"]["limits"] == {"nvidia.com/gpu": 1}


@pytest.mark.parametrize("amount", ["1", 1, "1000m"])
def test_equal_amounts_may_be_written_differently(amount: Any) -> None:
    other = {"name": "other", "limits": {"nvidia.com/gpu": amount}}
    assert "FlavorsDiffer" not in conditions(expanded(flavor("one"), other))


def test_taints_of_accelerators_are_tolerated_and_the_users_own() -> None:
    own = {"key": "team", "operator": "Equal", "value": "ml"}
    kept = {"key": "spot", "operator": "Exists"}
    result = expanded(
        flavor("npu", limits={"huawei.com/ascend-1980": 1, "cpu": 4}),
        annotations={"inferbus.dev/tolerations": json.dumps([own])},
        pod={"tolerations": [kept]},
    )
    taint = {"key": "huawei.com/ascend-1980", "operator": "Exists", "effect": "NoSchedule"}
    assert pod(result)["tolerations"] == [kept, own, taint]
    assert "tolerations" not in pod(expanded())
