"""The system calls that Python has no name for.

Each function is one call of the kernel or of the C library, with errors as OSError; nothing here
knows what it is used for.
"""

import ctypes
import os
from pathlib import Path

_PR_SET_NAME = 15
_SYS_PIDFD_GETFD = 438
"""The same number on every architecture: calls added since Linux 5.1 share one table."""
_FALLOC_KEEP_SIZE = 0x01
_FALLOC_PUNCH_HOLE = 0x02
_FALLOC_COLLAPSE_RANGE = 0x08
_COMM_BYTES = 15
_ARG_START, _ARG_END = 47, 48
"""Positions in /proc/<pid>/stat, counted from 0; see proc(5)."""

_libc = ctypes.CDLL(None, use_errno=True)
_libc.fallocate.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64]


def _checked(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


def stat_fields(pid: int | str) -> list[str]:
    """The fields of /proc/<pid>/stat, counted from 0; raises OSError when there is no such process.

    The second field, the name, may itself hold spaces and parentheses.
    """
    text = Path(f"/proc/{pid}/stat").read_text()
    head, _, tail = text.rpartition(")")
    pid_text, _, name = head.partition(" (")
    return [pid_text, name, *tail.split()]


def set_process_title(title: str) -> None:
    """Show `title` in ps(1) and its first 15 bytes in /proc/<pid>/comm.

    The command line is overwritten in place, so that a title is cut to the length the process was
    started with.
    """
    name = ctypes.create_string_buffer(title.encode()[:_COMM_BYTES])
    _checked(_libc.prctl(_PR_SET_NAME, name, 0, 0, 0))
    fields = stat_fields("self")
    start, end = int(fields[_ARG_START]), int(fields[_ARG_END])
    room = end - start
    if start and room > 1:
        ctypes.memmove(start, title.encode()[: room - 1].ljust(room, b"\0"), room)


def pidfd_getfd(pidfd: int, descriptor: int) -> int:
    """A copy, in this process, of a descriptor of another one (Linux 5.6, ptrace rights needed)."""
    return _checked(_libc.syscall(_SYS_PIDFD_GETFD, pidfd, descriptor, 0))


def collapse_range(descriptor: int, length: int) -> None:
    """Take the first `length` bytes out of a file; the rest moves to the front.

    `length` must be a multiple of the block size and less than the file's. ext4 and xfs can.
    """
    _checked(_libc.fallocate(descriptor, _FALLOC_COLLAPSE_RANGE, 0, length))


def punch_hole(descriptor: int, length: int) -> None:
    """Free the disk space of the first `length` bytes; they read as zeros and the size stays."""
    _checked(_libc.fallocate(descriptor, _FALLOC_PUNCH_HOLE | _FALLOC_KEEP_SIZE, 0, length))
