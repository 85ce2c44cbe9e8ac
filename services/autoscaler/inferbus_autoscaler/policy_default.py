"""The default decider: one look at a target, or at the total of a mix.

Reading -> recommendation -> history -> limits. Invariant: where sample, facts and time change
nothing that matters, the state comes back as the same object.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

from inferbus_autoscaler.evaluation import Evaluation
from inferbus_autoscaler.events import Sampled
from inferbus_autoscaler.facts import Behaviour, Facts, PolicyFacts, TargetFacts
from inferbus_autoscaler.policy_history import History
from inferbus_autoscaler.policy_limits import Scope, expiries, limit, recommend, recommended
from inferbus_autoscaler.policy_need import MOST_NEEDED, NOISE_PARTS, Need, needed, whole
from inferbus_autoscaler.policy_room import room_of
from inferbus_autoscaler.policy_standing import current_replicas, standing
from inferbus_autoscaler.state import Reading, TargetState
from inferbus_contracts.events.scaling import Mode


@dataclass(frozen=True)
class Units:
    """Current number and bounds of a policy in one unit; of a mix in capacity units."""

    current: float
    least: float
    most: float

    def scope(self, behaviour: Behaviour, tolerance_percent: int, *, frozen: bool) -> Scope:
        """The same in whole units, with the limits that hold there."""
        return Scope(
            current=_whole_below(self.current),
            min_replicas=_whole_below(self.least),
            max_replicas=whole(self.most),
            tolerance_percent=tolerance_percent,
            behaviour=behaviour,
            frozen=frozen,
        )

    def capacity(self, desired: int, scope: Scope) -> float:
        """What a mix must serve where its total is `desired`, in capacity units.

        Exactly what it serves now, where the number stays.
        """
        capacity = self.current if desired == scope.current else float(desired)
        return min(max(capacity, self.least), self.most)


def evaluate_sample(
    state: TargetState, policy: PolicyFacts, facts: Facts, sample: Sampled, now_ms: int
) -> Evaluation:
    """Look at a new sample."""
    need, metrics = needed(policy, facts, sample, now_ms)
    reading = Reading(need=need, metrics=metrics, sampled_ms=sample.taken_at_ms)
    return _evaluate(state, policy, facts, reading, now_ms)


def evaluate_again(
    state: TargetState, policy: PolicyFacts, facts: Facts, now_ms: int
) -> Evaluation | None:
    """Look once more at the last sample; None where there is none, or it is too old."""
    reading = state.reading
    if reading is None or now_ms - reading.sampled_ms > facts.settings.stale_ms:
        return None
    return _evaluate(state, policy, facts, reading, now_ms)


def scope_of(state: TargetState, policy: PolicyFacts, facts: Facts) -> Scope:
    """Current number and bounds of the policy's target, or the total of its mix, in whole units."""
    return _scope(policy, facts, units_of(state, policy, facts))


def units_of(state: TargetState, policy: PolicyFacts, facts: Facts) -> Units:
    """Current number and bounds of the policy's target, or the totals of its mix."""
    if not policy.mix:
        member = policy.targets[0]
        target = facts.target(member.key)
        assert target is not None, "a live policy's target is known"
        return Units(current_replicas(state, target), member.min_replicas, member.max_replicas)
    pairs = [(member, facts.target(member.key)) for member in policy.targets]
    known = [(member, target) for member, target in pairs if target is not None]
    return Units(
        current=_sum(m.capacity * _carrying(state, target) for m, target in known),
        least=_sum(m.capacity * m.min_replicas for m, _ in known),
        most=_sum(m.capacity * m.max_replicas for m, _ in known),
    )


def evaluate_pending(
    state: TargetState, policy: PolicyFacts, facts: Facts, at_ms: int, now_ms: int
) -> Evaluation | None:
    """Look at requests that are held since there is no replica: one is needed, perhaps more.

    None where there are replicas, on their way too.
    """
    if units_of(state, policy, facts).current > 0:
        return None
    reading = Reading(need=Need(known=1.0), sampled_ms=at_ms)
    return _evaluate(state, policy, facts, reading, now_ms)


def next_change(state: TargetState, policy: PolicyFacts, facts: Facts, now_ms: int) -> int | None:
    """When the number may change by itself: a window, panic or freeze ends; None: never."""
    if state.reading is None:
        return None
    if facts.frozen:
        return facts.frozen_until_ms
    history = state.history
    scope = scope_of(state, policy, facts)
    value = recommended(state.reading.need, scope)
    settled = limit(value, history, scope, now_ms)[-1].after
    if value == settled:
        return None
    for at_ms in expiries(value, history, scope, now_ms):
        if limit(value, history, scope, at_ms)[-1].after != settled:
            return at_ms
    return None


def _evaluate(
    state: TargetState,
    policy: PolicyFacts,
    facts: Facts,
    reading: Reading,
    now_ms: int,
) -> Evaluation:
    units = units_of(state, policy, facts)
    scope = _scope(policy, facts, units)
    recommendation = recommend(reading.need, scope, state.history.recommended)
    history = state.history.started(scope.current, now_ms, policy.most_stamps)
    history = history.with_replicas(scope.current, now_ms, policy.most_stamps)
    if recommendation.evidence is not None:
        history = history.with_recommendation(recommendation.evidence, now_ms, policy.most_stamps)
    if recommendation.hit is not None:
        history = history.with_hit(recommendation.hit, now_ms)
    panic = history.panic.active(policy.behaviour.panic, now_ms)
    limited = limit(recommendation.value, history, scope, now_ms)
    desired = limited[-1].after
    return Evaluation(
        state=_remembering(state, reading, history, scope, facts.settings.stale_ms // 2),
        current=scope.current,
        desired=desired,
        mode=Mode.PANIC if panic else Mode.STABLE,
        limited=desired != recommendation.value,
        capacity=units.capacity(desired, scope),
        metrics=reading.metrics,
        steps=(*recommendation.steps, *limited),
    )


def _carrying(state: TargetState, target: TargetFacts) -> int:
    """Replicas of a target of a mix, without those that wait for a node in vain."""
    room = room_of(state.rooms, target)
    replicas = standing(state, target).replicas
    return min(replicas, room.limit) if room else replicas


def _sum(units: Iterable[float]) -> float:
    return min(math.fsum(units), MOST_NEEDED)


def _scope(policy: PolicyFacts, facts: Facts, units: Units) -> Scope:
    return units.scope(policy.behaviour, policy.tolerance_percent, frozen=facts.frozen)


def _whole_below(units: float) -> int:
    return math.floor(units + units / NOISE_PARTS)


def _remembering(
    state: TargetState, reading: Reading, history: History, scope: Scope, refresh_ms: int
) -> TargetState:
    """The state with a reading that is as new as what rests on it needs."""
    kept = state.reading
    if kept is not None and history is state.history and _same(kept.need, reading.need, scope):
        waits = state.timer_ms is not None
        if not waits or reading.sampled_ms - kept.sampled_ms < refresh_ms:
            return state
    return replace(state, reading=reading, history=history)


def _same(one: Need, other: Need, scope: Scope) -> bool:
    """Whether two needs come to the same recommendation, as surely."""
    if one == other:
        return True
    if (one.known is None, one.possible is None) != (other.known is None, other.possible is None):
        return False
    return recommended(one, scope) == recommended(other, scope)
