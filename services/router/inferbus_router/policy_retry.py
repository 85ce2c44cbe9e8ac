"""When a request is sent again, and when its failure is the client's to see.

Only failures that say nothing about the request itself are retried, and only before the first byte
of a response went to the client (routing spec, defects 1 to 3 and 18): an engine's 4xx or 500
passes through at once. Invariant: the extra attempts of one request never exceed what its model
server declares, or one where the connection alone failed; and over time retries stay a fraction of
requests.
"""

from enum import Enum, auto

RETRYABLE_STATUSES = frozenset({502, 503, 504})


class Failure(Enum):
    """How an attempt failed before its response began."""

    CONNECT = auto()
    """No connection to the endpoint: the request was never sent."""
    STALE = auto()
    """A kept connection was closed by the endpoint, which never saw the request."""
    BROKEN = auto()
    """The endpoint closed the connection, or sent something that isn't HTTP."""
    STATUS = auto()
    """The endpoint answered with one of `RETRYABLE_STATUSES`."""
    TIMEOUT = auto()
    """The request's deadline passed: there is no time left for another attempt."""


class RetryBudget:
    """Keeps retries to a fifth of the requests, so that an outage isn't multiplied.

    A router that just started, or has little traffic, may still retry `MOST / 5` times.
    """

    MOST = 100
    _PER_RETRY = 5

    def __init__(self) -> None:
        self._fifths = self.MOST
        self._requests = 0

    def spend(self, requests: int) -> bool:
        """True when a retry may be made, which is then paid for.

        `requests` is how many have arrived ever: each pays for a fifth of a retry.
        """
        self._fifths = min(self.MOST, self._fifths + requests - self._requests)
        self._requests = requests
        if self._fifths < self._PER_RETRY:
            return False
        self._fifths -= self._PER_RETRY
        return True


def retry_delay_ms(
    failure: Failure,
    retries_made: int,
    declared_attempts: int,
    interval_ms: int,
    jitter: float,
) -> int | None:
    """Milliseconds to wait before the next attempt; None when there is none.

    `declared_attempts` and `interval_ms` are the ModelServer's `trafficPolicy.retry`; `jitter` is
    in [0, 1) and spreads the wait over [interval / 2, interval × 3 / 2). A request that never
    reached an engine is sent again at once.
    """
    if failure is Failure.TIMEOUT:
        return None
    never_sent = failure in (Failure.CONNECT, Failure.STALE)
    allowed = max(1, declared_attempts) if never_sent else declared_attempts
    if retries_made >= allowed:
        return None
    return 0 if never_sent else round(interval_ms * (0.5 + jitter))
