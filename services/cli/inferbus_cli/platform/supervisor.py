"""Starts the platform's processes and keeps them running.

The supervisor is not needed for the platform to work: killed, it leaves everything running, and the
next one adopts it. Invariants: what it knows stands in the platform's folder, and starting what
runs already changes nothing; what ran before it came, or once was ready, ends on request only: a
failure is told and tried again.
"""

import contextlib
import signal
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import FrameType

from inferbus_cli.platform.directory import PlatformDirectory
from inferbus_cli.platform.event_log import EventLogWatch
from inferbus_cli.platform.health import unready
from inferbus_cli.platform.last_words import exit_code, said
from inferbus_cli.platform.launcher import Launcher
from inferbus_cli.platform.plan import NATS
from inferbus_cli.platform.report import FAILED, READY, STARTING, STOPPING, SupervisorReport
from inferbus_cli.platform.roster import Roster
from inferbus_cli.platform.stopping import stop_everything
from inferbus_contracts.errors import ErrorCode, Problem, ProblemsError
from inferbus_shared.clock import real_now_ms
from inferbus_shared.disk import refused
from inferbus_shared.processes.identity import ProcessIdentity, own_identity, send_signal
from inferbus_shared.processes.logs import LogLimit, trim_log
from inferbus_shared.program import EXIT_BAD_INPUT, run_program

READY_SECONDS = 60.0
WAKE_SECONDS = 1.0
TRIM_SECONDS = 30.0
LOG_LIMIT = LogLimit(16 * 1024 * 1024, 2)
_POLL_SECONDS = 0.02


class StopRequested(BaseException):
    """SIGTERM or SIGINT arrived."""


class Supervisor:
    """One platform's supervisor."""

    def __init__(
        self, directory: PlatformDirectory, tell: Callable[[str], None] = lambda _: None
    ) -> None:
        """`tell` is called with each step, in a few words."""
        self._directory = directory
        self._tell = tell
        self._launcher = Launcher(directory)
        self._roster = Roster()
        self._event_log = EventLogWatch(directory)
        self._phase = STARTING
        self._adopting = False
        self._trimmed = 0.0

    def run(self) -> None:
        """Start everything, then watch it until told to stop; raises what prevents a start."""
        _raise_on_signals()
        try:
            try:
                self._start()
            except ProblemsError as error:
                self._fail(error)
                raise
            self._watch()
        except StopRequested:
            self._stop()

    def _start(self) -> None:
        for folder in (self._directory.run, self._directory.logs, self._directory.manifests):
            folder.mkdir(parents=True, exist_ok=True)
        self._step("starting the fork server")
        self._launcher.connect()
        self._adopting = self._launcher.running(NATS) is not None
        self._step("starting the event log")
        self._start_process(NATS)
        self._step("preparing streams")
        self._launcher.provision()
        self._step("starting services")
        for name in self._launcher.plans:
            self._start_process(name)
        self._step("waiting until services are ready")
        self._wait_until_ready()
        self._phase = READY
        self._step("watching")

    def _start_process(self, name: str) -> None:
        identity = self._launcher.start(name)
        self._roster.began(name, identity, now=time.monotonic(), now_ms=real_now_ms())
        self._write()

    def _wait_until_ready(self) -> None:
        """Raises when a process can't start, or takes too long, unless it was adopted."""
        deadline = time.monotonic() + READY_SECONDS
        waiting = {plan.name: plan.health_url for plan in self._launcher.plans.values()}
        while waiting:
            reasons = unready(waiting.items())
            waiting = {name: url for name, url in waiting.items() if name in reasons}
            try:
                self._require_able(waiting)
                if time.monotonic() > deadline:
                    late = (said(self._directory, name, reasons[name]) for name in waiting)
                    raise ProblemsError(*late)
            except ProblemsError as error:
                if not self._adopting:
                    raise
                _log(error)
                return
            self._look_after(_POLL_SECONDS if waiting else 0)

    def _require_able(self, names: Iterable[str]) -> None:
        for name in names:
            if exit_code(self._directory, name, 0) == EXIT_BAD_INPUT:
                raise ProblemsError(said(self._directory, name, "can't start"))

    def _watch(self) -> None:
        while True:
            self._look_after(WAKE_SECONDS)
            self._end_stuck_event_log()
            self._trim_logs()

    def _end_stuck_event_log(self) -> None:
        """Its end is noticed, and it is started again, as any other's."""
        identity = self._launcher.running(NATS)
        if identity is None:
            return
        problem = self._event_log.stuck(identity.pid, time.monotonic())
        if problem is not None:
            _log(ProblemsError(problem))
            send_signal(identity, signal.SIGKILL)

    def _look_after(self, seconds: float) -> None:
        """Wait for an end, at most `seconds`; start again what is due."""
        try:
            event = self._launcher.next_event(seconds)
            if event is not None and event.exit is not None:
                self._ended(event.child.name, event.child.identity)
            self._restart_due()
        except ProblemsError as error:
            if not _is_lost(error):
                raise
            self._recover()

    def _restart_due(self) -> None:
        """What can't be started now is due again later; raises when the fork server is gone."""
        for name in self._roster.due(time.monotonic()):
            try:
                self._start_process(name)
            except ProblemsError as error:
                if _is_lost(error):
                    raise
                _log(error)
                self._roster.failed(name, now=time.monotonic())

    def _recover(self) -> None:
        """The fork server died: a new one takes over what still runs.

        The dying one may still have answered when it was looked for, so it is tried until it works.
        """
        while True:
            try:
                self._take_over()
            except ProblemsError as error:
                _log(error)
                time.sleep(WAKE_SECONDS)
            else:
                return

    def _take_over(self) -> None:
        self._launcher.connect()
        for name in self._roster:
            if self._launcher.running(name) is None:
                self._ended(name, None)
            else:
                self._start_process(name)

    def _ended(self, name: str, identity: ProcessIdentity | None) -> None:
        self._roster.ended(name, identity, now=time.monotonic())
        self._write()

    def _stop(self) -> None:
        self._phase = STOPPING
        self._step("stopping")
        stop_everything(self._directory)
        self._directory.supervisor_file.unlink(missing_ok=True)

    def _fail(self, error: ProblemsError) -> None:
        self._phase = FAILED
        self._step("failed")
        if not self._adopting:
            stop_everything(self._directory)
        self._write(error.problems)

    def _step(self, step: str) -> None:
        self._current = step
        self._tell(step)
        self._write()

    def _write(self, problems: Sequence[Problem] = ()) -> None:
        """Tell others; that nobody can be told stops nothing."""
        report = SupervisorReport(
            supervisor=own_identity(),
            phase=self._phase,
            step=self._current,
            problems=tuple(problems),
            processes=self._roster.reports(self._launcher.plans),
        )
        try:
            report.write(self._directory.supervisor_file)
        except OSError as error:
            file = self._directory.supervisor_file
            _log(refused(error, "the supervisor's report can't be written", file))

    def _trim_logs(self) -> None:
        now = time.monotonic()
        if now - self._trimmed < TRIM_SECONDS:
            return
        self._trimmed = now
        for log in self._directory.logs.glob("*.log"):
            try:
                trim_log(log, LOG_LIMIT)
            except ProblemsError as error:
                _log(error)


def _is_lost(error: ProblemsError) -> bool:
    """Whether the fork server is gone."""
    return error.problems[0].code is ErrorCode.NOT_RUNNING


def _log(error: ProblemsError) -> None:
    """To the supervisor's log, unless that very disk is full."""
    with contextlib.suppress(OSError):
        for problem in error.problems:
            sys.stderr.write(f"error: {problem}\n")
        sys.stderr.flush()


def _raise_on_signals() -> None:
    def stop(_number: int, _frame: FrameType | None) -> None:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)
        raise StopRequested

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)


def main(argv: Sequence[str]) -> int:
    """`[platform folder]`: supervise it until SIGTERM."""
    return run_program(Supervisor(PlatformDirectory(Path(argv[0]))).run)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
