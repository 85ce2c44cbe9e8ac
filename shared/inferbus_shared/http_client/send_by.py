"""Until when a request may still be sent.

Between deciding to send and sending a process can stand still, and others may have taken over
meanwhile; so the clock is asked once more where the request is written, in the same step.
"""

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_SEND_BY: ContextVar[float] = ContextVar("send_by", default=math.inf)


@contextmanager
def sent_by(steady_seconds: float) -> Iterator[None]:
    """Requests of this task are sent by then (`time.monotonic`), or raise `NotSentError`."""
    token = _SEND_BY.set(steady_seconds)
    try:
        yield
    finally:
        _SEND_BY.reset(token)


def is_too_late() -> bool:
    """Whether nothing may be sent any more."""
    return time.monotonic() > _SEND_BY.get()
