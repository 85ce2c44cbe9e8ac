"""Defects of the reference's optimizer, by number (autoscaling spec 7).

D26: costExpansionRatePercent is described as what may be spent, and only orders blocks. Here it is
what stability may cost; compat mode still has the block order.
"""

import pytest

from inferbus_optimizer.facts import Facts
from services.optimizer.tests.builders import START_MS, Mixer, facts


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
