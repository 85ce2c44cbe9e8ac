"""Who scales what, where policies name roles: one intent, one key, and an exact proportion."""

from typing import Any

import pytest

from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.resources.autoscaling import AutoscalingPolicy
from inferbus_contracts.resources.scaling_targets import RatioConstraint
from inferbus_contracts.scaling.intent_reading import read_policy_object
from inferbus_contracts.scaling.intents import PolicyObject, ScalingIntent
from inferbus_contracts.scaling.settlement import Settled, settle

LLM = ObjectKey("ModelServing", "default", "llm")
DECODE, PREFILL = LLM._replace(role="decode"), LLM._replace(role="prefill")
METRICS = [{"name": "load", "targetValue": "1"}]
REFERENCE = {"kind": "ModelServing", "name": "llm"}


def policy(name: str, created: str = "2026-01-01T00:00:00Z", **spec: Any) -> PolicyObject:
    key = ObjectKey("AutoscalingPolicy", "default", name)
    document = {
        "apiVersion": "workload.serving.volcano.sh/v1alpha1",
        "kind": "AutoscalingPolicy",
        "metadata": {"name": name, "namespace": "default", "creationTimestamp": created},
        "spec": {"metrics": METRICS, **spec},
    }
    item = read_policy_object(key, f"uid of {name}", 1, document)
    assert isinstance(item.resource, AutoscalingPolicy)
    return item


def roles(*names: str, **more: Any) -> dict[str, Any]:
    scaling = {"minReplicas": 1, "maxReplicas": 9, "metricSources": {"load": {"pod": {}}}}
    return {"targetRef": REFERENCE, "roles": dict.fromkeys(names, scaling), **more}


def settled(*items: PolicyObject) -> Settled:
    return settle({item.key: item for item in items})


def only(found: Settled) -> ScalingIntent:
    (intent,) = found.intents
    return intent


RATIO = {"numeratorRole": "prefill", "denominatorRole": "decode", "minRatio": 0.28, "maxRatio": "1"}


def test_roles_are_one_intent_in_the_order_of_their_names_keyed_by_the_policy() -> None:
    owner = policy("p", disaggregatedTarget=roles("prefill", "decode", ratioConstraint=RATIO))
    found = settled(owner)
    intent = only(found)
    assert [target.key for target in intent.targets] == [DECODE, PREFILL]
    assert (intent.joint, intent.mix, intent.key) == (True, False, owner.key)
    assert found.keyed == {owner.key: intent}
    assert found.owners == {DECODE: intent, PREFILL: intent}
    assert intent.ratio is not None
    assert intent.ratio.numerator_role == "prefill"


def test_one_role_is_a_target_like_any_other() -> None:
    found = settled(policy("p", disaggregatedTarget=roles("decode")))
    assert (only(found).joint, only(found).key) == (False, DECODE)
    assert found.keyed.keys() == {DECODE}


def test_a_single_target_and_a_mix_are_keyed_as_ever() -> None:
    target = {"target": {"targetRef": REFERENCE}, "minReplicas": 1, "maxReplicas": 2}
    assert only(settled(policy("p", homogeneousTarget=target))).key == LLM
    mix = policy("p", heterogeneousTarget={"params": [target]})
    assert only(settled(mix)).key == mix.key


def test_a_policy_of_two_roles_yields_both_where_an_older_one_has_one_of_them() -> None:
    older = policy("older", disaggregatedTarget=roles("decode"))
    both = policy("both", "2026-02-01T00:00:00Z", disaggregatedTarget=roles("decode", "prefill"))
    found = settled(both, older)
    assert [intent.owner.key for intent in found.intents] == [older.key]
    assert PREFILL not in found.owners
    (problem,) = found.problems[both.key]
    assert str(older.key) in problem.message


@pytest.mark.parametrize(
    ("numerator", "denominator", "allowed"),
    [
        (7, 25, True),
        (6, 25, False),
        (25, 25, True),
        (26, 25, False),
        (0, 0, True),
        (0, 4, False),
        (4, 0, False),
    ],
)
def test_as_d13_a_ratio_is_compared_exactly(
    numerator: int, denominator: int, allowed: bool
) -> None:
    """0.28 · 25 is 7, though not in float64."""
    assert RatioConstraint.model_validate(RATIO).allows(numerator, denominator) is allowed
