"""From objects and orders on the bus to what the core may look at, where a policy names roles."""

from typing import Any

from inferbus_autoscaler.fact_fold import FactFold
from inferbus_autoscaler.facts import DeciderSettings, Facts, RatioFacts
from inferbus_contracts.events.control import ControlFrozen
from inferbus_contracts.events.spec import SpecChanged
from inferbus_contracts.events.workload import PodFact, WorkloadObserved
from inferbus_contracts.keys import ObjectKey

LLM = ObjectKey("ModelServing", "default", "llm")
DECODE, PREFILL = LLM._replace(role="decode"), LLM._replace(role="prefill")
POLICY = ObjectKey("AutoscalingPolicy", "default", "both")


def changed(kind: str, name: str, spec: dict[str, Any], generation: int = 1) -> SpecChanged:
    body = {
        "apiVersion": "workload.serving.volcano.sh/v1alpha1",
        "kind": kind,
        "metadata": {"name": name, "namespace": "default"},
        "spec": spec,
    }
    return SpecChanged(uid=f"uid of {name}", generation=generation, digest=str(spec), object=body)


def workload(groups: int = 1, **roles: int) -> SpecChanged:
    template = {"roles": [{"name": name, "replicas": count} for name, count in roles.items()]}
    return changed("ModelServing", "llm", {"replicas": groups, "template": template})


def policy(*names: str, **bounds: int) -> SpecChanged:
    def role(name: str) -> dict[str, Any]:
        least = bounds.get(name, 1)
        most = least if name in bounds else 9
        own = [{"name": f"{name} load", "targetValue": "2"}] if name == "prefill" else None
        return {"minReplicas": least, "maxReplicas": most} | ({"metrics": own} if own else {})

    ratio = {"numeratorRole": "prefill", "denominatorRole": "decode"}
    target = {
        "targetRef": {"kind": "ModelServing", "name": "llm"},
        "roles": {name: role(name) for name in names},
        "ratioConstraint": {**ratio, "minRatio": 0.25, "maxRatio": "1"},
    }
    spec = {"metrics": [{"name": "load", "targetValue": "1"}], "disaggregatedTarget": target}
    return changed("AutoscalingPolicy", "both", spec)


def fold(*objects: tuple[ObjectKey, SpecChanged]) -> FactFold:
    folded = FactFold(DeciderSettings())
    for key, fact in objects:
        folded.take(key, fact, 0)
    return folded


BOTH = (LLM, workload(prefill=2, decode=4)), (POLICY, policy("prefill", "decode"))


def of_policy(folded: FactFold) -> Facts:
    return folded.facts(POLICY, "", 0)


def test_events_about_the_policy_and_about_either_role_are_of_one_state() -> None:
    folded = fold(*BOTH)
    assert {folded.state_key(key) for key in (POLICY, DECODE, PREFILL)} == {POLICY}
    assert folded.state_key(LLM) == POLICY, "routers tell traffic of the object as a whole"
    assert fold(BOTH[0]).state_key(LLM) is None


def test_a_policy_of_roles_has_their_metrics_and_their_proportion() -> None:
    facts = of_policy(fold(*BOTH))
    assert facts.policy is not None
    decode, prefill = facts.policy.targets
    assert (decode.key, decode.metrics) == (str(DECODE), None)
    assert prefill.metrics is not None
    assert [metric.name for metric in prefill.metrics] == ["prefill load"]
    assert facts.policy.joint
    assert facts.policy.ratio == RatioFacts(
        numerator=str(PREFILL), denominator=str(DECODE), least="0.25", most="1"
    )
    assert [(target.key, target.replicas) for target in facts.targets] == [
        (str(DECODE), 4),
        (str(PREFILL), 2),
    ]


def test_a_fixed_role_is_read_without_metrics() -> None:
    folded = fold(BOTH[0], (POLICY, policy("prefill", "decode", prefill=2)))
    facts = of_policy(folded)
    assert facts.policy is not None
    assert facts.policy.targets[1].metrics == ()
    assert facts.policy.targets[1].fixed


def test_a_state_of_a_role_is_nobody_s_once_roles_are_decided_about_together() -> None:
    """Its timer may still fire: the core then forgets it."""
    folded = fold(*BOTH)
    assert folded.facts(DECODE, "", 0).policy is None
    alone = fold(BOTH[0], (POLICY, policy("decode")))
    assert alone.facts(DECODE, "", 0).policy is not None
    assert alone.facts(POLICY, "", 0).policy is None


def test_as_d08_a_role_knows_how_many_groups_share_its_load() -> None:
    folded = fold((LLM, workload(3, prefill=2, decode=4)), BOTH[1])
    pods = [
        PodFact(
            name=f"{group}-{replica}",
            uid=f"{group}-{replica}",
            group=f"llm-{group}",
            role="decode",
            role_id=f"decode-{replica}",
            phase="Running",
            ready=True,
        )
        for group in range(3)
        for replica in range(4)
    ]
    observed = WorkloadObserved(uid="uid of llm", generation=1, pods=pods)
    folded.take(LLM, observed, 0)
    decode = of_policy(folded).target(str(DECODE))
    assert decode is not None
    assert (decode.replicas, decode.groups, decode.ready) == (4, 3, 12)


def test_a_freeze_of_one_role_is_a_freeze_of_both() -> None:
    folded = fold(*BOTH)
    folded.take(DECODE, ControlFrozen(who="kim", why="incident"), 0)
    assert of_policy(folded).frozen


def test_the_last_decision_about_each_role_is_handed_on() -> None:
    ids = {str(DECODE): "one", str(PREFILL): "two"}
    assert fold(*BOTH).facts(POLICY, "two", 0, ids).decision_ids == ids
