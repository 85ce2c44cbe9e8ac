"""What a mix knows of its targets beside their load, and what its history counts in."""

from dataclasses import replace

import pytest

from inferbus_autoscaler.core import decide
from inferbus_autoscaler.fact_fold import FactFold
from inferbus_autoscaler.facts import DeciderSettings, TargetFacts
from inferbus_autoscaler.outcomes import Demand
from inferbus_autoscaler.policy_history import History, PanicHold
from inferbus_autoscaler.policy_mix import counted_in, with_learned
from inferbus_autoscaler.policy_throughput import Throughput
from inferbus_autoscaler.state import TargetState
from inferbus_contracts.events.scaling import CapacitySource
from inferbus_contracts.events.spec import SpecChanged
from inferbus_contracts.events.workload import PodFact, WorkloadObserved
from inferbus_contracts.keys import ObjectKey
from services.autoscaler.tests.builders import T0, mix_facts, mix_sample

POLICY = ObjectKey("AutoscalingPolicy", "default", "p")
TARGET = ObjectKey("ModelServing", "default", "m")
API = "workload.serving.volcano.sh/v1alpha1"
VAIN_MS = DeciderSettings().unplaced_ms


def folded(replicas: int, placed: int, waiting: int, waited_ms: int = VAIN_MS) -> TargetFacts:
    """One target with pods that have a node, and others that have waited for one."""
    scaled = {"target": {"targetRef": {"kind": TARGET.kind, "name": TARGET.name}}}
    policy = {
        "metrics": [{"name": "load", "targetValue": 1}],
        "homogeneousTarget": {**scaled, "minReplicas": 0, "maxReplicas": 9},
    }
    facts = FactFold(DeciderSettings())
    for key, spec in ((POLICY, policy), (TARGET, {"replicas": replicas})):
        metadata = {"name": key.name, "namespace": key.namespace}
        document = {"apiVersion": API, "kind": key.kind, "metadata": metadata, "spec": spec}
        facts.take(key, SpecChanged(uid="u", generation=1, digest="", object=document), T0)
    pods = [
        PodFact(
            name=f"m-{index}",
            uid=f"{index}",
            group=f"m-{index}",
            phase="Running" if index < placed else "Pending",
            ready=index < placed,
            unplaced_since_ms=None if index < placed else T0 - waited_ms,
        )
        for index in range(placed + waiting)
    ]
    facts.take(TARGET, WorkloadObserved(uid="u", generation=1, pods=pods), T0)
    (found,) = facts.facts(TARGET, "", T0).targets
    return found


@pytest.mark.parametrize(
    ("found", "schedulable"),
    [
        (folded(3, placed=2, waiting=1), 2),
        (folded(3, placed=2, waiting=1, waited_ms=VAIN_MS - 1), None),
        (folded(3, placed=3, waiting=0), None),
        (folded(2, placed=2, waiting=1), None),
        (folded(3, placed=0, waiting=3), 0),
    ],
    ids=["in vain", "not yet in vain", "all placed", "nobody wants the third", "none"],
)
def test_what_can_be_scheduled_is_what_has_a_place(
    found: TargetFacts, schedulable: int | None
) -> None:
    assert found.schedulable == schedulable


def test_replicas_that_wait_in_vain_are_no_current_capacity() -> None:
    """Three H100 of 4 units are asked for, one has a place; two A100 of 1."""
    the_facts = mix_facts((3, 2), capacity=4.0)
    short = replace(the_facts.targets[0], uid="h100", ready=1, placed=1, schedulable=1)
    the_facts = replace(the_facts, targets=(short, the_facts.targets[1]))
    _, effects = decide(TargetState(), mix_sample((40.0, 20.0)), the_facts, T0)
    (demand,) = [effect.data for effect in effects if isinstance(effect, Demand)]
    assert (demand.current, demand.capacity) == (6, 6.0)
    assert demand.targets[0].schedulable == 1


def capacities_of(
    annotations: tuple[str, str], products: tuple[str, str]
) -> tuple[CapacitySource | None, list[float]]:
    """What is known of a mix of two, annotated and on accelerators as given."""
    facts = FactFold(DeciderSettings())
    keys = [ObjectKey("ModelServing", "default", name) for name in "ab"]
    for key, written, product in zip(keys, annotations, products, strict=True):
        container = {"name": "c", "resources": {"limits": {"nvidia.com/gpu": 1}}}
        pod = {"containers": [container], "nodeSelector": {"nvidia.com/gpu.product": product}}
        role = {"name": "r", "entryTemplate": {"spec": pod}}
        document = {
            "apiVersion": API,
            "kind": key.kind,
            "metadata": {"name": key.name, "annotations": {"inferbus.dev/capacity": written}},
            "spec": {"replicas": 1, "template": {"roles": [role]}},
        }
        facts.take(key, SpecChanged(uid=key.name, generation=1, digest="", object=document), T0)
    params = [
        {
            "target": {"targetRef": {"kind": key.kind, "name": key.name}},
            "minReplicas": 0,
            "maxReplicas": 9,
        }
        for key in keys
    ]
    spec = {
        "metrics": [{"name": "load", "targetValue": 1}],
        "heterogeneousTarget": {"params": params},
    }
    metadata = {"name": POLICY.name, "namespace": POLICY.namespace}
    policy = {"apiVersion": API, "kind": POLICY.kind, "metadata": metadata, "spec": spec}
    facts.take(POLICY, SpecChanged(uid="p", generation=1, digest="", object=policy), T0)
    found = facts.facts(POLICY, "", T0).policy
    assert found is not None
    return found.capacity_source, [member.capacity for member in found.targets]


H100, T4 = "NVIDIA-H100-80GB-HBM3", "Tesla-T4"


@pytest.mark.parametrize(
    ("written", "products", "source", "capacities"),
    [
        (("tokens=500/s", "tokens=2k/s"), (H100, T4), CapacitySource.ANNOTATION, [1.0, 4.0]),
        (("tokens=500/s", "requests=2/s"), (T4, H100), CapacitySource.PROFILE, [1.0, 3350 / 320]),
        (("tokens=500/s", ""), (T4, T4), CapacitySource.PROFILE, [1.0, 1.0]),
        (("tokens=500/s", "requests=2/s"), (T4, "unheard of"), None, [1.0, 1.0]),
    ],
    ids=["one unit", "two units", "one says nothing", "nobody knows"],
)
def test_the_first_source_that_knows_all_targets_counts(
    written: tuple[str, str],
    products: tuple[str, str],
    source: CapacitySource | None,
    capacities: list[float],
) -> None:
    assert capacities_of(written, products) == (source, capacities)


def test_what_is_learned_of_some_is_not_used() -> None:
    the_facts = mix_facts((2, 2))
    assert the_facts.policy is not None
    first = replace(the_facts.targets[0], uid="h100")
    the_facts = replace(the_facts, targets=(first, the_facts.targets[1]))
    known = (Throughput(target="h100", used=900.0), Throughput(target="target-uid", used=300.0))
    both = with_learned(the_facts.policy, the_facts, TargetState(throughputs=known))
    assert [member.capacity for member in both.targets] == [3.0, 1.0]
    assert both.capacity_source is CapacitySource.LEARNED
    one = TargetState(throughputs=known[:1])
    assert with_learned(the_facts.policy, the_facts, one) is the_facts.policy


def test_a_history_in_other_units_begins_anew() -> None:
    """Four replicas of 1 unit that become 4 units each are no jump from 4 to 16."""
    equal, other = (mix_facts((4, 1), capacity=capacity).policy for capacity in (1.0, 4.0))
    assert equal is not None
    assert other is not None
    state, _ = decide(TargetState(), mix_sample((40.0, 10.0)), mix_facts((4, 1)), T0)
    panic = PanicHold(ended_ms=T0)
    state = replace(state, history=replace(state.history, panic=panic))
    assert counted_in(state, equal) is state
    anew = counted_in(state, other)
    assert (anew.history, anew.reading) == (History(panic=panic), None)
    assert counted_in(anew, other) is anew
