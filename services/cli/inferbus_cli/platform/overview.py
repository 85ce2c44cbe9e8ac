"""The processes of a platform as they are now, for people."""

import time
from dataclasses import dataclass
from pathlib import Path

from inferbus_cli.platform.directory import PlatformDirectory
from inferbus_cli.platform.report import ProcessReport, SupervisorReport

SUPERVISOR = "supervisor"


@dataclass(frozen=True, kw_only=True)
class ProcessRow:
    """One process."""

    name: str
    pid: int | None
    state: str
    """`running`, `down`, or for the supervisor its phase."""
    restarts: int
    uptime_seconds: float | None
    memory_bytes: int | None
    """Proportional set size: shared pages are counted by share."""
    health_url: str = ""


def processes(directory: PlatformDirectory) -> list[ProcessRow]:
    """The supervisor first, then its processes; empty where nothing was ever started."""
    report = SupervisorReport.read(directory.supervisor_file)
    if report is None:
        return []
    own = ProcessRow(
        name=SUPERVISOR,
        pid=report.supervisor.pid if report.running else None,
        state=report.phase if report.running else "down",
        restarts=0,
        uptime_seconds=None,
        memory_bytes=_memory(report.supervisor.pid) if report.running else None,
    )
    return [own, *(_row(process) for process in report.processes)]


def _row(process: ProcessReport) -> ProcessRow:
    running = process.running and process.identity is not None
    pid = process.identity.pid if process.identity and running else None
    return ProcessRow(
        name=process.name,
        pid=pid,
        state="running" if running else "down",
        restarts=process.restarts,
        uptime_seconds=time.time() - process.started_ms / 1000 if running else None,
        memory_bytes=_memory(pid) if pid else None,
        health_url=process.health_url,
    )


def _memory(pid: int) -> int | None:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return None
    for line in lines:
        if line.startswith("Pss:"):
            return int(line.split()[1]) * 1024
    return None
