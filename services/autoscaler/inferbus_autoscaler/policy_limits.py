"""From a need to the replicas a target should have: the default decider's limiters, in order.

data -> tolerance -> bounds, which give the recommendation that windows remember, and then
stabilisation -> rate, or panic in their place -> bounds -> freeze. Invariant: the result lies
inside the bounds unless the target is frozen; limiters only move a number towards the current one,
bounds apart; every one that was asked is told as a step.
"""

from dataclasses import dataclass

from inferbus_autoscaler.facts import Behaviour, PanicPolicy, StepPolicy
from inferbus_autoscaler.policy_history import History
from inferbus_autoscaler.policy_need import NOISE_PARTS, Need, whole
from inferbus_autoscaler.policy_recommendation import clamp
from inferbus_autoscaler.policy_windows import Best
from inferbus_contracts.events.scaling import Limiter, LimiterStep

Steps = tuple[LimiterStep, ...]


@dataclass(frozen=True, kw_only=True)
class Scope:
    """The numbers every limiter may look at; of a mix in whole capacity units."""

    current: int
    min_replicas: int
    max_replicas: int
    tolerance_percent: int
    behaviour: Behaviour
    frozen: bool = False

    def bounded(self, replicas: int) -> int:
        """`replicas` inside the bounds."""
        return clamp(replicas, self.min_replicas, self.max_replicas)


@dataclass(frozen=True)
class Recommendation:
    """What the load asks for, before any limit that looks back."""

    value: int
    """Inside the bounds; the current number where nothing else may be said."""
    evidence: int | None
    """What the windows should remember; None when the sample taught nothing."""
    hit: bool | None
    """Whether the panic threshold was reached; None when the sample can't tell."""
    steps: Steps


def recommend(need: Need, scope: Scope, in_force: int | None) -> Recommendation:
    """Weigh a need against the current number; `in_force` is the last recommendation.

    Acts when need and current differ by the tolerance or more (ruling F1), by anything at all where
    the tolerance is 0. The panic threshold is compared before the bounds (autoscaling spec D14).
    """
    asked, supported, tolerated, value = _weighed(need, scope)
    tolerance = f"{scope.tolerance_percent} % of {scope.current}"
    steps = (
        _step(Limiter.DATA, asked, supported, _data_detail(need)),
        _step(Limiter.TOLERANCE, supported, tolerated, tolerance),
        _step(Limiter.BOUNDS, tolerated, value, f"{scope.min_replicas} to {scope.max_replicas}"),
    )
    evidence: int | None = value
    if need.known is None:
        evidence = None
    elif need.possible is None:
        evidence = max(min(value, scope.bounded(asked)), 0 if in_force is None else in_force)
    return Recommendation(value, evidence, _hit(asked, need, scope), steps)


def recommended(need: Need, scope: Scope) -> int:
    """The value of what `recommend` says, without its grounds."""
    return _weighed(need, scope)[-1]


def _weighed(need: Need, scope: Scope) -> tuple[int, int, int, int]:
    """What is asked for, and what is left of it after data, tolerance and bounds."""
    current = scope.current
    asked = current if need.known is None else whole(need.known)
    supported = _supported(asked, need, current)
    basis = need.known if asked >= current else need.possible
    inside = basis is not None and _inside_band(basis, scope)
    tolerated = current if inside else supported
    return asked, supported, tolerated, scope.bounded(tolerated)


def limit(value: int, history: History, scope: Scope, now_ms: int) -> Steps:
    """The limiters that look back, applied to a recommendation already in `history`."""
    if history.panic.active(scope.behaviour.panic, now_ms):
        steps: Steps = (_in_panic(value, history, scope, now_ms),)
    else:
        stabilised = _stabilised(value, history, scope, now_ms)
        steps = (stabilised, _rate_limited(stabilised.after, history, scope, now_ms))
    bounded = scope.bounded(steps[-1].after)
    if bounded != steps[-1].after:
        detail = f"{scope.min_replicas} to {scope.max_replicas}"
        steps = (*steps, _step(Limiter.BOUNDS, steps[-1].after, bounded, detail))
    if scope.frozen:
        steps = (*steps, _step(Limiter.FREEZE, bounded, scope.current, "frozen"))
    return steps


def most_allowed(history: History, scope: Scope, now_ms: int) -> int:
    """How many replicas the rate allows at most, whoever asks for them."""
    if history.panic.active(scope.behaviour.panic, now_ms):
        return scope.bounded(_in_panic(scope.max_replicas, history, scope, now_ms).after)
    return scope.bounded(_rate_limited(scope.max_replicas, history, scope, now_ms).after)


def binding(steps: Steps) -> Limiter:
    """The last limiter that changed the number."""
    changed = (step.name for step in reversed(steps) if step.after != step.before)
    return next(changed, Limiter.NONE)


def expiries(value: int, history: History, scope: Scope, now_ms: int) -> list[int]:
    """The future instants at which `limit` may come to another number, ascending."""
    behaviour, current = scope.behaviour, scope.current
    times = history.panic.expiries(behaviour.panic, now_ms)
    down, up, panic = behaviour.scale_down, behaviour.scale_up, behaviour.panic
    if value < current and down is not None:
        times += history.most_recommended.expiries(down.stabilisation_ms, now_ms, Best.MAX)
        times += history.most_replicas.expiries(down.period_ms, now_ms, Best.MAX)
    if value > current and up is not None:
        times += history.least_recommended.expiries(up.stabilisation_ms, now_ms, Best.MIN)
        times += history.least_replicas.expiries(up.period_ms, now_ms, Best.MIN)
    if value > current and panic is not None:
        times += history.least_replicas.expiries(panic.period_ms, now_ms, Best.MIN)
    return sorted(set(times))


def _step(name: Limiter, before: int, after: int, detail: str) -> LimiterStep:
    return LimiterStep(name=name, before=before, after=after, detail=detail)


def _supported(asked: int, need: Need, current: int) -> int:
    if asked >= current:
        return asked
    return current if need.possible is None else min(current, whole(need.possible))


def _data_detail(need: Need) -> str:
    if need.known is None:
        return "no metric has a value"
    if need.possible is None:
        return "the sample is partial or stale"
    return f"{need.known:.6g} to {need.possible:.6g} needed"


def _inside_band(needed: float, scope: Scope) -> bool:
    edge = scope.current * scope.tolerance_percent / 100
    return abs(needed - scope.current) < edge - scope.current / NOISE_PARTS


def _hit(asked: int, need: Need, scope: Scope) -> bool | None:
    panic = scope.behaviour.panic
    if panic is None or panic.threshold_percent is None or panic.hold_ms <= 0:
        return False
    if asked > scope.current and asked * 100 >= scope.current * panic.threshold_percent:
        return True
    return None if need.possible is None else False


def _in_panic(value: int, history: History, scope: Scope, now_ms: int) -> LimiterStep:
    """Never down, and up at least as far as without panic."""
    panic = scope.behaviour.panic or PanicPolicy()
    allowed, detail = value, "never down in panic"
    base = history.least_replicas.extreme(panic.period_ms, now_ms, Best.MIN)
    if value > scope.current > 0 and panic.period_ms > 0 and base:
        stable = _stabilised(value, history, scope, now_ms).after
        stable = _rate_limited(stable, history, scope, now_ms).after
        allowed = max(stable, min(value, base + _part(base, panic.percent)))
        detail = f"least of the last {panic.period_ms / 1000:g} s is {base}"
    return _step(Limiter.PANIC, value, max(allowed, scope.current), detail)


def _stabilised(value: int, history: History, scope: Scope, now_ms: int) -> LimiterStep:
    after, detail = value, "no window"
    down, up = scope.behaviour.scale_down, scope.behaviour.scale_up
    if value < scope.current and down is not None:
        most = history.most_recommended.extreme(down.stabilisation_ms, now_ms, Best.MAX)
        after = min(max(value, value if most is None else most), scope.current)
        detail = f"most of the last {down.stabilisation_ms / 1000:g} s is {most}"
    if value > scope.current and up is not None:
        least = history.least_recommended.extreme(up.stabilisation_ms, now_ms, Best.MIN)
        after = max(min(value, value if least is None else least), scope.current)
        detail = f"least of the last {up.stabilisation_ms / 1000:g} s is {least}"
    return _step(Limiter.STABILISATION, value, after, detail)


def _rate_limited(value: int, history: History, scope: Scope, now_ms: int) -> LimiterStep:
    after, detail = value, "no limit"
    down, up = scope.behaviour.scale_down, scope.behaviour.scale_up
    if value < scope.current and down is not None and down.period_ms > 0:
        base = history.most_replicas.extreme(down.period_ms, now_ms, Best.MAX)
        base = scope.current if base is None else max(base, scope.current)
        after = min(max(value, base - _reach(down, base)), scope.current)
        detail = f"most of the last {down.period_ms / 1000:g} s is {base}"
    if value > scope.current and up is not None and up.period_ms > 0:
        base = history.least_replicas.extreme(up.period_ms, now_ms, Best.MIN)
        base = scope.current if base is None else min(base, scope.current)
        after = max(min(value, base + _reach(up, base)), scope.current)
        detail = f"least of the last {up.period_ms / 1000:g} s is {base}"
    return _step(Limiter.RATE, value, after, detail)


def _reach(policy: StepPolicy, base: int) -> int:
    """How far one period may go from `base`."""
    by_percent = _part(base, policy.percent)
    if policy.select == "And":
        return min(policy.instances, by_percent)
    return max(policy.instances, by_percent)


def _part(base: int, percent: int) -> int:
    """`percent` of `base`, and at least 1 where the percentage isn't 0.

    A share of few replicas, or of none, would otherwise round down to nothing and hold the target
    where it is for ever (autoscaling spec D17).
    """
    return max(1, base * percent // 100) if percent > 0 else 0
