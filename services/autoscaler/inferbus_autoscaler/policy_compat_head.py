"""One loop of upstream's autoscaler for a single target or the total of a mix.

Compat `kthena-head`, and `kthena-v0.1` by its rules: recommendation, panic gate, correction, and
recording, in that order (autoscaling spec 2.10 to 2.14). Invariant: a loop without any metric
changes nothing, and its state holds all that the next loop needs.
"""

from dataclasses import dataclass, replace

from inferbus_autoscaler.facts import Behaviour, PanicPolicy
from inferbus_autoscaler.policy_correction import (
    HEAD_RULES,
    CompatRules,
    CompatWindows,
    CorrectionInput,
    correct,
)
from inferbus_autoscaler.policy_panic import PanicGate
from inferbus_autoscaler.policy_recommendation import RecommendationInput, recommend
from inferbus_contracts.events.scaling import LimiterStep


@dataclass(frozen=True)
class CompatLoop:
    """The state between two loops."""

    windows: CompatWindows
    panic_until_ms: int = 0

    @classmethod
    def first(cls, behaviour: Behaviour, rules: CompatRules = HEAD_RULES) -> "CompatLoop":
        """The state of a policy that was never looked at."""
        return cls(CompatWindows.empty(behaviour, rules))

    def in_panic(self, behaviour: Behaviour, now_ms: int) -> bool:
        """Whether panic rules at `now_ms`."""
        return panic_gate(behaviour).active(self.panic_until_ms, now_ms)


@dataclass(frozen=True)
class LoopResult:
    """What one loop came to; `want` and `applied` are None where it was skipped."""

    loop: CompatLoop
    want: int | None = None
    applied: int | None = None
    panic: bool = False
    steps: tuple[LimiterStep, ...] = ()


def run_loop(
    loop: CompatLoop,
    given: RecommendationInput,
    behaviour: Behaviour,
    now_ms: int,
    rules: CompatRules = HEAD_RULES,
) -> LoopResult:
    """Recommend, gate, correct and record at `now_ms`."""
    want = recommend(given)
    if want is None:
        return LoopResult(loop, panic=loop.in_panic(behaviour, now_ms))
    gate = panic_gate(behaviour)
    until_ms = gate.refreshed(loop.panic_until_ms, now_ms, hit=gate.hit(want, given.current))
    panic = gate.active(until_ms, now_ms)
    steps = correct(
        CorrectionInput(
            want=want,
            current=given.current,
            min_replicas=given.min_replicas,
            max_replicas=given.max_replicas,
            panic=panic,
            behaviour=behaviour,
            windows=loop.windows,
            rules=rules,
            now_ms=now_ms,
        )
    )
    applied = steps[-1].after
    windows = loop.windows.recorded(want, applied, now_ms, rules)
    return LoopResult(
        replace(loop, windows=windows, panic_until_ms=until_ms), want, applied, panic, steps
    )


def panic_gate(behaviour: Behaviour) -> PanicGate:
    """The gate as the policy sets it; without a panic policy it never opens."""
    panic = behaviour.panic or PanicPolicy(threshold_percent=None, hold_ms=0)
    return PanicGate(threshold_percent=panic.threshold_percent, hold_ms=panic.hold_ms)
