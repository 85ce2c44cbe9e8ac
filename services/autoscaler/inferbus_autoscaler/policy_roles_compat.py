"""One cycle of upstream's autoscaler over roles (compat; autoscaling spec 5.1, 5.2).

Invariant: where any role that isn't fixed would be skipped, nothing is decided or remembered about
the others either.
"""

from collections.abc import Sequence
from dataclasses import replace

from inferbus_autoscaler.evaluation import Evaluation
from inferbus_autoscaler.events import Sampled
from inferbus_autoscaler.facts import Facts, PolicyFacts, PolicyTarget
from inferbus_autoscaler.policy_compat import evaluate_compat
from inferbus_autoscaler.policy_ratio import RoleReplicas, repair
from inferbus_autoscaler.policy_roles import Evaluations, fixed, role_policy, role_state
from inferbus_autoscaler.state import TargetState
from inferbus_contracts.events.scaling import Limiter, LimiterStep
from inferbus_contracts.resources.scalars import quantity_float


def evaluate_roles_compat(
    state: TargetState, policy: PolicyFacts, facts: Facts, sample: Sampled, now_ms: int
) -> Evaluations | None:
    """Run one cycle; None where upstream would have skipped it."""
    found = []
    for member in policy.targets:
        own, alone = role_state(state, member), role_policy(policy, member)
        if member.fixed:
            found.append(fixed(own, alone, facts))
            continue
        one = evaluate_compat(own, alone, facts, sample, now_ms)
        if one is None:
            return None
        found.append(one)
    if policy.ratio is None or facts.frozen:
        return tuple(found)
    return _repaired(policy, found)


def _repaired(policy: PolicyFacts, found: Sequence[Evaluation]) -> Evaluations:
    """After what each role came to was remembered: the windows never hear of the repair."""
    ratio = policy.ratio
    assert ratio is not None, "asked for with a ratio"
    roles = {
        member.key: _replicas(member, one)
        for member, one in zip(policy.targets, found, strict=True)
    }
    limits = quantity_float(ratio.least), quantity_float(ratio.most)
    pair = repair(roles[ratio.numerator], roles[ratio.denominator], limits)
    numbers = {ratio.numerator: pair.numerator, ratio.denominator: pair.denominator}
    return tuple(
        _with_step(one, numbers[member.key], pair.ratio)
        for member, one in zip(policy.targets, found, strict=True)
    )


def _replicas(member: PolicyTarget, one: Evaluation) -> RoleReplicas:
    return RoleReplicas(one.desired, member.min_replicas, member.max_replicas)


def _with_step(one: Evaluation, number: int, ratio: str) -> Evaluation:
    step = LimiterStep(name=Limiter.RATIO, before=one.desired, after=number, detail=ratio)
    return replace(one, desired=number, steps=(*one.steps, step))
