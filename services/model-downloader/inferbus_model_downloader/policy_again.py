"""Which failed requests the service tries again, and when.

Invariant: what only a person can change (a name, a right, a broken source) is not tried again by
itself; what passes by itself is, more and more rarely, until the bus gives the event up.
"""

from inferbus_contracts.errors import ErrorCode, Problem

_PASSING = frozenset({ErrorCode.MODEL_SOURCE_UNREACHABLE, ErrorCode.DISK_FULL, ErrorCode.CONFLICT})
_MAX_DOUBLINGS = 32


def again_seconds(
    problem: Problem, deliveries: int, base_seconds: int, cap_seconds: int, max_retries: int
) -> int | None:
    """After how long the n-th delivery (from 1) of a request is followed by another; None: never.

    `max_retries` deliveries may be followed by another one.
    """
    if problem.code not in _PASSING or deliveries > max_retries:
        return None
    return min(cap_seconds, base_seconds << min(deliveries - 1, _MAX_DOUBLINGS))
