"""How a program ends: problems on standard error, one line each, and an exit code that says which.

0: done; 1: a bug, with its traceback; 2: bad input or a bad setting; 3: the platform or the bus is
not there or refuses; 130: interrupted.
"""

import sys
import traceback
from collections.abc import Callable

from inferbus_contracts.errors import Problem, ProblemsError

EXIT_BUG = 1
EXIT_BAD_INPUT = 2
EXIT_PLATFORM = 3
EXIT_INTERRUPTED = 130

_PLATFORM_CODES = ("IB-3", "IB-4")
_BAD_INPUT_CODES = ("IB-4003", "IB-4008")


def exit_code(problems: tuple[Problem, ...]) -> int:
    """The exit code that the first problem stands for."""
    code = problems[0].code.value
    platform = code.startswith(_PLATFORM_CODES) and not code.startswith(_BAD_INPUT_CODES)
    return EXIT_PLATFORM if platform else EXIT_BAD_INPUT


def run_program(main: Callable[[], int | None]) -> int:
    """Run `main` and turn what it raises into output for people and an exit code."""
    try:
        return main() or 0
    except ProblemsError as error:
        for problem in error.problems:
            sys.stderr.write(f"error: {problem}\n")
        return exit_code(error.problems)
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except Exception:
        traceback.print_exc()
        return EXIT_BUG
