"""When a source that failed is asked again.

Exponential backoff with jitter below a cap; a server that says how long to wait (RFC 9110
`Retry-After`, or the `RateLimit` header the hub sends) is obeyed. Invariant: no wait is longer than
the patience of the policy; a server that wants more is a failure now.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from email.utils import parsedate_to_datetime

_BUSY = frozenset({408, 425, 429})
_MAX_DOUBLINGS = 32
_RATE_LIMIT = re.compile(r"r\s*=\s*0\s*;\s*t\s*=\s*(\d+)")
"""No requests remain (`r=0`), and the window ends in `t` seconds."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RetryPolicy:
    """How patient a download is with its source."""

    attempts: int
    """Failures in a row, without a byte in between, that end it; at least 1."""
    base_ms: int
    cap_ms: int
    patience_ms: int
    """The longest wait that a server may ask for."""

    @property
    def impatient(self) -> "RetryPolicy":
        """The same, but the first failure ends it: for where there is something to fall back on."""
        return replace(self, attempts=1)


def is_transient(status: int) -> bool:
    """Whether the same request may succeed later, by its HTTP status."""
    return status in _BUSY or status >= 500


def asked_wait_ms(headers: Mapping[str, str], now_ms: int) -> int | None:
    """How long the server wants to be left alone, milliseconds from now; None: it doesn't say.

    `now_ms` is the real time since 1970, against which a date is measured. The names of headers
    must be in lower case.
    """
    rate_limit = _RATE_LIMIT.search(headers.get("ratelimit", ""))
    if rate_limit:
        return int(rate_limit[1]) * 1000
    text = headers.get("retry-after", "").strip()
    if text.isascii() and text.isdecimal():
        return int(text) * 1000
    try:
        moment = parsedate_to_datetime(text)
    except ValueError:
        return None
    return max(0, round(moment.timestamp() * 1000) - now_ms)


def wait_ms(
    policy: RetryPolicy, failures: int, asked_ms: int | None, fraction: float
) -> int | None:
    """How long to wait after the n-th failure in a row (from 1); None: give up.

    `fraction` in [0, 1] is the jitter: 0 waits half of the backoff, 1 all of it.
    """
    if failures >= policy.attempts:
        return None
    if asked_ms is not None:
        return asked_ms if asked_ms <= policy.patience_ms else None
    backoff = min(policy.cap_ms, policy.base_ms << min(failures - 1, _MAX_DOUBLINGS))
    return round(backoff * (1 + fraction) / 2)
