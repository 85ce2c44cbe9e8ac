"""How the package's commands end: a line of what was done, or every problem and exit status 1."""

import sys
from collections.abc import Callable

from inferbus_contracts.errors import ProblemsError


def run_command(work: Callable[[], str]) -> int:
    """Do the work and tell its result; the exit status."""
    try:
        sys.stdout.write(f"{work()}\n")
    except ProblemsError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0
