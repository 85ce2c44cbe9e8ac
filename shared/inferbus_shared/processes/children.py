"""The children of a fork server: forking them, and learning how they end.

Invariant: of two requests for the same lock or the same identity file at most one starts a process,
whoever asks and whatever was killed in between.
"""

import contextlib
import fcntl
import os
import signal
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from inferbus_contracts.errors import ErrorCode, Problem, ProblemsError
from inferbus_shared.processes.child import SETUP_FAILED_CODE, ChildDescriptors, run_child
from inferbus_shared.processes.identity import (
    ProcessIdentity,
    identify_child,
    read_identity,
)
from inferbus_shared.processes.records import ChildInfo, SpawnSpec


@dataclass(frozen=True, slots=True)
class Forked:
    """A process that has begun to set itself up."""

    info: ChildInfo
    report: int
    """Reads empty once the set-up is done, else the problem; the caller closes it."""


def fork_child(spec: SpawnSpec, targets: Mapping[int, int]) -> Forked:
    """Fork a process for `spec`; `targets`: number in the child → descriptor that is handed over.

    Raises `ProblemsError`: ALREADY_RUNNING when the lock is held, ALREADY_EXISTS when the identity
    file names a process that was started before, PROCESS_FAILED when the system refuses.
    """
    lock = _lock(spec) if spec.lock_path else None
    try:
        if read_identity(Path(spec.identity_path)) is not None:
            raise _refused(
                spec,
                ErrorCode.ALREADY_EXISTS,
                "this process was started before",
                spec.identity_path,
            )
        report, report_in_child = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            descriptors = ChildDescriptors(report_in_child, lock, targets)
            identity = _fork(lambda: run_child(spec, descriptors))
        except BaseException:
            os.close(report)
            raise
        finally:
            os.close(report_in_child)
    except OSError as error:
        raise _refused(spec, ErrorCode.PROCESS_FAILED, f"could not fork: {error}", None) from error
    finally:
        if lock is not None:
            os.close(lock)
    return Forked(ChildInfo(spec.name, identity, spec.exit_path), report)


def _fork(run: Callable[[], NoReturn]) -> ProcessIdentity:
    """Fork with all signals blocked: none may meet this process's handlers in the child."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    try:
        pid = os.fork()
        if pid == 0:
            try:
                run()
            finally:  # whatever happens, there must never be a second fork server
                os._exit(SETUP_FAILED_CODE)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return identify_child(pid)


def _lock(spec: SpawnSpec) -> int:
    try:
        lock = os.open(spec.lock_path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise _refused(spec, ErrorCode.PROCESS_FAILED, str(error), spec.lock_path) from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(lock)
        message = "a process that holds its lock is still running"
        raise _refused(spec, ErrorCode.ALREADY_RUNNING, message, spec.lock_path) from error
    return lock


def _refused(spec: SpawnSpec, code: ErrorCode, message: str, value: str | None) -> ProblemsError:
    remedy = "adopt the running process, or end it first"
    if code is ErrorCode.PROCESS_FAILED:
        remedy = "check the limits on processes and open files, and the folder's permissions"
    return ProblemsError(
        Problem(code=code, message=message, object=spec.name, value=value, remedy=remedy)
    )


@dataclass(frozen=True, slots=True)
class Reaped:
    """A child that ended."""

    pid: int
    code: int | None
    signal: int | None


def reap() -> list[Reaped]:
    """Every child that has ended since the last call; what was left of its group is killed.

    The group is killed while its leader is still a zombie, so that its number can't be another's.
    """
    ended: list[Reaped] = []
    while (waiting := _next_ended()) is not None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(waiting, signal.SIGKILL)
        result = os.waitid(os.P_PID, waiting, os.WEXITED)
        assert result is not None
        by_itself = result.si_code == os.CLD_EXITED
        code, number = (result.si_status, None) if by_itself else (None, result.si_status)
        ended.append(Reaped(waiting, code, number))
    return ended


def _next_ended() -> int | None:
    try:
        result = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return None
    return result.si_pid if result else None
