"""When a request is sent again, and when its failure is the client's to see.

Only failures that say nothing about the request itself are retried, and only before the first byte
of a response went to the client (routing spec, defects 1 to 3 and 18): an engine's 4xx or 500
passes through at once. Invariant: the extra attempts of one request never exceed what its model
server declares, or one where the connection alone failed, at each server it is sent to; and over
time retries stay a fraction of requests.
"""

import re
from enum import Enum, auto

RETRYABLE_STATUSES = frozenset({502, 503, 504})
TOO_MANY_REQUESTS = 429
MOST_RETRY_AFTER_MS = 10_000
"""An endpoint that asks to be left alone for longer is not waited for: its client is told so."""

_RETRY_AFTER = re.compile(rb"\r\nretry-after:[ \t]*([0-9]{1,9})[ \t]*(?:\r\n|$)", re.IGNORECASE)


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
    BUSY = auto()
    """It answered 429 and said when to come back: nothing is wrong with it."""
    TRY_TIMEOUT = auto()
    """The time for one attempt passed, that of the request hasn't."""
    TIMEOUT = auto()
    """The request's deadline passed: there is no time left for another attempt."""


_NEVER_SENT = frozenset({Failure.CONNECT, Failure.STALE})


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
    retry_after_ms: int = 0,
) -> int | None:
    """Milliseconds to wait before the next attempt; None when there is none.

    `declared_attempts` and `interval_ms` are the ModelServer's `trafficPolicy.retry`; `jitter` is
    in [0, 1) and spreads the wait over [interval / 2, interval × 3 / 2). A request that never
    reached an engine is sent again at once. `retry_after_ms` is how long the only endpoint that is
    left asked to be left alone; nobody is waited for longer than `MOST_RETRY_AFTER_MS`.
    """
    if failure is Failure.TIMEOUT or retry_after_ms > MOST_RETRY_AFTER_MS:
        return None
    never_sent = failure in _NEVER_SENT
    allowed = max(1, declared_attempts) if never_sent else declared_attempts
    if retries_made >= allowed:
        return None
    return 0 if never_sent else max(retry_after_ms, round(interval_ms * (0.5 + jitter)))


def may_fall_back(failure: Failure, declared_attempts: int) -> bool:
    """Whether another target of the rule may be tried once those of one have failed (routing spec,
    defect 24).

    A request that may have reached an engine goes elsewhere only where its model server declares
    retries at all.
    """
    return failure in _NEVER_SENT or (failure is not Failure.TIMEOUT and declared_attempts > 0)


def read_retry_after_ms(header_lines: bytes) -> int | None:
    """What a response says in Retry-After, milliseconds; None where it doesn't in seconds.

    The form with a date (RFC 9110, 10.2.3) is left to the client: engines don't send it.
    """
    found = _RETRY_AFTER.search(header_lines)
    return None if found is None else int(found[1]) * 1000
