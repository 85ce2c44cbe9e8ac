"""How many replicas each target of a mix has, as far as the optimizer is concerned.

What it asked for itself until that is answered, by the reconciler or by a demand that has seen a
newer generation; then the newest of the two. Invariant: an old observation never undoes a newer
answer.
"""

from dataclasses import replace

from inferbus_contracts.deciding import Applied
from inferbus_contracts.events.scaling import ApplyOutcome
from inferbus_optimizer.events import Demand, Option
from inferbus_optimizer.state import MixState, Standing

_AGAIN = frozenset({ApplyOutcome.CONFLICT, ApplyOutcome.FAILED})
"""Answers after which an allocation counts as never made."""


def demanded(state: MixState, demand: Demand) -> MixState:
    """The state that knows a demand and what it saw of the targets."""
    standings = tuple(_seen(state.standing(option.target), option) for option in demand.options)
    if standings == state.standings and demand == state.demand:
        return state
    return replace(state, demand=demand, standings=standings)


def answered(state: MixState, event: Applied, last_decision_id: str) -> MixState:
    """The state after the reconciler's answer about one target."""
    known = state.standing(event.target)
    if known is None or known.uid != event.uid:
        return state
    own = event.decision_id == last_decision_id
    new = replace(known, asked=None) if own else known
    if event.generation >= known.generation:
        new = replace(new, generation=event.generation, replicas=event.replicas)
    if new == known:
        return state
    standings = tuple(new if each is known else each for each in state.standings)
    allocation = None if own and event.outcome in _AGAIN else state.allocation
    return replace(state, standings=standings, allocation=allocation)


def asked(state: MixState, replicas: tuple[int, ...]) -> MixState:
    """The state after targets were told to have `replicas`, in order."""
    pairs = zip(state.standings, replicas, strict=True)
    return replace(
        state,
        standings=tuple(
            replace(known, asked=None if wanted == current(known) else wanted)
            for known, wanted in pairs
        ),
    )


def current(known: Standing) -> int:
    """The replicas of one target."""
    return known.replicas if known.asked is None else known.asked


def applying(state: MixState) -> bool:
    """Whether an answer is still awaited."""
    return any(known.asked is not None for known in state.standings)


def _seen(known: Standing | None, option: Option) -> Standing:
    if known is None or known.uid != option.uid or option.generation > known.generation:
        return Standing(
            target=option.target,
            uid=option.uid,
            generation=option.generation,
            replicas=option.current,
        )
    return known
