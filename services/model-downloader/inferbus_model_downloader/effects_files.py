"""Durable names: what the file system must be told so that a power cut can't undo it.

Invariant: a rename that returned is on disk, and so is everything below it.
"""

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from inferbus_contracts.errors import ErrorCode, Problem, ProblemsError
from inferbus_model_downloader.policy_space import disk_full

SHARED_MODE = 0o644
"""Files of a cache are read by containers that run as other users."""

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})


def sync_folder(folder: Path) -> None:
    """Put the names in `folder` on disk. Raises OSError."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_tree(root: Path) -> None:
    """Put all names below and in `root` on disk, the deepest first. Raises OSError."""
    for folder, _, _ in os.walk(root, topdown=False):
        sync_folder(Path(folder))


def write_bytes(path: Path, data: bytes) -> None:
    """Replace the file at `path` by `data`, as a whole or not at all. Raises OSError."""
    temporary = path.with_name(f".{path.name}.new")
    with temporary.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)


def free_bytes(folder: Path) -> int:
    """What an ordinary user may still write to the file system of `folder`."""
    return shutil.disk_usage(folder).free


@contextmanager
def disk_problems(folder: Path) -> Iterator[None]:
    """Turn what the file system refuses into `ProblemsError` (DISK_FULL, PERMISSION_DENIED)."""
    try:
        yield
    except OSError as error:
        raise ProblemsError(_problem(error, folder)) from error


def _problem(error: OSError, folder: Path) -> Problem:
    if error.errno in _FULL:
        return disk_full(error.strerror or "no space left", str(folder))
    return Problem(
        code=ErrorCode.PERMISSION_DENIED,
        message=f"the file system refuses: {error.strerror or error}",
        file=str(error.filename or folder),
        remedy="give this user a folder it may write to, on a disk that works",
    )
