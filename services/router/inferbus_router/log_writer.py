"""Writes access log lines without ever making a request wait for a disk or a pipe.

Lines are gathered and written together, as much as can be taken without blocking. Invariant: at
most `MOST_WAITING_LINES` wait; beyond that lines are dropped and counted, because a log that can't
be written must not take the service down.
"""

import asyncio
import logging
import os
import select
import stat
from pathlib import Path

from inferbus_router.access_log import LineFormat
from inferbus_router.record import RequestRecord

MOST_WAITING_LINES = 20_000

_STANDARD_ERROR = Path("stderr")
_FILE_PIECE_BYTES = 1 << 20
_log = logging.getLogger("inferbus.router.access_log")


class LogWriter:
    """One access log."""

    def __init__(self, line: LineFormat, descriptor: int, flush_ms: int) -> None:
        """`descriptor` is closed with the writer."""
        self.dropped = 0
        """Lines that were lost."""
        self._line = line
        self._descriptor = descriptor
        self._flush_seconds = flush_ms / 1000
        self._lines: list[str] = []
        self._unwritten = memoryview(b"")
        self._timer: asyncio.TimerHandle | None = None
        self._failed = False
        self._poll = select.poll()
        self._poll.register(descriptor, select.POLLOUT)
        is_file = stat.S_ISREG(os.fstat(descriptor).st_mode)
        self._piece_bytes = _FILE_PIECE_BYTES if is_file else select.PIPE_BUF
        """What a descriptor that says it is writable takes at once without blocking."""

    def write(self, record: RequestRecord) -> None:
        """Log a request that has ended."""
        if len(self._lines) >= MOST_WAITING_LINES:
            self.dropped += 1
            return
        self._lines.append(self._line(record))
        if self._timer is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(self._flush_seconds, self._flush)

    def close(self) -> None:
        """Write what can be written at once, and close the descriptor."""
        if self._timer is not None:
            self._timer.cancel()
        self._write_waiting()
        os.close(self._descriptor)

    def _flush(self) -> None:
        self._timer = None
        self._write_waiting()
        if self._unwritten:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(self._flush_seconds, self._flush)

    def _write_waiting(self) -> None:
        if not self._unwritten:
            self._unwritten = memoryview("".join(self._lines).encode("utf-8", "backslashreplace"))
            self._lines.clear()
        try:
            while self._unwritten and self._poll.poll(0):
                written = os.write(self._descriptor, self._unwritten[: self._piece_bytes])
                self._unwritten = self._unwritten[written:]
        except OSError as error:
            self._drop(error)
        else:
            self._failed = False

    def _drop(self, error: OSError) -> None:
        self.dropped += bytes(self._unwritten).count(b"\n")
        self._unwritten = memoryview(b"")
        if not self._failed:
            self._failed = True
            _log.error("access log can't be written: %s", error)


def open_log(path: Path | None) -> int:
    """A descriptor for the log: of the file, appended to and created, or of a standard stream.

    Raises OSError.
    """
    if path is None:
        return os.dup(1)
    if path == _STANDARD_ERROR:
        return os.dup(2)
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
