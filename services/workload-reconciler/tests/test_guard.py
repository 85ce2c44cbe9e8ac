"""What no decision may do: leave its policy's bounds, or outgrow a budget."""

from dataclasses import replace
from typing import Any

import pytest
from workload_builders import leader_worker_set, role, serving

from inferbus_contracts.errors import ProblemsError
from inferbus_contracts.events.scaling import ApplyOutcome, ScalingApplied
from inferbus_contracts.events.spec import SpecChanged
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.orders import Orders
from inferbus_contracts.scaling.settlement import PolicyObjects
from inferbus_shared.settings import load_settings
from inferbus_workload_reconciler.policy_guard import Budget, Guard, parse_budgets
from inferbus_workload_reconciler.policy_scaling import ScaleDecision, ScaleTarget, decide_scale
from inferbus_workload_reconciler.settings import WorkloadReconcilerSettings

GPU = "nvidia.com/gpu"
X, Y = (ObjectKey("ModelServing", "default", name) for name in "xy")
POLICY = ObjectKey("AutoscalingPolicy", "default", "p")


def template(gpus: int) -> dict[str, Any]:
    return {"spec": {"containers": [{"name": "c", "resources": {"limits": {GPU: gpus}}}]}}


def fact(document: dict[str, Any], **changes: Any) -> SpecChanged:
    uid = document["metadata"].get("uid", "u")
    return SpecChanged(uid=uid, generation=1, digest="", object=document, **changes)


def workload(name: str, replicas: int, gpus: int = 2, namespace: str = "default") -> Any:
    document = serving(replicas, [role(entryTemplate=template(gpus))], name=name, uid=name)
    document["metadata"]["namespace"] = namespace
    return document


def policy(least: int, most: int, name: str = "x", role_name: str = "") -> dict[str, Any]:
    sub_target = {"subTargets": {"kind": "Role", "name": role_name}} if role_name else {}
    target = {"targetRef": {"kind": "ModelServing", "name": name}, **sub_target}
    return {
        "apiVersion": "workload.serving.volcano.sh/v1alpha1",
        "kind": "AutoscalingPolicy",
        "metadata": {"name": POLICY.name, "namespace": "default"},
        "spec": {
            "metrics": [{"name": "load", "targetValue": 1}],
            "homogeneousTarget": {"target": target, "minReplicas": least, "maxReplicas": most},
        },
    }


def guard(
    *documents: dict[str, Any], budgets: str = "", policies: PolicyObjects | None = None
) -> Guard:
    policies = policies or PolicyObjects()
    made = Guard(policies, parse_budgets(budgets))
    for document in documents:
        metadata = document["metadata"]
        key = ObjectKey(document["kind"], metadata["namespace"], metadata["name"])
        policies.take(key, fact(document))
        made.take(key, fact(document))
    return made


def to(replicas: int, key: ObjectKey = X) -> ScaleDecision:
    return ScaleDecision(
        decision_id="d", target=key, replicas=replicas, uid="x", generation=1, apply="auto"
    )


def stored(replicas: int) -> ScaleTarget:
    return ScaleTarget(uid="x", generation=1, replicas=replicas)


@pytest.mark.parametrize(
    ("replicas", "refusal"),
    [
        (0, "0 replicas are outside of minReplicas 1 of AutoscalingPolicy/default/p"),
        (1, ""),
        (4, ""),
        (5, "5 replicas are outside of maxReplicas 4 of AutoscalingPolicy/default/p"),
    ],
)
def test_a_decision_stays_inside_its_policy_s_bounds(replicas: int, refusal: str) -> None:
    assert guard(policy(1, 4)).refusal(to(replicas), stored(2)) == refusal


def test_bounds_are_those_that_stand_now() -> None:
    policies = PolicyObjects()
    made = guard(policy(1, 4), policies=policies)
    policies.take(POLICY, replace_generation(policy(1, 9)))
    assert made.refusal(to(9), stored(2)) == ""
    policies.take(POLICY, fact(policy(1, 9), deleted=True))
    assert made.refusal(to(99), stored(2)) == ""


def replace_generation(document: dict[str, Any]) -> SpecChanged:
    return fact(document).model_copy(update={"generation": 2})


def test_as_d18_bounds_the_wrong_way_round_bound_all_the_same() -> None:
    made = guard(policy(4, 1))
    assert made.refusal(to(4), stored(2)) == ""
    assert "minReplicas 1" in made.refusal(to(0), stored(2))


def test_a_role_has_bounds_of_its_own() -> None:
    made = guard(policy(1, 4, role_name="decode"))
    assert "maxReplicas 4" in made.refusal(to(5, X._replace(role="decode")), stored(2))
    assert made.refusal(to(5), stored(2)) == ""


def test_a_budget_counts_what_all_workloads_of_a_namespace_ask_for() -> None:
    documents = workload("x", 2), workload("y", 3), workload("z", 50, namespace="other")
    made = guard(*documents, budgets=f"default/{GPU}=16")
    assert made.refusal(to(5), stored(2)) == ""
    assert made.refusal(to(6), stored(2)) == (
        f"6 replicas need 18 {GPU} in all, above the budget default/{GPU}=16"
    )


def test_a_budget_for_all_namespaces() -> None:
    documents = workload("x", 2), workload("z", 5, namespace="other")
    made = guard(*documents, budgets=f"default/{GPU}=99, */{GPU}=16")
    assert made.refusal(to(3), stored(2)) == ""
    assert f"above the budget */{GPU}=16" in made.refusal(to(4), stored(2))


def test_less_is_never_too_much() -> None:
    made = guard(workload("x", 20), budgets=f"default/{GPU}=16")
    assert made.refusal(to(19), stored(20)) == ""


def test_what_needs_none_of_a_resource_is_not_held_by_its_budget() -> None:
    documents = workload("x", 1, gpus=0), workload("y", 20)
    made = guard(*documents, budgets=f"default/{GPU}=16")
    assert made.refusal(to(9), stored(1)) == ""


def test_roles_count_in_every_group() -> None:
    roles = [role("a", entryTemplate=template(1)), role("b", 2, entryTemplate=template(2))]
    document = serving(3, roles, uid="x")
    made = guard(document, budgets=f"default/{GPU}=27")
    b = X._replace(role="b")
    assert made.refusal(to(4, b), stored(2)) == ""
    assert "5 replicas need 33" in made.refusal(to(5, b), stored(2))


def test_what_was_granted_counts_until_the_object_shows_it() -> None:
    made = guard(workload("x", 2), workload("y", 2), budgets=f"default/{GPU}=16")
    made.grant(to(6))
    assert "above the budget" in made.refusal(to(3, Y), stored(2))
    made.withdraw(to(6))
    assert made.refusal(to(3, Y), stored(2)) == ""
    made.grant(to(6))
    made.take(X, fact(workload("x", 3)))
    assert made.refusal(to(5, Y), stored(2)) == ""


def test_pods_of_a_child_are_counted_once() -> None:
    parent = leader_worker_set(2, size=2, workerTemplate=template(4))
    child = workload("c", 2, gpus=8)
    owner = {"kind": "LeaderWorkerSet", "name": "p", "uid": "svc-1", "controller": True}
    child["metadata"]["ownerReferences"] = [owner]
    made = guard(parent, child, workload("x", 0), budgets=f"default/{GPU}=18")
    assert made.refusal(to(1), stored(0)) == ""
    assert "need 20" in made.refusal(to(2), stored(0))


def test_a_workload_that_is_gone_asks_for_nothing() -> None:
    made = guard(workload("x", 2), workload("y", 7), budgets=f"default/{GPU}=16")
    made.take(Y, fact(workload("y", 7), deleted=True))
    assert made.refusal(to(8), stored(2)) == ""


def test_a_refused_decision_is_answered_with_the_bound() -> None:
    answer = decide_scale(to(5), stored(2), Orders(), 1, refusal="5 replicas are outside")
    assert isinstance(answer, ScalingApplied)
    assert (answer.outcome, answer.replicas) == (ApplyOutcome.FAILED, 2)
    assert answer.message == "5 replicas are outside"
    same = decide_scale(to(2), stored(2), Orders(), 1, refusal="2 replicas are outside")
    assert isinstance(same, ScalingApplied)
    assert same.outcome is ApplyOutcome.UNCHANGED
    advised = decide_scale(replace(to(5), apply="approve"), stored(2), Orders(), 1, refusal="no")
    assert isinstance(advised, ScalingApplied)
    assert advised.outcome is ApplyOutcome.FAILED


def test_budgets_are_read() -> None:
    assert parse_budgets(f"default/{GPU}=16, */{GPU}=64,") == (
        Budget("default", GPU, 16),
        Budget("*", GPU, 64),
    )
    assert parse_budgets("") == ()


@pytest.mark.parametrize("text", ["16", f"{GPU}=x", "default=3", "/gpu=3", f"default/{GPU}=-1"])
def test_a_budget_that_cannot_be_read_is_told(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="should look like default/nvidia"):
        parse_budgets(text)
    monkeypatch.setenv("INFERBUS_WORKLOAD_RECONCILER_ACCELERATOR_BUDGETS", text)
    with pytest.raises(ProblemsError, match="ACCELERATOR_BUDGETS"):
        load_settings(WorkloadReconcilerSettings)
