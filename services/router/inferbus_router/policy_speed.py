"""How fast endpoints process prompts, learned from what they did.

Endpoints of one model server are mostly alike, and single times scatter widely, so one is thought
to differ from its fleet only as far as chance can't explain it. Invariant: what is learned stays
between `FASTEST_MS_PER_TOKEN` and `SLOWEST_MS_PER_TOKEN`, and no single prompt moves it far.
"""

from math import sqrt

DEFAULT_MS_PER_TOKEN = 1 / 8
"""8,000 tokens/s: before anything was learned."""
FASTEST_MS_PER_TOKEN = 1 / 1_000
SLOWEST_MS_PER_TOKEN = 20.0
LEAST_TOKENS = 128
"""Shorter prompts tell of overhead, not of speed."""
_MOST_FACTOR = 4.0
"""A prompt that took longer, or shorter, by more than that counts as by that much."""
_DEFAULT_TOKENS = 100
"""What the default weighs beside what was seen: next to nothing."""
_LEAST_PROMPTS = 8
"""One endpoint is thought to be like the others until it has processed so many: the first to be
measured would otherwise be compared with nothing but a guess.
"""
_FLEET_MEMORY_TOKENS = 1_000_000
"""What was seen is halved beyond that many tokens."""
_OWN_MEMORY_PROMPTS = 128
"""What was seen of one endpoint is halved beyond that many prompts."""
_SCATTER = 1.0
"""Twice what the times of equal prompts differ by from their mean, relative to it."""


class FleetSpeed:
    """The speed of endpoints that are thought to be alike."""

    def __init__(self) -> None:
        self.ms_per_token = DEFAULT_MS_PER_TOKEN
        self._tokens = 0.0
        self._ms = 0.0

    def learn(self, tokens: int, took_ms: float) -> float:
        """One of them processed a prompt of that many tokens; returns the time that counts."""
        expected_ms = tokens * self.ms_per_token
        if self._tokens:
            took_ms = min(max(took_ms, expected_ms / _MOST_FACTOR), expected_ms * _MOST_FACTOR)
        self._tokens += tokens
        self._ms += took_ms
        if self._tokens > _FLEET_MEMORY_TOKENS:
            self._tokens /= 2
            self._ms /= 2
        default_ms = _DEFAULT_TOKENS * DEFAULT_MS_PER_TOKEN
        learned = (self._ms + default_ms) / (self._tokens + _DEFAULT_TOKENS)
        self.ms_per_token = min(max(learned, FASTEST_MS_PER_TOKEN), SLOWEST_MS_PER_TOKEN)
        return took_ms


class Slowness:
    """By how much one endpoint is slower than its fleet, as far as that is certain."""

    __slots__ = ("_expected_ms", "_prompts", "_took_ms", "factor")

    def __init__(self) -> None:
        self.factor = 1.0
        """2: it takes twice as long."""
        self._prompts = 0
        self._expected_ms = 0.0
        self._took_ms = 0.0

    def learn(self, tokens: int, took_ms: float, fleet: FleetSpeed) -> None:
        """The endpoint processed a prompt of that many tokens, and nothing else, in that time."""
        if tokens < LEAST_TOKENS:
            return
        self._took_ms += fleet.learn(tokens, took_ms)
        self._expected_ms += tokens * fleet.ms_per_token
        self._prompts += 1
        if self._prompts > _OWN_MEMORY_PROMPTS:
            self._prompts //= 2
            self._expected_ms /= 2
            self._took_ms /= 2
        if self._prompts >= _LEAST_PROMPTS:
            self.factor = _beyond_chance(self._took_ms / self._expected_ms, self._prompts)


def _beyond_chance(factor: float, prompts: int) -> float:
    """The factor as far as it can't be chance."""
    chance = _SCATTER / sqrt(prompts)
    if factor > 1:
        return max(1.0, factor / (1 + chance))
    return min(1.0, factor * (1 + chance))
