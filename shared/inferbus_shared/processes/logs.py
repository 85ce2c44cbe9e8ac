"""Log files of bounded size, without a process that stands between a program and its log.

A program appends to its file by itself. Now and then the owner cuts the head off: it copies the
head into `<file>.1` and then takes exactly those bytes out of the file in one system call, so that
a line written meanwhile is neither lost nor doubled. Where a file system can't collapse a file
(tmpfs, btrfs) the head's disk space is freed instead: the file then reads as zero bytes up to its
new start.
"""

import errno
import os
from dataclasses import dataclass
from pathlib import Path

from inferbus_contracts.errors import ErrorCode, Problem, ProblemsError
from inferbus_shared.processes.linux import collapse_range, punch_hole


@dataclass(frozen=True, slots=True)
class LogLimit:
    """How much is kept of one program's output."""

    max_bytes: int = 8 * 1024 * 1024
    """The file is cut once it takes more than this on disk."""
    generations: int = 2
    """Older parts that are kept beside it, `<file>.1` being the youngest; 0: none."""


def trim_log(path: Path, limit: LogLimit) -> bool:
    """Cut the log at `path` when it has grown over the limit; whether it did.

    Raises `ProblemsError` when the disk is full or the file system can free nothing of a file.
    """
    try:
        status = path.stat()
    except FileNotFoundError:
        return False
    if status.st_blocks * 512 <= limit.max_bytes:
        return False
    try:
        with path.open("r+b") as file:
            block = os.fstatvfs(file.fileno()).f_bsize
            length = (status.st_size - 1) // block * block
            if length == 0:
                return False
            if limit.generations:
                _keep_head(path, file.fileno(), length, limit.generations)
            _cut_head(file.fileno(), length)
    except FileNotFoundError:  # its folder is being removed
        return False
    except OSError as error:
        raise _unable(path, error) from error
    return True


def _keep_head(path: Path, descriptor: int, length: int, generations: int) -> None:
    for number in range(generations - 1, 0, -1):
        older = _generation(path, number)
        if older.exists():
            older.replace(_generation(path, number + 1))
    unfinished = path.with_name(f"{path.name}.part")
    with unfinished.open("wb") as copy:
        # What an earlier cut freed without moving the rest is a hole, and stays out of the copy.
        offset = os.lseek(descriptor, 0, os.SEEK_DATA)
        while offset < length:
            sent = os.sendfile(copy.fileno(), descriptor, offset, length - offset)
            if sent == 0:
                break
            offset += sent
    unfinished.replace(_generation(path, 1))


def _generation(path: Path, number: int) -> Path:
    return path.with_name(f"{path.name}.{number}")


def _cut_head(descriptor: int, length: int) -> None:
    try:
        collapse_range(descriptor, length)
    except OSError as error:
        if error.errno not in (errno.EOPNOTSUPP, errno.EINVAL):
            raise
        punch_hole(descriptor, length)


def _unable(path: Path, error: OSError) -> ProblemsError:
    full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    return ProblemsError(
        Problem(
            code=ErrorCode.DISK_FULL if full else ErrorCode.UNSUPPORTED,
            message=f"the log could not be cut to its limit: {error.strerror}",
            file=str(path),
            remedy="free some space" if full else "move the platform to ext4, xfs, btrfs or tmpfs",
        )
    )
