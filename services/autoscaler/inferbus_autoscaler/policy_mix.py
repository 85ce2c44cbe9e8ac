"""What a mix knows of its targets beside their load: their room, and what a replica serves.

Invariant: capacities come from one source for all targets of a mix, for two sources have no common
unit: what people wrote, else what the accelerators promise, else what was learned, else all equal.
"""

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import TypeVar

from inferbus_autoscaler.events import Sampled
from inferbus_autoscaler.facts import Facts, PolicyFacts
from inferbus_autoscaler.policy_history import History
from inferbus_autoscaler.policy_room import rooms_after
from inferbus_autoscaler.policy_throughput import throughputs_after
from inferbus_autoscaler.state import TargetState
from inferbus_contracts.canonical import digest
from inferbus_contracts.events.scaling import CapacitySource

Key = TypeVar("Key")


def observed_mix(
    state: TargetState, policy: PolicyFacts, facts: Facts, sample: Sampled, now_ms: int
) -> TargetState:
    """The state after a look at the targets; the same object where nothing changed."""
    rooms = rooms_after(state.rooms, policy.targets, facts.targets, facts.settings, now_ms)
    throughputs = state.throughputs
    if policy.capacity_source is None:
        throughputs = throughputs_after(throughputs, facts.targets, sample)
    if rooms is state.rooms and throughputs is state.throughputs:
        return state
    return replace(state, rooms=rooms, throughputs=throughputs)


def with_learned(policy: PolicyFacts, facts: Facts, state: TargetState) -> PolicyFacts:
    """The policy with capacities that were learned, where nobody said any and all are known."""
    if policy.capacity_source is not None:
        return policy
    used = {each.target: each.used for each in state.throughputs}
    learned = {target.key: used.get(target.identity) for target in facts.targets}
    rates = {
        member.key: Fraction(rate)
        for member in policy.targets
        if (rate := learned.get(member.key)) is not None
    }
    if len(rates) < len(policy.targets):
        return policy
    units = relative(rates)
    targets = tuple(replace(member, capacity=units[member.key]) for member in policy.targets)
    return replace(policy, targets=targets, capacity_source=CapacitySource.LEARNED)


def counted_in(state: TargetState, policy: PolicyFacts) -> TargetState:
    """The state in the policy's units; a history in others says nothing, and begins anew."""
    units = digest([[member.key, member.capacity] for member in policy.targets])
    if units == state.units:
        return state
    if not state.units:
        return replace(state, units=units)
    history = History(panic=state.history.panic)
    return replace(state, units=units, history=history, reading=None)


def relative(amounts: Mapping[Key, Fraction]) -> dict[Key, float]:
    """Capacity units: 1 is the smallest of the mix, which the metric's target speaks of."""
    least = min(amounts.values())
    return {key: float(amount / least) for key, amount in amounts.items()}
