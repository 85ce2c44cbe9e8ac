"""What became of the requests: how many, how fast, how many at the moment.

Invariant: a request that was sent is in flight until it is answered, once, well or not. Times are
the fleet's own, milliseconds since the demo began.
"""

import math
from collections import Counter, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

WINDOW_MS = 60_000
"""What is shown of the present is about the last minute."""

_ROUNDING = 1e-9
"""Of products of floats: 0.95 of 20 is the 19th."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The end of one request."""

    sent_ms: float
    first_token_ms: float | None = None
    """From sending to the first piece of the answer; None where none came."""
    total_ms: float
    error: str = ""
    """Empty for a whole answer."""

    @property
    def ended_ms(self) -> float:
        """When it was answered."""
        return self.sent_ms + self.total_ms


@dataclass(frozen=True, slots=True)
class Spread:
    """Quantiles of a latency, milliseconds; None where nothing was measured."""

    p50_ms: float | None
    p95_ms: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Present:
    """One model's traffic over the last minute."""

    per_second: float
    in_flight: int
    first_token: Spread
    total: Spread


@dataclass
class Measured:
    """The requests to one model."""

    sent: int = 0
    answers: list[Answer] = field(default_factory=list)
    _recent_sent: deque[float] = field(default_factory=deque)
    _recent: deque[Answer] = field(default_factory=deque)

    def send(self, at_ms: float) -> None:
        """A request goes out."""
        self.sent += 1
        self._recent_sent.append(at_ms)

    def answer(self, answer: Answer) -> None:
        """It came to an end; answers come in the order they end."""
        self.answers.append(answer)
        self._recent.append(answer)

    @property
    def errors(self) -> Counter[str]:
        """Those without a whole answer, by what is known of them."""
        return Counter(one.error for one in self.answers if one.error)

    def present(self, now_ms: float) -> Present:
        """The last minute; `now_ms` never goes back."""
        since_ms = now_ms - WINDOW_MS
        while self._recent_sent and self._recent_sent[0] <= since_ms:
            self._recent_sent.popleft()
        while self._recent and self._recent[0].ended_ms <= since_ms:
            self._recent.popleft()
        seconds = min(WINDOW_MS, max(now_ms, 1000)) / 1000
        return Present(
            per_second=len(self._recent_sent) / seconds,
            in_flight=self.sent - len(self.answers),
            first_token=first_token_spread(self._recent),
            total=total_spread(self._recent),
        )


def first_token_spread(answers: Iterable[Answer]) -> Spread:
    """The time to the first token."""
    return _spread([one.first_token_ms for one in answers if one.first_token_ms is not None])


def total_spread(answers: Iterable[Answer]) -> Spread:
    """The time to the whole answer; failures don't count, however fast they were."""
    return _spread([one.total_ms for one in answers if not one.error])


def quantile(ascending: Sequence[float], share: float) -> float:
    """The least value that at least `share` (0 to 1) of the values don't exceed (nearest rank)."""
    rank = math.ceil(share * len(ascending) - _ROUNDING)
    return ascending[max(rank, 1) - 1]


def _spread(values: list[float]) -> Spread:
    if not values:
        return Spread(None, None)
    values.sort()
    return Spread(quantile(values, 0.5), quantile(values, 0.95))
