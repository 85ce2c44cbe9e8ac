"""The optimizer's core: `decide(state, event, facts, now_ms) -> (state, effects)`.

One synchronous pure function from an event to what should happen: no clock, no randomness, no I/O.
Invariants: the same input gives the same bytes; where nothing that matters changed, the identical
state comes back without any effect; a record's input alone gives the same allocation again.
"""

from dataclasses import replace

from inferbus_contracts.deciding import Applied, ClearTimer, SetTimer, Woken, no_decision
from inferbus_contracts.events.scaling import (
    Allocation,
    ApplyOutcome,
    DecisionRecord,
    ScalingAllocated,
)
from inferbus_optimizer.events import Demand, Demanded, Event
from inferbus_optimizer.facts import Facts, PolicyFacts
from inferbus_optimizer.outcomes import Allocate, Effect
from inferbus_optimizer.policy_placement import Placement, place, place_in_blocks
from inferbus_optimizer.policy_standing import answered, applying, asked, current, demanded
from inferbus_optimizer.record import CoreInput, record_of
from inferbus_optimizer.state import LastAllocation, MixState

Effects = tuple[Effect, ...]

_AUTO = "auto"

_NOT_NOW = frozenset({ApplyOutcome.FAILED, ApplyOutcome.FROZEN})
"""Answers that are no ground to try at once: the next demand does."""


def decide(state: MixState, event: Event, facts: Facts, now_ms: int) -> tuple[MixState, Effects]:
    """The state after `event`, and what is to be done; `now_ms` is the policy's virtual time.

    A key without a policy forgets everything.
    """
    policy = facts.policy
    if policy is None:
        return MixState(), (ClearTimer(),) if state.timer_ms is not None else ()
    given = CoreInput(state=state, event=event, facts=facts, now_ms=now_ms)
    now_ms = max(now_ms, state.changed_ms)
    after = state
    if state.policy_uid != policy.uid:
        after = MixState(policy_uid=policy.uid, changed_ms=state.changed_ms)
    looks = True
    if isinstance(event, Demanded):
        after = demanded(after, event.demand)
    elif isinstance(event, Applied):
        after = answered(after, event, facts.decision_id)
        looks = event.outcome not in _NOT_NOW
    else:
        looks = event.due_ms == after.timer_ms
        after = replace(after, timer_ms=None) if looks else after
    if after.demand is None or not looks:
        return _stored(given, after, now_ms), ()
    return _concluded(given, policy, after, after.demand, now_ms)


def recompute(record: DecisionRecord) -> bytes:
    """Canonical JSON of the allocation, computed again from nothing but its record's input.

    Equals the original bytes where `record.version` is this decider's. Raises `ProblemsError` when
    the input isn't one of this decider's, or gives no allocation under these rules.
    """
    given = CoreInput.from_dict(record.input)
    _, effects = decide(given.state, given.event, given.facts, given.now_ms)
    for effect in effects:
        if isinstance(effect, Allocate):
            return effect.data.to_json()
    raise no_decision(record.version)


def _stored(given: CoreInput, after: MixState, now_ms: int) -> MixState:
    return given.state if after == given.state else replace(after, changed_ms=now_ms)


def _concluded(
    given: CoreInput, policy: PolicyFacts, after: MixState, demand: Demand, now_ms: int
) -> tuple[MixState, Effects]:
    """Place the demand, and decide whether that is said and when to look again."""
    if applying(after) and not _repeats(given, after, now_ms):
        return _stored(given, after, now_ms), ()
    known = tuple(current(standing) for standing in after.standings)
    if policy.compat:
        found = place_in_blocks(demand, known)
    else:
        found = place(demand, known, frozenset(given.facts.frozen), after.regret, now_ms)
    said = _repeats(given, after, now_ms) or _says_more(given, after, demand, found)
    if said:
        allocation = LastAllocation(
            replicas=found.replicas, binding=found.binding, decided_ms=now_ms
        )
        after = replace(after, allocation=allocation)
        after = asked(after, found.replicas) if demand.apply == _AUTO else after
    after = replace(after, regret=found.regret, timer_ms=found.due_ms)
    after = _stored(given, after, now_ms)
    effects = _timer_effects(given, after)
    if not said:
        return after, effects
    data = ScalingAllocated(
        apply=demand.apply,
        allocations=_allocations(after, known, found),
        cost=found.cost,
        optimal_cost=found.optimal_cost,
        record=record_of(given, policy, demand, found, after),
    )
    return after, (Allocate(policy.key, data), *effects)


def _repeats(given: CoreInput, after: MixState, now_ms: int) -> bool:
    """Whether the last allocation is so old that the demand is answered again."""
    last = after.allocation
    if last is None or not isinstance(given.event, Demanded):
        return False
    return now_ms - last.decided_ms >= given.facts.settings.repeat_ms


def _says_more(given: CoreInput, after: MixState, demand: Demand, found: Placement) -> bool:
    """Whether `found` is more than the last allocation already said."""
    last = after.allocation
    arrives = isinstance(given.event, Demanded)
    moves = found.replicas != tuple(current(known) for known in after.standings)
    if last is None:
        return arrives or moves
    changed = found.replicas != last.replicas or (arrives and found.binding is not last.binding)
    return changed or (moves and demand.apply == _AUTO)


def _timer_effects(given: CoreInput, after: MixState) -> Effects:
    set_ms = given.state.timer_ms
    if isinstance(given.event, Woken) and given.event.due_ms == set_ms:
        set_ms = None
    if after.timer_ms == set_ms:
        return ()
    if after.timer_ms is None:
        return (ClearTimer(),)
    return (SetTimer(after.timer_ms, "switching pays"),)


def _allocations(after: MixState, known: tuple[int, ...], found: Placement) -> list[Allocation]:
    return [
        Allocation(
            target=standing.target,
            uid=standing.uid,
            generation=standing.generation,
            current=have,
            desired=wanted,
        )
        for standing, have, wanted in zip(after.standings, known, found.replicas, strict=True)
    ]
