"""Defects of the reference that touch a mix, by number (autoscaling spec 7).

Each is told in both directions: against upstream's block order where that has it, and by a line of
`optimizer_mutants` that brings it back where the block order hasn't.

D26: costExpansionRatePercent is described as what may be spent, and only orders blocks. Here it is
what stability may cost; compat mode still has the block order.
"""

from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from inferbus_autoscaler import core as autoscaler
from inferbus_autoscaler.facts import Behaviour, PanicPolicy
from inferbus_autoscaler.outcomes import Demand as Demanding
from inferbus_autoscaler.policy_check import problems_of
from inferbus_autoscaler.state import TargetState
from inferbus_contracts.deciding import Origin
from inferbus_contracts.events.spec import SpecChanged
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.resources.annotations import Compat
from inferbus_contracts.scaling.settlement import PolicyObjects
from inferbus_optimizer.core import decide
from inferbus_optimizer.events import Demanded, demanded
from inferbus_optimizer.facts import Facts
from inferbus_optimizer.outcomes import Allocate
from inferbus_optimizer.policy_compat_blocks import MixTarget, allocate, blocks
from inferbus_optimizer.policy_exact import Choice, cheapest, running_cost
from inferbus_optimizer.policy_placement import place, place_in_blocks
from inferbus_optimizer.policy_switching import Regret
from inferbus_optimizer.state import MixState
from services.autoscaler.tests.builders import T0 as SAMPLED_MS
from services.autoscaler.tests.builders import mix_facts, mix_sample
from services.optimizer.tests.builders import A100, H100, START_MS, T0, Mixer, demand, facts, option

POLICY = ObjectKey("AutoscalingPolicy", "default", "mix")


def param(name: str, least: int, most: int) -> dict[str, Any]:
    reference = {"kind": "ModelServing", "name": name}
    return {
        "target": {"targetRef": reference},
        "minReplicas": least,
        "maxReplicas": most,
        "cost": 10,
    }


def settled_targets(*params: dict[str, Any]) -> list[tuple[str, int, int]]:
    document = {
        "apiVersion": "workload.serving.volcano.sh/v1alpha1",
        "kind": POLICY.kind,
        "metadata": {"name": POLICY.name, "namespace": "default"},
        "spec": {
            "metrics": [{"name": "load", "targetValue": 1}],
            "heterogeneousTarget": {"params": list(params), "costExpansionRatePercent": 200},
        },
    }
    policies = PolicyObjects()
    policies.take(POLICY, SpecChanged(uid="u", generation=1, digest="", object=document))
    (intent,) = policies.settled.intents
    return [(str(each.key), each.min_replicas, each.max_replicas) for each in intent.targets]


def test_as_d18_a_target_that_stands_twice_counts_once() -> None:
    found = settled_targets(param("h100", 1, 4), param("a100", 1, 8), param("h100", 2, 9))
    assert found == [(H100, 1, 4), (A100, 1, 8)]


def test_as_d18_upstream_counts_it_twice() -> None:
    """Both entries get replicas: five are asked for, and one object has one number."""
    twice = [MixTarget(name="h100", cost=10, min_replicas=1, max_replicas=4)] * 2
    assert sum(allocate(twice, blocks(twice, 100), 5)) == 5
    assert allocate(twice, blocks(twice, 100), 5) == (4, 1)


@pytest.mark.parametrize("compat", [None, Compat.KTHENA_HEAD])
def test_as_d18_a_minimum_above_its_maximum_is_told(compat: Compat | None) -> None:
    """Upstream pins the target above its own maximum (example 9)."""
    policy = mix_facts((1, 1), compat=compat).policy
    assert policy is not None
    crossed = replace(policy.targets[0], min_replicas=3, max_replicas=1)
    problems = problems_of(replace(policy, targets=(crossed, policy.targets[1])))
    assert [problem.field for problem in problems] == ([] if compat else ["targets[0].minReplicas"])
    options = (option(H100, 0, min_replicas=3, max_replicas=1), option(A100, 0, min_replicas=0))
    assert place_in_blocks(demand(4.0, options=options), (0, 0)).replicas == (3, 1)


def test_as_d21_a_panic_policy_without_a_threshold_stops_nobody() -> None:
    """Upstream's whole controller-manager dies of it where the webhook is off."""
    panic = PanicPolicy(threshold_percent=None, hold_ms=60_000)
    the_facts = mix_facts((2, 2), behaviour=Behaviour(panic=panic))
    _, effects = autoscaler.decide(TargetState(), mix_sample((400.0, 400.0)), the_facts, SAMPLED_MS)
    (said,) = [effect.data for effect in effects if isinstance(effect, Demanding)]
    _, allocated = decide(MixState(), demanded(said, Origin()), facts(), T0)
    (effect,) = [effect for effect in allocated if isinstance(effect, Allocate)]
    assert [share.desired for share in effect.data.allocations] == [4, 8]


def test_as_d23_a_share_names_the_object_and_generation_it_was_computed_from() -> None:
    options = (option(H100, 0, generation=7), option(A100, 1, uid="another"))
    _, effects = decide(MixState(), Demanded(demand=demand(8.0, options=options)), facts(), T0)
    (effect,) = [effect for effect in effects if isinstance(effect, Allocate)]
    assert [(share.uid, share.generation) for share in effect.data.allocations] == [
        (f"uid of {H100}", 7),
        ("another", 1),
    ]


def under(compat: bool) -> Facts:
    the_facts = facts()
    assert the_facts.policy is not None
    policy = the_facts.policy
    return facts(policy=type(policy)(key=policy.key, uid=policy.uid, digest="d", compat=compat))


@pytest.mark.parametrize(
    ("compat", "rate", "at_once"),
    [
        (False, 0, (2, 1)),
        (False, 200, (0, 8)),
        (True, 0, (0, 8)),
        (True, 200, (4, 4)),
    ],
)
def test_as_d26_the_rate_is_what_stability_may_cost(
    compat: bool, rate: int, at_once: tuple[int, int]
) -> None:
    """Eight A100 serve 8 units, and so do two H100 and one A100 for half the cost."""
    mixer = Mixer(0, 8)
    mixer.changes = {"policy": under(compat).policy}
    assert mixer.demand(8.0, rate_percent=rate) == at_once


@pytest.mark.parametrize(("compat", "later"), [(False, (2, 1)), (True, (4, 4))])
def test_as_d26_the_budget_runs_up_with_time(compat: bool, later: tuple[int, int]) -> None:
    mixer = Mixer(0, 8)
    mixer.changes = {"policy": under(compat).policy}
    mixer.demand(8.0)
    mixer.advance(10 * START_MS)
    assert (mixer.demand(8.0)) == later


def test_as_d28_sums_of_many_replicas_do_not_overflow() -> None:
    """Of 2.1 million replicas and a cost of 2^31 - 1, in 32 bits nothing would be left."""
    huge = 2**31 - 1
    choices = [
        Choice(cost=huge - index, capacity=Fraction(1), min_replicas=0, max_replicas=10**6)
        for index in range(3)
    ]
    found = cheapest(choices, Fraction(2_500_000))
    assert found is not None
    assert found.replicas == (500_000, 10**6, 10**6)
    assert running_cost(choices, found.replicas) == 2_500_000 * huge - 3 * 10**6


def test_as_d28_a_large_maximum_is_no_work() -> None:
    """Upstream makes a block of every replica where the rate is below 100."""
    wide = tuple(
        option(name, 0, min_replicas=0, max_replicas=10**6, cost=cost)
        for name, cost in ((H100, 100), (A100, 60))
    )
    found = place(demand(10.0**6, options=wide, rate_percent=0), (0, 0), frozenset(), Regret(), T0)
    assert found.replicas == (250_000, 0)
    narrow = [MixTarget(name="a", cost=1, min_replicas=0, max_replicas=1_000)]
    assert len(blocks(narrow, 99)) == 1_000
