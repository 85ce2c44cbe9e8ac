"""How long to wait: before a failed call is tried again, and between calls where they are limited.

Pure: chance and time are passed in.
"""

from dataclasses import dataclass

FIRST_DELAY_SECONDS = 0.5
LONGEST_DELAY_SECONDS = 30.0
LONGEST_RETRY_AFTER_SECONDS = 60.0
"""A proxy that asks for more isn't obeyed: the API server itself asks for single seconds."""


def back_off_seconds(failures: int, chance: float) -> float:
    """The delay after the `failures`-th failure in a row (1 or more); `chance` is in [0, 1).

    Doubles up to half a minute and is spread over its upper half, so that the watches of a fleet
    don't come back in one moment, and none comes back at once. (AWS Architecture Blog,
    "Exponential Backoff And Jitter", equal jitter)
    """
    longest = min(FIRST_DELAY_SECONDS * 2.0 ** min(failures - 1, 30), LONGEST_DELAY_SECONDS)
    return longest * (0.5 + chance / 2)


def spread(seconds: float, chance: float, share: float = 0.1) -> float:
    """`seconds` and up to `share` of it more."""
    return seconds * (1.0 + share * chance)


def retry_after_seconds(header: str | None) -> float | None:
    """What a `Retry-After` header asks for, at most a minute; None where it says nothing usable.

    Only the form in seconds is read; the API server sends no dates. (RFC 9110, 10.2.3)
    """
    if header is None or not header.strip().isascii() or not header.strip().isdigit():
        return None
    return min(float(header), LONGEST_RETRY_AFTER_SECONDS)


@dataclass(slots=True)
class Pace:
    """Lets `per_second` calls begin, a second's worth of them at once. 0: all of them.

    The generic cell rate algorithm. (ITU-T I.371, annex A)
    """

    per_second: float
    _due: float = 0.0

    def delay_seconds(self, now_seconds: float) -> float:
        """Take a place; how long its call has to wait."""
        if not self.per_second:
            return 0.0
        gap = 1.0 / self.per_second
        due = max(self._due, now_seconds)
        self._due = due + gap
        return max(0.0, due + gap - max(1.0, gap) - now_seconds)
