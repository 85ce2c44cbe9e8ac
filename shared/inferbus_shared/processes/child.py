"""What happens in a forked process between fork(2) and its entry point.

The process must look as if it had been started by itself: session, signals, umask, environment,
descriptors, random numbers and title are its own, and nothing of the fork server's is left. Until
`run_child` has closed the report descriptor every failure is told to the fork server through it.
"""

import atexit
import contextlib
import fcntl
import importlib
import json
import os
import signal
import sys
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from inferbus_contracts.errors import ErrorCode, Problem
from inferbus_shared.processes.identity import own_identity, write_identity
from inferbus_shared.processes.linux import set_process_title
from inferbus_shared.processes.records import SpawnSpec

SETUP_FAILED_CODE = 71
"""Exit code of a process that never reached its entry point (EX_OSERR of sysexits.h)."""
_UMASK = 0o022
_LOG_MODE = 0o640
_HIGHEST_EXIT_CODE = 255


@dataclass(frozen=True, slots=True)
class ChildDescriptors:
    """The descriptors of the fork server that go over to a child."""

    report: int
    """Closed once the entry point is about to run; a problem is written to it before."""
    lock: int | None
    targets: Mapping[int, int]
    """Number in the child → descriptor in the fork server."""


def run_child(spec: SpawnSpec, descriptors: ChildDescriptors) -> NoReturn:
    """Become the process that `spec` describes. Called right after fork(2), in the child.

    When the entry point returns the process ends, with exit handlers run and output flushed;
    threads it left behind end with it.
    """
    report = descriptors.report
    try:
        os.setsid()
        report = _arrange_descriptors(spec, descriptors)
        _reset_signals(python=bool(spec.entry_point))
        os.umask(_UMASK)
        os.chdir(spec.directory)
        write_identity(Path(spec.identity_path), own_identity())
        if not spec.entry_point:
            os.execvpe(spec.argv[0], spec.argv, dict(spec.environment))
        os.environ.clear()
        os.environ.update(spec.environment)
        entry_point = resolve_entry_point(spec.entry_point)
        _freshen_interpreter(spec)
    except BaseException as error:
        _tell(report, spec, error)
        os._exit(SETUP_FAILED_CODE)
    os.close(report)
    os._exit(_call(entry_point, list(spec.argv)))


def resolve_entry_point(text: str) -> Callable[[list[str]], Any]:
    """The function that `module:function` names; raises ImportError, AttributeError, TypeError."""
    module, _, function = text.partition(":")
    found = getattr(importlib.import_module(module), function)
    if not callable(found):
        raise TypeError(f"{text} is not a function")
    return found  # type: ignore[no-any-return]


def _arrange_descriptors(spec: SpawnSpec, given: ChildDescriptors) -> int:
    """Put each descriptor at its number and close all others; returns where the report now is."""
    log = os.open(spec.log_path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, _LOG_MODE)
    nothing = os.open(os.devnull, os.O_RDONLY)
    targets = {0: nothing, 1: log, 2: log, **given.targets}
    above = max(targets) + 1

    def lift(descriptor: int) -> int:
        return fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, above)

    report = lift(given.report)
    kept = {report}
    if given.lock is not None:
        lock = lift(given.lock)
        # A program that is executed keeps the lock; a forked entry point does too, but the
        # programs it may start itself must not prolong it.
        os.set_inheritable(lock, not spec.entry_point)
        kept.add(lock)
    lifted = {number: lift(descriptor) for number, descriptor in targets.items()}
    for number, descriptor in lifted.items():
        os.dup2(descriptor, number)
    _close_all_but(kept | set(targets))
    return report


def _close_all_but(kept: set[int]) -> None:
    for number in [int(entry.name) for entry in Path("/proc/self/fd").iterdir()]:
        if number not in kept:
            with contextlib.suppress(OSError):  # the listing's own descriptor is gone already
                os.close(number)


def _reset_signals(*, python: bool) -> None:
    signal.set_wakeup_fd(-1)
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        signal.signal(number, signal.SIG_DFL)
    if python:
        signal.signal(signal.SIGPIPE, signal.SIG_IGN)
        signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.pthread_sigmask(signal.SIG_SETMASK, set())


def _freshen_interpreter(spec: SpawnSpec) -> None:
    """What a fork leaves as it was; the generator of `random` is seeded anew by Python itself."""
    sys.argv = [spec.title or spec.name, *spec.argv]
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    set_process_title(spec.title or spec.name)


def _tell(report: int, spec: SpawnSpec, error: BaseException) -> None:
    what = spec.entry_point or " ".join(spec.argv[:1])
    problem = Problem(
        code=ErrorCode.PROCESS_FAILED,
        message=f"{what} could not be started: {type(error).__name__}: {error}",
        object=spec.name,
        remedy="check that the program, its working directory and its log folder exist",
    )
    os.write(report, json.dumps(problem.to_dict()).encode())


def _call(entry_point: Callable[[list[str]], Any], argv: list[str]) -> int:
    """Run the entry point the way the interpreter runs a program; returns its exit code."""
    try:
        code = _exit_code(entry_point(argv))
    except SystemExit as leaving:
        code = _exit_code(leaving.code)
    except BaseException:
        traceback.print_exc()
        code = 1
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    return code


def _exit_code(result: object) -> int:
    if result is None:
        return 0
    if isinstance(result, int):
        return result & _HIGHEST_EXIT_CODE
    print(result, file=sys.stderr)  # noqa: T201 - what sys.exit() does with a text
    return 1
