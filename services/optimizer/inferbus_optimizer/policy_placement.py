"""Which mix is taken: the optimum, or a dearer one that needs fewer starts, as long as that pays.

Invariant: the mix serves the demand wherever bounds, room and freezes allow it; a limiter says
where they don't.
"""

import math
from dataclasses import dataclass, replace
from fractions import Fraction

from inferbus_contracts.errors import shorten
from inferbus_contracts.events.scaling import Limiter, LimiterStep
from inferbus_optimizer.events import Demand
from inferbus_optimizer.policy_compat_blocks import MixTarget, allocate, blocks
from inferbus_optimizer.policy_exact import (
    Choice,
    Mix,
    capacity_of,
    cheapest,
    exact,
    running_cost,
)
from inferbus_optimizer.policy_room import choices_of, needed_of
from inferbus_optimizer.policy_switching import Bargain, Regret, starting_cost

LONGEST_DETAIL = 200
"""Characters."""

_ALWAYS = 2
"""Steps that every placement has: capacity and switching."""


@dataclass(frozen=True, kw_only=True)
class Placement:
    """One mix, and how it was come to."""

    replicas: tuple[int, ...]
    cost: int
    optimal_cost: int
    steps: tuple[LimiterStep, ...]
    binding: Limiter
    regret: Regret
    due_ms: int | None = None
    """When the optimum will be taken instead, if nothing changes."""


CUT_OFF = "search cut off"
"""Stands in the detail of a step where the least cost isn't proven to be the least."""


def place(
    demand: Demand,
    current: tuple[int, ...],
    frozen: frozenset[str],
    regret: Regret,
    now_ms: int,
) -> Placement:
    """The mix for a demand; `current` are the targets' replicas in the order of its options.

    The optimum is taken at once where that costs no more starting than to stay, and otherwise as
    soon as the extra cost of staying has run up to what switching may cost.
    """
    choices = choices_of(demand, current, frozen)
    needed = needed_of(demand, current, frozen)
    optimum = cheapest(choices, needed)
    if optimum is None:
        return _everything(choices, needed)
    kept = _staying(demand, choices, needed) or optimum
    bargain = _bargain(demand, choices, kept, optimum)
    due_ms = None
    if bargain.extra <= 0:
        chosen, regret = kept, regret.going_on(0, now_ms)
    elif bargain.pays(regret, now_ms):
        chosen, regret = optimum, Regret()
    else:
        chosen, regret = kept, regret.going_on(bargain.extra, now_ms)
        due_ms = bargain.due_ms(regret, now_ms)
    sure = choices_of(demand, current, frozen, sure=True)
    replicas = _on_trial(demand, sure, needed, chosen.replicas)
    steps = (
        _capacity_step(choices, needed, needed),
        _switching_step(optimum, chosen, bargain),
        *_trial_step(demand, chosen.replicas, replicas),
        *_freeze_step(demand, current, frozen, replicas),
    )
    return Placement(
        replicas=replicas,
        cost=running_cost(choices, replicas),
        optimal_cost=running_cost(choices, optimum.replicas),
        steps=steps,
        binding=_binding(steps, differs=chosen.replicas != optimum.replicas),
        regret=regret,
        due_ms=due_ms,
    )


def place_in_blocks(demand: Demand, current: tuple[int, ...]) -> Placement:
    """Upstream's mix for the demand's replicas: memoryless, and blind for capacity."""
    targets = [
        MixTarget(
            name=option.target,
            cost=option.cost,
            min_replicas=option.min_replicas,
            max_replicas=option.max_replicas,
        )
        for option in demand.options
    ]
    replicas = allocate(targets, blocks(targets, demand.rate_percent), demand.replicas)
    choices = choices_of(demand, current, frozenset())
    optimum = cheapest(choices, exact(demand.capacity))
    cost = running_cost(choices, replicas)
    step = LimiterStep(name=Limiter.BOUNDS, before=demand.replicas, after=sum(replicas))
    return Placement(
        replicas=replicas,
        cost=cost,
        optimal_cost=running_cost(choices, optimum.replicas) if optimum else cost,
        steps=(step,),
        binding=Limiter.NONE if step.before == step.after else Limiter.BOUNDS,
        regret=Regret(),
    )


def _staying(demand: Demand, choices: list[Choice], needed: Fraction) -> Mix | None:
    """The mix that stays closest to what runs; None when nothing stays.

    A sufficient mix starts nothing and drops what it can spare. Otherwise something must be
    started: what is cheapest over the longest start-up time, with what starting may cost on top.
    """
    no_starts = [
        replace(choice, max_replicas=choice.min_replicas + choice.kept) for choice in choices
    ]
    sufficient = cheapest(no_starts, needed)
    if sufficient is not None:
        return sufficient
    horizon_ms = max(option.startup_ms for option in demand.options)
    if horizon_ms == 0:
        return None
    reluctant = [
        replace(
            choice,
            cost=100 * horizon_ms * choice.cost,
            starting_cost=demand.rate_percent * cost,
        )
        for choice, cost in zip(choices, _start_costs(demand), strict=True)
    ]
    return cheapest(reluctant, needed)


def _start_costs(demand: Demand) -> list[int]:
    """What one replica of each target costs while it starts, cost times milliseconds."""
    return [option.cost * option.startup_ms for option in demand.options]


def _bargain(demand: Demand, choices: list[Choice], kept: Mix, optimum: Mix) -> Bargain:
    current = [choice.current for choice in choices]
    costs = _start_costs(demand)
    starts = [starting_cost(costs, current, mix.replicas) for mix in (kept, optimum)]
    return Bargain(
        extra=running_cost(choices, kept.replicas) - running_cost(choices, optimum.replicas),
        switching=starts[1] - starts[0],
        rate_percent=demand.rate_percent,
    )


def _on_trial(
    demand: Demand, sure: list[Choice], needed: Fraction, wanted: tuple[int, ...]
) -> tuple[int, ...]:
    """`wanted`, but with probes on top of a mix that doesn't rest on them."""
    tried = [count > choice.max_replicas for choice, count in zip(sure, wanted, strict=True)]
    if not any(tried):
        return wanted
    safe = _staying(demand, sure, needed) or cheapest(sure, needed)
    counts = safe.replicas if safe else tuple(choice.max_replicas for choice in sure)
    triples = zip(tried, wanted, counts, strict=True)
    return tuple(want if probe else count for probe, want, count in triples)


def _everything(choices: list[Choice], needed: Fraction) -> Placement:
    """All there is, because that isn't enough."""
    most = tuple(choice.max_replicas for choice in choices)
    cost = running_cost(choices, most)
    step = _capacity_step(choices, needed, capacity_of(choices, most))
    return Placement(
        replicas=most,
        cost=cost,
        optimal_cost=cost,
        steps=(step,),
        binding=Limiter.CAPACITY,
        regret=Regret(),
    )


def _capacity_step(choices: list[Choice], needed: Fraction, served: Fraction) -> LimiterStep:
    most = capacity_of(choices, [choice.max_replicas for choice in choices])
    return LimiterStep(
        name=Limiter.CAPACITY,
        before=math.ceil(needed),
        after=math.ceil(served) if served >= needed else math.floor(served),
        detail=f"{float(needed):g} units needed, {float(most):g} possible",
    )


def _switching_step(optimum: Mix, chosen: Mix, bargain: Bargain) -> LimiterStep:
    detail = f"optimum costs {bargain.extra} less, starting it {bargain.switching} ms times cost"
    if not (optimum.proven and chosen.proven):
        detail += f"; {CUT_OFF}"
    return LimiterStep(
        name=Limiter.STABILISATION,
        before=sum(optimum.replicas),
        after=sum(chosen.replicas),
        detail=detail,
    )


def _trial_step(
    demand: Demand, wanted: tuple[int, ...], replicas: tuple[int, ...]
) -> tuple[LimiterStep, ...]:
    """How short accelerators are, where they are."""
    short = [
        f"{option.target}: {option.schedulable} can be scheduled"
        + (", one more is tried" if option.probe and count == option.schedulable + 1 else "")
        for option, count in zip(demand.options, replicas, strict=True)
        if option.schedulable is not None
    ]
    if not short:
        return ()
    return (
        LimiterStep(
            name=Limiter.CAPACITY,
            before=sum(wanted),
            after=sum(replicas),
            detail=shorten("; ".join(short), LONGEST_DETAIL),
        ),
    )


def _freeze_step(
    demand: Demand,
    current: tuple[int, ...],
    frozen: frozenset[str],
    replicas: tuple[int, ...],
) -> tuple[LimiterStep, ...]:
    if not frozen:
        return ()
    nothing: frozenset[str] = frozenset()
    free = cheapest(choices_of(demand, current, nothing), needed_of(demand, current, nothing))
    return (
        LimiterStep(
            name=Limiter.FREEZE,
            before=sum(free.replicas if free else replicas),
            after=sum(replicas),
            detail=", ".join(sorted(frozen)),
        ),
    )


def _binding(steps: tuple[LimiterStep, ...], *, differs: bool) -> Limiter:
    for step in reversed(steps[_ALWAYS:]):
        if step.before != step.after:
            return step.name
    return Limiter.STABILISATION if differs else Limiter.NONE
