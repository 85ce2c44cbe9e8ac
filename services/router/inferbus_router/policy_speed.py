"""How fast endpoints process prompts, learned from what they did.

Times are added up with the tokens they took, recent ones more, so that short prompts, whose time is
mostly overhead, hardly count. Invariant: what is learned stays between `FASTEST` and `SLOWEST`, and
no single prompt moves it far.
"""

DEFAULT_MS_PER_TOKEN = 1 / 8
"""8,000 tokens/s: before anything was learned."""
FASTEST_MS_PER_TOKEN = 1 / 1_000
SLOWEST_MS_PER_TOKEN = 20.0
LEAST_TOKENS = 128
"""Shorter prompts tell of overhead, not of speed."""
_MOST_FACTOR = 4.0
"""A prompt that took longer, or shorter, by more than that counts as by that much."""
_MEMORY_TOKENS = 200_000
"""What was seen is halved beyond that many tokens."""
_FLEET_TOKENS = 20_000
"""An endpoint's own speed counts as much as its fleet's after that many tokens."""


class PrefillSpeed:
    """The speed of one endpoint, or of all of one kind."""

    __slots__ = ("_fleet", "_ms", "_tokens", "ms_per_token")

    def __init__(self, fleet: "PrefillSpeed | None" = None) -> None:
        """`fleet`: what holds until this one has learned; None: the default."""
        self._fleet = fleet
        self._tokens = 0.0
        self._ms = 0.0
        self.ms_per_token: float = fleet.ms_per_token if fleet else DEFAULT_MS_PER_TOKEN

    def learn(self, tokens: int, took_ms: float) -> None:
        """Prompts of that many tokens, one after the other, took that long."""
        if tokens < LEAST_TOKENS:
            return
        expected_ms = tokens * self.ms_per_token
        if self._tokens:
            took_ms = min(max(took_ms, expected_ms / _MOST_FACTOR), expected_ms * _MOST_FACTOR)
        self._tokens += tokens
        self._ms += took_ms
        if self._tokens > _MEMORY_TOKENS:
            self._tokens /= 2
            self._ms /= 2
        self._set(self._prior_ms_per_token(tokens, took_ms))

    def _prior_ms_per_token(self, tokens: int, took_ms: float) -> float:
        if self._fleet is None:
            return DEFAULT_MS_PER_TOKEN
        self._fleet.learn(tokens, took_ms)
        return self._fleet.ms_per_token

    def _set(self, prior: float) -> None:
        weight = _FLEET_TOKENS if self._fleet else _FLEET_TOKENS / 20
        learned = (self._ms + weight * prior) / (self._tokens + weight)
        self.ms_per_token = min(max(learned, FASTEST_MS_PER_TOKEN), SLOWEST_MS_PER_TOKEN)
