"""What a process of the platform left behind when it ended: its exit code and its own words."""

import time

from inferbus_cli.platform.directory import PlatformDirectory
from inferbus_contracts.errors import ErrorCode, Problem
from inferbus_shared.processes.records import read_exit_record

_POLL_SECONDS = 0.02


def exit_code(directory: PlatformDirectory, name: str, seconds: float) -> int | None:
    """The exit code of a process that ends within `seconds`; None when it doesn't.

    A signal counts as its negative number.
    """
    path = directory.run / f"{name}.exit.json"
    deadline = time.monotonic() + seconds
    while (record := read_exit_record(path)) is None:
        if time.monotonic() >= deadline:
            return None
        time.sleep(_POLL_SECONDS)
    return record.code if record.code is not None else -(record.signal or 1)


def said(directory: PlatformDirectory, name: str, what: str) -> Problem:
    """The problem of a process, in its own words where it left any."""
    log = directory.logs / f"{name}.log"
    lines = log.read_text(errors="replace").splitlines() if log.exists() else []
    words = [line.removeprefix("error: ") for line in lines if line.startswith("error: ")]
    return Problem(
        code=ErrorCode.PROCESS_FAILED,
        message=f"{name} {what}{': ' + words[-1] if words else ''}",
        file=str(log),
        remedy="see its log, mend the cause and start again",
    )
