"""One download per artifact and file system, however many processes want it.

An flock(2) on a file that is never removed says who works; the kernel gives it back when its holder
dies, however it dies. Where a file system grants the same lock twice (network mounts), or somebody
emptied the cache under a running download, the token in the file fences: its holder stops before it
writes again. Invariant: nothing is written for an artifact under a token that is no longer in the
file.
"""

import asyncio
import errno
import fcntl
import os
import secrets
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from inferbus_contracts.errors import ErrorCode, Problem, ProblemsError
from inferbus_model_downloader.effects_files import SHARED_MODE, disk_problems

POLL_SECONDS = 0.2

_HELD = frozenset({errno.EACCES, errno.EAGAIN})
_NOT_OFFERED = frozenset({errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL})


class ArtifactLock:
    """The right to download one artifact, while it is held."""

    def __init__(self, path: Path, token: str) -> None:
        self._path = path
        self._token = token

    def check(self) -> None:
        """Raise `ProblemsError` (CONFLICT) when another process has taken over."""
        try:
            token = self._path.read_text()
        except FileNotFoundError:
            token = ""
        if token != self._token:
            raise ProblemsError(
                Problem(
                    code=ErrorCode.CONFLICT,
                    message="another process has taken over the download of this artifact",
                    file=str(self._path),
                    remedy=(
                        "nothing was lost; don't empty a cache that is in use, and keep it on a "
                        "file system whose locks exclude each other"
                    ),
                )
            )


@asynccontextmanager
async def exclusive(path: Path, on_wait: Callable[[], None]) -> AsyncIterator[ArtifactLock]:
    """Hold the lock at `path`; while another has it, `on_wait` is called a few times a second.

    Raises `ProblemsError` (PERMISSION_DENIED, DISK_FULL, UNSUPPORTED) when the lock can't be had at
    all: waiting for it would never end.
    """
    with disk_problems(path.parent):
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, SHARED_MODE)
    try:
        while not _taken(descriptor, path):
            on_wait()
            await asyncio.sleep(POLL_SECONDS)
        token = secrets.token_hex(16)
        with disk_problems(path.parent):
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, token.encode(), 0)
        yield ArtifactLock(path, token)
    finally:
        os.close(descriptor)


def _taken(descriptor: int, path: Path) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in _HELD:
            return False
        if error.errno in _NOT_OFFERED:
            raise ProblemsError(_not_offered(path)) from error
        raise
    return True


def _not_offered(path: Path) -> Problem:
    return Problem(
        code=ErrorCode.UNSUPPORTED,
        message="the file system of the cache has no file locks",
        file=str(path),
        remedy="put the cache on a file system that supports flock(2)",
    )
