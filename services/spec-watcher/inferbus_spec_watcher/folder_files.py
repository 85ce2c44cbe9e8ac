"""The files of a folder of manifests: what they look like from outside, and what stands in them.

Invariant: what is read is what was looked at. A file that somebody writes in between is told apart,
and a folder that can't be read is never taken for an empty one: both would mean deletions.
"""

import errno
import os
from pathlib import Path

from inferbus_contracts.errors import ProblemsError
from inferbus_shared.manifests import content_of, manifest_files
from inferbus_spec_watcher.policy_folder import Look


class FileMovingError(Exception):
    """Somebody writes, replaces or removes the file at this moment."""


def look_around(root: Path) -> dict[str, Look]:
    """The manifests of a folder by their names in it.

    Raises OSError when the folder, or one in it, can't be read.
    """
    if root.exists() and not root.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(root))
    root.stat()
    looks = {file.relative_to(root).as_posix(): _look_at(file) for file in manifest_files(root)}
    return {name: look for name, look in looks.items() if look is not None}


def read_unchanged(file: Path, look: Look) -> bytes:
    """The content of a file as it was looked at.

    Raises `FileMovingError` when it looks otherwise by now, `ProblemsError` when it can't be read.
    """
    try:
        content = content_of(file)
    except ProblemsError:
        _check_unchanged(file, look)
        raise
    _check_unchanged(file, look)
    return content


def _check_unchanged(file: Path, look: Look) -> None:
    try:
        now = _look_at(file)
    except OSError as error:
        raise FileMovingError(str(file)) from error
    if now != look:
        raise FileMovingError(str(file))


def _look_at(file: Path) -> Look | None:
    """None for a file that has gone since it was listed."""
    try:
        stat = file.stat()
    except FileNotFoundError:
        return None
    return Look(stat.st_mtime_ns, stat.st_size, stat.st_ino)
