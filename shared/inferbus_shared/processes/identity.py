"""Which process is meant: a pid alone is reused, pid + start time + boot is not.

Invariant: nothing here ever signals or waits for another process than the one that was identified.
A zombie is dead: it does nothing more, whoever should have waited for it.
"""

import contextlib
import os
import select
import signal
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any, Self

from inferbus_shared.processes.files import read_json, write_json
from inferbus_shared.processes.linux import stat_fields

_STATE, _START_TIME = 2, 21
_DEAD_STATES = frozenset("ZXx")


@dataclass(frozen=True, slots=True)
class ProcessIdentity:
    """One process, for ever."""

    pid: int
    start_ticks: int
    """Field 22 of /proc/<pid>/stat: clock ticks since boot."""
    boot_id: str
    """/proc/sys/kernel/random/boot_id."""

    def to_dict(self) -> dict[str, Any]:
        """As a JSON object."""
        return asdict(self)

    @classmethod
    def from_dict(cls, value: Any) -> Self:
        """The inverse of `to_dict`; raises `ValueError` when it isn't one."""
        try:
            return cls(int(value["pid"]), int(value["start_ticks"]), str(value["boot_id"]))
        except (KeyError, TypeError) as error:
            raise ValueError(f"{value!r} is not the identity of a process") from error


@cache
def boot_id() -> str:
    """What tells this boot of the machine from every other."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def identify(pid: int) -> ProcessIdentity | None:
    """The identity of the process that has `pid` now; None when none has, or it is a zombie."""
    try:
        fields = stat_fields(pid)
    except (FileNotFoundError, ProcessLookupError):
        return None
    if fields[_STATE] in _DEAD_STATES:
        return None
    return ProcessIdentity(pid, int(fields[_START_TIME]), boot_id())


def identify_child(pid: int) -> ProcessIdentity:
    """The identity of a child that hasn't been waited for yet, dead or alive."""
    return ProcessIdentity(pid, int(stat_fields(pid)[_START_TIME]), boot_id())


def own_identity() -> ProcessIdentity:
    """The identity of the calling process."""
    return ProcessIdentity(os.getpid(), int(stat_fields("self")[_START_TIME]), boot_id())


def alive(identity: ProcessIdentity) -> bool:
    """Whether the process still runs."""
    return identify(identity.pid) == identity


def open_pidfd(identity: ProcessIdentity) -> int | None:
    """A pidfd of the process, whoever its parent is; None when it is dead. The caller closes it."""
    try:
        pidfd = os.pidfd_open(identity.pid)
    except ProcessLookupError:
        return None
    if alive(identity):
        return pidfd
    os.close(pidfd)
    return None


def send_signal(identity: ProcessIdentity, number: int) -> bool:
    """Signal the process; False when it is dead. Raises PermissionError."""
    pidfd = open_pidfd(identity)
    if pidfd is None:
        return False
    try:
        signal.pidfd_send_signal(pidfd, number)
    except ProcessLookupError:
        return False
    finally:
        os.close(pidfd)
    return True


def kill_group(identity: ProcessIdentity) -> bool:
    """SIGKILL the process and the group it leads; False when it is dead. Raises PermissionError.

    The group goes first: as long as its leader is there its number belongs to nobody else.
    """
    if not alive(identity):
        return False
    with contextlib.suppress(ProcessLookupError):
        os.killpg(identity.pid, signal.SIGKILL)
    send_signal(identity, signal.SIGKILL)
    return True


def wait_until_gone(
    identities: Iterable[ProcessIdentity], timeout_seconds: float
) -> list[ProcessIdentity]:
    """Block until all are dead; returns those that still run when the time is over."""
    deadline = time.monotonic() + timeout_seconds
    left = list(identities)
    while left:
        pidfd = open_pidfd(left[-1])
        if pidfd is None:
            left.pop()
            continue
        try:
            gone = _readable(pidfd, deadline - time.monotonic())
        finally:
            os.close(pidfd)
        if not gone:
            return [identity for identity in left if alive(identity)]
        left.pop()
    return []


def _readable(descriptor: int, seconds: float) -> bool:
    poller = select.poll()
    poller.register(descriptor, select.POLLIN)
    return bool(poller.poll(max(0.0, seconds) * 1000))


def write_identity(path: Path, identity: ProcessIdentity) -> None:
    """Store an identity atomically. Raises OSError."""
    write_json(path, identity.to_dict())


def read_identity(path: Path) -> ProcessIdentity | None:
    """The identity stored at `path`; None when there is none that can be read."""
    value = read_json(path)
    try:
        return None if value is None else ProcessIdentity.from_dict(value)
    except ValueError:
        return None
