"""Defects of the reference that operators meet (autoscaling spec 7, D7 and D21 to D24).

Each is shown in both directions: against the compat mode that still has it, or by a one-line mutant
of `autoscaler_mutants`.
"""

import itertools
from dataclasses import replace
from typing import Any

import pytest

from inferbus_autoscaler.core import decide
from inferbus_autoscaler.events import Sampled
from inferbus_autoscaler.fact_fold import FactFold
from inferbus_autoscaler.facts import Behaviour, DeciderSettings, PanicPolicy, StepPolicy
from inferbus_autoscaler.outcomes import Decide, Demand
from inferbus_autoscaler.state import TargetState
from inferbus_contracts.canonical import canonical_json
from inferbus_contracts.events.scaling import Limiter
from inferbus_contracts.events.spec import SpecChanged
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.resources.annotations import Compat
from services.autoscaler.tests.builders import T0 as NOW_MS
from services.autoscaler.tests.builders import (
    Fleet,
    facts,
    metric,
    mix_facts,
    mix_sample,
    policy,
    sample,
)

DEFAULT, HEAD, V01 = None, Compat.KTHENA_HEAD, Compat.KTHENA_V01
ALL = pytest.mark.parametrize("compat", [DEFAULT, HEAD, V01])
GROUP = "workload.serving.volcano.sh/v1alpha1"


@pytest.mark.parametrize(("compat", "follows"), [(DEFAULT, True), (HEAD, True), (V01, False)])
def test_as_d07_a_mix_follows_its_metrics(compat: Compat | None, follows: bool) -> None:
    """v0.1.0 never told its optimizer any metric: the mix stays whatever the load is."""
    the_facts = mix_facts((2, 2), compat=compat)
    _, effects = decide(TargetState(), mix_sample((60.0, 60.0)), the_facts, NOW_MS)
    totals = [effect.data.replicas for effect in effects if isinstance(effect, Demand)]
    assert any(total > 4 for total in totals) is follows


@ALL
@pytest.mark.parametrize(
    "behaviour",
    [
        Behaviour(),
        Behaviour(panic=PanicPolicy(threshold_percent=None)),
        Behaviour(scale_up=StepPolicy()),
        Behaviour(scale_down=StepPolicy(), panic=PanicPolicy()),
    ],
    ids=["nothing", "no threshold", "up alone", "down and panic"],
)
def test_as_d21_what_a_behaviour_leaves_out_breaks_nothing(
    compat: Compat | None, behaviour: Behaviour
) -> None:
    """Upstream's optimizer dereferences an absent threshold, and all controllers go down."""
    for the_facts, event in (
        (mix_facts((2, 2), behaviour=behaviour, compat=compat), mix_sample((90.0, 90.0))),
        (facts(2, policy(behaviour=behaviour, compat=compat)), sample(90)),
    ):
        state, _ = decide(TargetState(), event, the_facts, NOW_MS)
        assert state.owner


@ALL
def test_as_d21_a_policy_that_is_gone_breaks_nothing(compat: Compat | None) -> None:
    the_facts = facts(2, policy(compat=compat))
    state, _ = decide(TargetState(), sample(90), the_facts, NOW_MS)
    gone, effects = decide(state, sample(90), replace(the_facts, policy=None), NOW_MS + 1)
    assert gone == TargetState()
    assert not any(isinstance(effect, Decide) for effect in effects)


@ALL
def test_as_d22_a_decision_names_its_metrics_and_what_held_it_back(compat: Compat | None) -> None:
    """Compat reproduces numbers, not silence: there the record is as full."""
    bounded = policy(metrics={"load": 10.0, "other": 5.0}, bounds=(1, 6), compat=compat)
    fleet = Fleet(2, bounded)
    fleet.feed(sample([metric(90.0), metric(2.0, name="other")]))
    record = fleet.decisions[-1].record
    assert {one.name: (one.value, one.target) for one in record.metrics} == {
        "load": (90.0, 10.0),
        "other": (2.0, 5.0),
    }
    assert record.limiters
    assert record.binding is not Limiter.NONE
    assert record.causes == list(record.input["sampled"].get("causes", []))


@ALL
def test_as_d23_a_scale_by_hand_is_seen_and_decided_again(compat: Compat | None) -> None:
    """The answer to the last decision is older than what somebody made of the target since."""
    fleet = Fleet(2, policy(compat=compat))
    fleet.run([50])
    assert fleet.replicas == 5
    fleet.replicas, fleet.generation = 9, fleet.generation + 1
    fleet.run([50])
    last = fleet.decisions[-1]
    assert (last.current, last.desired, fleet.replicas) == (9, 5, 5)
    assert last.target_generation == fleet.generation - 1


POLICY = ObjectKey("AutoscalingPolicy", "default", "scale")
CHAT = ObjectKey("ModelServing", "default", "chat")


def spec(key: ObjectKey, body: dict[str, Any], created: str = "") -> tuple[ObjectKey, SpecChanged]:
    metadata = {"name": key.name, "namespace": key.namespace}
    if created:
        metadata["creationTimestamp"] = created
    document = {"apiVersion": GROUP, "kind": key.kind, "metadata": metadata, "spec": body}
    return key, SpecChanged(uid=f"uid of {key}", generation=1, digest="d", object=document)


def binding(name: str, most: int, created: str) -> tuple[ObjectKey, SpecChanged]:
    single = {"target": {"targetRef": {"name": "chat"}}, "minReplicas": 1, "maxReplicas": most}
    body = {"policyRef": {"name": POLICY.name}, "homogeneousTarget": single}
    key = ObjectKey("AutoscalingPolicyBinding", "default", name)
    return spec(key, body, created)


RIVALS = (
    spec(POLICY, {"metrics": [{"metricName": "load", "targetValue": "10"}]}),
    spec(CHAT, {"replicas": 2, "template": {"roles": []}}),
    binding("young", 9, "2026-02-01T00:00:00Z"),
    binding("old", 5, "2026-01-01T00:00:00Z"),
)


def decided_with(order: tuple[tuple[ObjectKey, SpecChanged], ...]) -> bytes:
    """What an instance decides that heard of the facts in this order."""
    fold = FactFold(DeciderSettings())
    for time_ms, (key, fact) in enumerate(order):
        fold.take(key, fact, time_ms)
    given = fold.facts(CHAT, "", NOW_MS)
    _, effects = decide(TargetState(), read_sample(), given, NOW_MS)
    (effect,) = [one for one in effects if isinstance(one, Decide)]
    return canonical_json(effect.data.to_dict())


def read_sample() -> Sampled:
    given = sample([metric(90.0)])
    return replace(given, readings=(replace(given.readings[0], target=str(CHAT)),))


def test_as_d23_as_d24_two_instances_let_the_older_policy_win_and_decide_the_same_bytes() -> None:
    """Two policies on one target, two autoscalers: upstream's alternate, and both write."""
    said = {decided_with(order) for order in itertools.permutations(RIVALS)}
    assert len(said) == 1
    assert b"AutoscalingPolicyBinding/default/old" in said.pop()


def test_as_d24_an_instance_that_takes_over_goes_on_with_the_same_bytes() -> None:
    """State is what is stored, not what a process remembers."""
    steady = policy(behaviour=Behaviour(scale_down=StepPolicy(stabilisation_ms=60_000)))
    one, other = Fleet(9, steady), Fleet(9, steady)
    for load in (90, 50, 20, 20, 20, 20, 20):
        other.state = TargetState.from_dict(other.state.to_dict())
        assert one.run([load]) == other.run([load])
    assert [one.to_json() for one in one.decisions] == [one.to_json() for one in other.decisions]
    assert one.replicas < 9
