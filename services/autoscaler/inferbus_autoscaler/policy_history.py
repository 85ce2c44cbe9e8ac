"""What a target was recommended, how many replicas it had, and how long panic lasts.

Invariant: windows hold recommendations, never limited values (autoscaling spec D1); a history in
which nothing changed is the same object.
"""

from dataclasses import dataclass, field, replace

from inferbus_autoscaler.facts import PanicPolicy
from inferbus_autoscaler.policy_held_window import HeldWindow
from inferbus_autoscaler.policy_windows import Best


@dataclass(frozen=True, kw_only=True)
class PanicHold:
    """Panic lasts while samples hit its threshold, and for the hold time after the last did."""

    hitting: bool = False
    ended_ms: int | None = None
    """When the last hit ended; None before the first."""

    def noticed(self, hit: bool, now_ms: int) -> "PanicHold":
        """The hold after a sample; itself where nothing changed."""
        if hit == self.hitting:
            return self
        return PanicHold(hitting=True) if hit else PanicHold(ended_ms=now_ms)

    def active(self, policy: PanicPolicy | None, now_ms: int) -> bool:
        """Whether panic rules at `now_ms`; a hold of 0 ms switches it off."""
        if policy is None or policy.hold_ms <= 0:
            return False
        return self.hitting or (self.ended_ms is not None and now_ms < self._end_ms(policy))

    def expiries(self, policy: PanicPolicy | None, now_ms: int) -> list[int]:
        """When panic will end by itself, if it will."""
        if policy is None or self.hitting or not self.active(policy, now_ms):
            return []
        return [self._end_ms(policy)]

    def _end_ms(self, policy: PanicPolicy) -> int:
        return (self.ended_ms or 0) + policy.hold_ms


@dataclass(frozen=True, kw_only=True)
class History:
    """The windows of one target, or of one mix."""

    most_recommended: HeldWindow = field(default_factory=HeldWindow)
    least_recommended: HeldWindow = field(default_factory=HeldWindow)
    most_replicas: HeldWindow = field(default_factory=HeldWindow)
    least_replicas: HeldWindow = field(default_factory=HeldWindow)
    panic: PanicHold = field(default_factory=PanicHold)

    @property
    def recommended(self) -> int | None:
        """The recommendation in force; None before the first."""
        return self.most_recommended.value

    def started(self, current: int, now_ms: int, most_stamps: int) -> "History":
        """A new history begins as if the current number had been recommended until now.

        A policy that is new to a running target thus neither undoes its replicas at once nor jumps
        past its limits with the first step.
        """
        if self.recommended is not None:
            return self
        history = self.with_recommendation(current, now_ms, most_stamps)
        return history.with_replicas(current, now_ms, most_stamps)

    def with_recommendation(self, value: int, now_ms: int, most_stamps: int) -> "History":
        """The history after `value` was recommended."""
        most = self.most_recommended.held(value, now_ms, Best.MAX)
        if most is self.most_recommended:
            return self
        least = self.least_recommended.held(value, now_ms, Best.MIN)
        most, least = _bounded(most, least, most_stamps)
        return replace(self, most_recommended=most, least_recommended=least)

    def with_replicas(self, value: int, now_ms: int, most_stamps: int) -> "History":
        """The history after the target came to have `value` replicas."""
        most = self.most_replicas.held(value, now_ms, Best.MAX)
        if most is self.most_replicas:
            return self
        least = self.least_replicas.held(value, now_ms, Best.MIN)
        most, least = _bounded(most, least, most_stamps)
        return replace(self, most_replicas=most, least_replicas=least)

    def with_hit(self, hit: bool, now_ms: int) -> "History":
        """The history after a sample did, or didn't, reach the panic threshold."""
        panic = self.panic.noticed(hit, now_ms)
        return self if panic is self.panic else replace(self, panic=panic)


def _bounded(
    most: HeldWindow, least: HeldWindow, most_stamps: int
) -> tuple[HeldWindow, HeldWindow]:
    """The two sides of one value, together short enough to be recorded.

    A change is kept on one side or the other, seldom on both: with `MOST_STAMPS` and one change
    every 15 s, the longest window stays exact.
    """
    surplus = len(most.past) + len(least.past) - most_stamps
    if surplus <= 0:
        return most, least
    if len(most.past) >= len(least.past):
        return most.shortened(len(most.past) - surplus), least
    return most, least.shortened(len(least.past) - surplus)
