"""What happens when somebody else was first: look again and decide anew, a bounded number of times.

Invariant: who loses has changed nothing.
"""

from inferbus_contracts.errors import ErrorCode, Problem, ProblemsError
from inferbus_contracts.keys import ObjectKey

ATTEMPTS = 8
"""As often a change is planned anew before its author is told to try again."""


class StaleError(Exception):
    """A write rested on an older picture; the picture is fresh now: decide again."""


def too_contested(key: ObjectKey) -> ProblemsError:
    """The error of a change that lost against others again and again."""
    return ProblemsError(
        Problem(
            code=ErrorCode.CONFLICT,
            message="others changed the object at the same time, several times in a row",
            object=str(key),
            remedy="try again",
        )
    )
