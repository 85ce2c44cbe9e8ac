"""Why the bus is silent or refuses, where the reason is the disk of this very machine.

Invariant: what went wrong is told first by its cause; nothing is told that isn't so.
"""

import shutil
from pathlib import Path

from inferbus_contracts.errors import ErrorCode, Problem, ProblemsError
from inferbus_shared.bus.fate import is_transient

FULL_BYTES = 1024 * 1024
"""Less free space than that is none: the server writes in larger pieces."""


def with_cause(error: ProblemsError, folder: Path) -> ProblemsError:
    """The error, behind a problem DISK_FULL where the bus failed and the folder's disk is full."""
    if not is_transient(error):
        return error
    try:
        free_bytes = shutil.disk_usage(folder).free
    except OSError:
        return error
    if free_bytes >= FULL_BYTES:
        return error
    return ProblemsError(_full(folder, free_bytes), *error.problems)


def _full(folder: Path, free_bytes: int) -> Problem:
    return Problem(
        code=ErrorCode.DISK_FULL,
        message="the disk that the platform stands on is full, so its event log takes nothing",
        file=str(folder),
        value=f"{free_bytes // 1024} KiB free",
        remedy="make room on it; the platform then goes on by itself, with all it has acknowledged",
    )
