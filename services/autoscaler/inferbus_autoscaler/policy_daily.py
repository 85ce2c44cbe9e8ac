"""What comes again each day: how a rate changes by the time of day, and how far to believe it.

Learned is by what factor the rate changes from each slot of the day to the next, a mean over days
that forgets, so that a day that is busier as a whole teaches nothing wrong. How much of what the
rhythm says is added to the trend's forecast follows from what was: when a forecast falls due, the
trend's error is regressed on the correction that the rhythm had for it (the combination of
forecasts of Bates & Granger 1969). Invariants: without skill the trend's forecast stands alone;
the size is bounded.
"""

import base64
import math
import struct
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

from pydantic import BeforeValidator, PlainSerializer

from inferbus_autoscaler.policy_trend import Forecast, Trend

SLOTS = 144
"""Of a day of virtual time, in UTC."""
_SLOT_MS = 86_400_000 // SLOTS
_LEAST_SHARE_OF_SLOT = 0.5
"""Of a slot that has to be counted for its mean to say anything."""
_PARTS = 400
MOST_CHANGE = 921
"""In parts: from one slot to the next at most tenfold, or a tenth."""
_MEMORY_DAYS = 4
_LEAST_RATE = 0.02
"""Per second; a mean is never taken to be less."""
MOST_AWAITED = 2
"""Forecasts that wait for their time at once: nearer ones are wrong together."""
_SKILL_SECONDS = 2 * 86_400.0
"""How long what became of a forecast counts."""
_DOUBT = 10.0
"""Squared standard errors that skill has to exceed: errors that follow each other are less than
they seem."""
_MOST_ERROR = 1.0
"""A forecast counts as wrong by at most so many times the rate it was for."""
_LEAST_VARIANCE_SHARE = 0.3
_BELOW = 0.5
"""Standard deviations by which a rhythm may lower a trend's forecast: load that is on its way and
was never there at this time of day is no chance."""


def pack(changes: tuple[int, ...]) -> str:
    """Two bytes each, as base64: half of what the digits take."""
    return base64.b64encode(struct.pack(f">{len(changes)}h", *changes)).decode()


def unpack(packed: Any) -> Any:
    """The inverse of `pack`; anything but a text is left to the validation that follows."""
    if not isinstance(packed, str):
        return packed
    data = base64.b64decode(packed, validate=True)
    if len(data) != 2 * SLOTS:
        raise ValueError(f"should be {2 * SLOTS} bytes, two for each slot of a day")
    return struct.unpack(f">{SLOTS}h", data)


Changes = Annotated[
    tuple[int, ...], BeforeValidator(unpack), PlainSerializer(pack, when_used="json")
]


@dataclass(frozen=True, kw_only=True)
class Awaited:
    """A forecast that waits for its time."""

    due_ms: int
    rate: float
    """Per second, by the trend alone."""
    correction: float
    """What the rhythm would have added, per second."""


@dataclass(frozen=True, kw_only=True)
class Skill:
    """Sums over forecasts that fell due, the older the less; relative to the rate forecast."""

    forecasts: float = 0.0
    errors: float = 0.0
    """Squared, of the trend alone."""
    corrections: float = 0.0
    """Squared."""
    agreement: float = 0.0
    """Errors times corrections: positive where the correction was to the right side."""

    def after(self, awaited: Awaited, rate: float, kept: float) -> "Skill":
        """The skill when `rate` came; `kept` is the share of what was before that counts."""
        scale = max(awaited.rate, _LEAST_RATE)
        error = _bounded((rate - awaited.rate) / scale, _MOST_ERROR)
        correction = _bounded(awaited.correction / scale, _MOST_ERROR)
        return Skill(
            forecasts=self.forecasts * kept + 1,
            errors=self.errors * kept + error * error,
            corrections=self.corrections * kept + correction * correction,
            agreement=self.agreement * kept + error * correction,
        )

    @property
    def weight(self) -> float:
        """The part of a correction to be made, 0 to 1; 0 where chance could explain the skill."""
        if self.agreement <= 0 or self.corrections <= 0:
            return 0.0
        weight = self.agreement / self.corrections
        left = max(self.errors - weight * self.agreement, 0.0)
        doubt = _DOUBT * left / (self.forecasts * self.agreement * weight)
        return min(weight, 1.0) * max(1.0 - doubt, 0.0)

    @property
    def variance_share(self) -> float:
        """What is left of a forecast's variance with the correction made.

        The root of what is left of the squared errors: usual errors get smaller with a rhythm
        known, surprises don't.
        """
        weight = self.weight
        if weight == 0:
            return 1.0
        left = self.errors - weight * (2 * self.agreement - weight * self.corrections)
        return max(math.sqrt(max(left / self.errors, 0.0)), _LEAST_VARIANCE_SHARE)


@dataclass(frozen=True, kw_only=True)
class Slot:
    """A slot of a day that is being counted."""

    number: int
    """Since 1970."""
    requests: float = 0.0
    seconds: float = 0.0

    @property
    def mean(self) -> float | None:
        """Per second; None where too little was counted."""
        if self.seconds * 1000 < _LEAST_SHARE_OF_SLOT * _SLOT_MS:
            return None
        return max(self.requests / self.seconds, _LEAST_RATE)


@dataclass(frozen=True, kw_only=True)
class Daily:
    """The rhythm of a target's days."""

    changes: Changes = SLOTS * (0,)
    """By slot: the logarithm of the factor to the next one's mean, in parts of `_PARTS`."""
    learned: int = 0
    """How many changes were."""
    slot: Slot = field(default_factory=lambda: Slot(number=0))
    before: float | None = None
    """Mean rate of the slot before, per second; None: unknown."""
    awaited: tuple[Awaited, ...] = ()
    """Oldest first."""
    skill: Skill = field(default_factory=Skill)

    def after(
        self, trend: Trend, rate: float, seconds: float, now_ms: int, ahead_seconds: float
    ) -> "Daily":
        """The rhythm after `seconds` in which arrivals came at `rate`, and moved the trend."""
        counted = self._counted(rate, seconds, now_ms)
        judged = counted._judged(trend, now_ms, ahead_seconds)
        return judged._awaiting(trend, now_ms, ahead_seconds)

    def forecast(self, trend: Trend, now_ms: int, seconds: float) -> Forecast:
        """The rate in `seconds`: the trend's, corrected as far as corrections have proven right."""
        plain, weight = trend.forecast(seconds), self.skill.weight
        if weight == 0:
            return plain
        corrected = plain.rate + weight * self._correction(trend, now_ms, seconds)
        return Forecast(
            rate=max(corrected, 0.0), variance=plain.variance * self.skill.variance_share
        )

    def ratio(self, now_ms: int, seconds: float) -> float:
        """By what factor a usual day's rate differs in `seconds` from what it is now."""
        return math.exp(self._until(now_ms + round(seconds * 1000)) - self._until(now_ms))

    def _until(self, at_ms: int) -> float:
        """Logarithm of the rate, up to a constant, along the days of the rhythm."""
        days, within_ms = divmod(at_ms - _SLOT_MS // 2, SLOTS * _SLOT_MS)
        index, passed_ms = divmod(within_ms, _SLOT_MS)
        parts = days % 2 * sum(self.changes) + sum(self.changes[:index])
        return (parts + self.changes[index] * passed_ms / _SLOT_MS) / _PARTS

    def _correction(self, trend: Trend, now_ms: int, seconds: float) -> float:
        plain = trend.forecast(seconds)
        rate = trend.level * self.ratio(now_ms, seconds)
        return max(rate - plain.rate, -_BELOW * math.sqrt(plain.variance))

    def _counted(self, rate: float, seconds: float, now_ms: int) -> "Daily":
        number = (now_ms - round(seconds * 500)) // _SLOT_MS
        slot = self.slot
        if number == slot.number:
            more = replace(
                slot, requests=slot.requests + rate * seconds, seconds=slot.seconds + seconds
            )
            return replace(self, slot=more)
        begun = Slot(number=number, requests=rate * seconds, seconds=seconds)
        mean = slot.mean
        ended = self if mean is None or self.before is None else self._learned(mean / self.before)
        return replace(ended, slot=begun, before=mean if number == slot.number + 1 else None)

    def _learned(self, factor: float) -> "Daily":
        """The rhythm when the slot that ends had so many times the rate of the one before it."""
        index = (self.slot.number - 1) % SLOTS
        known = self.changes[index]
        gain = 1 / min(self.learned // SLOTS + 1, _MEMORY_DAYS)
        new = known + gain * (_bounded(math.log(factor) * _PARTS, MOST_CHANGE) - known)
        changes = (*self.changes[:index], round(new), *self.changes[index + 1 :])
        return replace(self, changes=changes, learned=min(self.learned + 1, SLOTS * _MEMORY_DAYS))

    def _judged(self, trend: Trend, now_ms: int, ahead_seconds: float) -> "Daily":
        skill = self.skill
        due = [awaited for awaited in self.awaited if awaited.due_ms <= now_ms]
        kept = math.exp(-ahead_seconds / MOST_AWAITED / _SKILL_SECONDS)
        for awaited in due:
            skill = skill.after(awaited, trend.smoothed, kept)
        if not due:
            return self
        return replace(self, skill=skill, awaited=self.awaited[len(due) :])

    def _awaiting(self, trend: Trend, now_ms: int, ahead_seconds: float) -> "Daily":
        due_ms = now_ms + round(ahead_seconds * 1000)
        spacing_ms = ahead_seconds * 1000 / MOST_AWAITED
        if self.learned < SLOTS:
            return self
        if self.awaited and due_ms - self.awaited[-1].due_ms < spacing_ms:
            return self
        awaited = Awaited(
            due_ms=due_ms,
            rate=trend.forecast(ahead_seconds).rate,
            correction=self._correction(trend, now_ms, ahead_seconds),
        )
        return replace(self, awaited=(*self.awaited, awaited)[-MOST_AWAITED:])


def _bounded(value: float, most: float) -> float:
    return min(max(value, -most), most)
