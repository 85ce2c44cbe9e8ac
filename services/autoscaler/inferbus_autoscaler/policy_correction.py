"""From a recommendation to the replicas applied, exactly as upstream (autoscaling spec 2.13, 2.14).

Invariant: the result lies inside the bounds whatever the limits say; panic never scales down; a
stable loop never crosses the current number against the direction of its recommendation.
"""

from dataclasses import dataclass, replace

from inferbus_autoscaler.facts import Behaviour, PanicPolicy, StepPolicy
from inferbus_autoscaler.policy_panic import wrap_int32
from inferbus_autoscaler.policy_recommendation import clamp
from inferbus_autoscaler.policy_windows import Best, RateWindow, RecommendationWindow
from inferbus_contracts.events.scaling import Limiter, LimiterStep


@dataclass(frozen=True)
class CompatRules:
    """Where the versions of upstream differ."""

    rate_down_best: Best = Best.MAX
    """V01 takes the minimum, so that the limit is one of each loop (T51)."""
    records_applied: bool = False
    """Stabilisation remembers what was applied instead of what was recommended (D1)."""
    panic_leaves_zero: bool = True
    """V01 limits panic from zero replicas to zero (T69)."""


HEAD_RULES = CompatRules()
HEAD_MIX_RULES = CompatRules(records_applied=True)
V01_RULES = CompatRules(
    rate_down_best=Best.MIN,
    records_applied=True,
    panic_leaves_zero=False,
)


@dataclass(frozen=True)
class CompatWindows:
    """The five histories of one target, or of one mix."""

    stabilise_down: RecommendationWindow
    stabilise_up: RecommendationWindow
    rate_down: RateWindow
    rate_up: RateWindow
    rate_panic: RateWindow

    @classmethod
    def empty(cls, behaviour: Behaviour, rules: CompatRules) -> "CompatWindows":
        """Windows without history, as long as the policy says."""
        down, up, panic = behaviour.scale_down, behaviour.scale_up, behaviour.panic
        return cls(
            stabilise_down=RecommendationWindow(Best.MAX, down.stabilisation_ms if down else 0),
            stabilise_up=RecommendationWindow(Best.MIN, up.stabilisation_ms if up else 0),
            rate_down=RateWindow(rules.rate_down_best, down.period_ms if down else 0),
            rate_up=RateWindow(Best.MIN, up.period_ms if up else 0),
            rate_panic=RateWindow(Best.MIN, panic.period_ms if panic else 0),
        )

    def recorded(self, want: int, applied: int, now_ms: int, rules: CompatRules) -> "CompatWindows":
        """The windows after a loop."""
        recommended = applied if rules.records_applied else want
        return replace(
            self,
            stabilise_down=self.stabilise_down.appended(recommended, now_ms),
            stabilise_up=self.stabilise_up.appended(recommended, now_ms),
            rate_down=self.rate_down.appended(applied, now_ms),
            rate_up=self.rate_up.appended(applied, now_ms),
            rate_panic=self.rate_panic.appended(applied, now_ms),
        )


@dataclass(frozen=True, kw_only=True)
class CorrectionInput:
    """What a loop knows when it limits its recommendation."""

    want: int
    current: int
    min_replicas: int
    max_replicas: int
    panic: bool
    behaviour: Behaviour
    windows: CompatWindows
    rules: CompatRules
    now_ms: int


def correct(given: CorrectionInput) -> tuple[LimiterStep, ...]:
    """The limiters in the order applied; the last one's `after` is the number to apply."""
    if given.panic:
        steps = [_panic_step(given)]
    else:
        stabilised = _stabilised(given)
        steps = [
            _step(Limiter.STABILISATION, given.want, stabilised),
            _step(Limiter.RATE, stabilised, _rate_limited(given, stabilised)),
        ]
    before = steps[-1].after
    after = clamp(before, given.min_replicas, given.max_replicas)
    return (*steps, _step(Limiter.BOUNDS, before, after))


def _step(name: Limiter, before: int, after: int) -> LimiterStep:
    return LimiterStep(name=name, before=before, after=after)


def _panic_step(given: CorrectionInput) -> LimiterStep:
    corrected = given.want
    base = given.windows.rate_panic.extreme(given.current, given.now_ms)
    if base is not None and (base > 0 or not given.rules.panic_leaves_zero):
        percent = (given.behaviour.panic or PanicPolicy()).percent
        corrected = min(corrected, base + int(float(base) * percent / 100))
    return _step(Limiter.PANIC, given.want, max(corrected, given.current))


def _stabilised(given: CorrectionInput) -> int:
    windows, now_ms = given.windows, given.now_ms
    if given.want < given.current:
        return max(given.want, _or_zero(windows.stabilise_down.extreme(now_ms)))
    if given.want > given.current:
        extreme = windows.stabilise_up.extreme(now_ms)
        return given.want if extreme is None else min(given.want, extreme)
    return given.want


def _or_zero(extreme: int | None) -> int:
    return 0 if extreme is None else extreme


def _rate_limited(given: CorrectionInput, corrected: int) -> int:
    """Called with the stabilised number; the direction is still that of the recommendation."""
    if given.want < given.current:
        base = given.windows.rate_down.extreme(given.current, given.now_ms)
        floor = _limit(given.behaviour.scale_down, base, Best.MIN)
        return min(corrected if floor is None else max(corrected, floor), given.current)
    if given.want > given.current:
        base = given.windows.rate_up.extreme(given.current, given.now_ms)
        ceiling = _limit(given.behaviour.scale_up, base, Best.MAX)
        return max(corrected if ceiling is None else min(corrected, ceiling), given.current)
    return corrected


def _limit(policy: StepPolicy | None, base: int | None, permissive: Best) -> int | None:
    """The furthest number allowed; `permissive` names the direction of the movement."""
    if policy is None or base is None or policy.select not in ("Or", "And"):
        return None
    sign = 1 if permissive is Best.MAX else -1
    part = int(wrap_int32(base * policy.percent) / 100)
    by_count, by_percent = wrap_int32(base + sign * policy.instances), base + sign * part
    strict = Best.MIN if permissive is Best.MAX else Best.MAX
    return (permissive if policy.select == "Or" else strict).of(by_count, by_percent)
