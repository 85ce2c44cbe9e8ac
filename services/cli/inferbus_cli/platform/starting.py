"""Bringing a platform up: choose what is open, start a supervisor or find the one that runs.

Invariant: starting a platform that runs changes nothing, and one whose supervisor died is adopted.
"""

import contextlib
import errno
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar

from inferbus_cli.platform.directory import PlatformDirectory, PlatformState
from inferbus_cli.platform.embedded_nats import free_port
from inferbus_cli.platform.family import running
from inferbus_cli.platform.plan import KUBE_PREFIX, NATS
from inferbus_cli.platform.report import FAILED, READY, SupervisorReport
from inferbus_cli.platform.wishes import Wishes
from inferbus_contracts.errors import ErrorCode, Problem, ProblemsError
from inferbus_contracts.services import Service
from inferbus_shared.disk import refused

ChoiceT = TypeVar("ChoiceT")

DEFAULT_ROUTER_PORT = 8080
START_SECONDS = 120.0
_POLL_SECONDS = 0.03
_UNUSABLE = "the platform's folder can't be used"


def is_supervised(directory: PlatformDirectory) -> bool:
    """Whether a supervisor of this folder lives."""
    report = SupervisorReport.read(directory.supervisor_file)
    return report is not None and report.running


def prepare(directory: PlatformDirectory, wishes: Wishes) -> PlatformState:
    """Choose ports and remember all choices; raises `ProblemsError` where one can't be had."""
    _make_folder(directory)
    before = PlatformState.read(directory.state_file)
    adopting = running(directory, NATS) is not None
    router_port = wishes.router_port or (before.router_port if before else DEFAULT_ROUTER_PORT)
    if not adopting:
        require_free(router_port)
    state = PlatformState(
        nats_port=before.nats_port if before and adopting else free_port(),
        router_port=router_port,
        clock_rate=_chosen(wishes.clock_rate, before.clock_rate if before else None, 1.0),
        engines=_chosen(wishes.engines, before.engines if before else None, "simulated"),
        instances={**(before.instances if before else {}), **wishes.instances},
        environment={**(before.environment if before else {}), **wishes.environment},
    )
    try:
        directory.write_state(state)
    except OSError as error:
        raise refused(error, _UNUSABLE, directory.root, field="--dir") from None
    return state


def require_free(port: int) -> None:
    """Raise `ProblemsError` (PORT_IN_USE) when anything listens on a port of loopback."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            if error.errno not in (errno.EADDRINUSE, errno.EACCES):
                raise
            raise ProblemsError(
                Problem(
                    code=ErrorCode.PORT_IN_USE,
                    message=f"the router can't have its port: {error.strerror}",
                    field="--router-port",
                    value=port,
                    remedy="end what listens there, or choose another with --router-port",
                )
            ) from None


@contextlib.contextmanager
def forgetting_failure(
    directory: PlatformDirectory, before: PlatformState | None
) -> Iterator[None]:
    """What was chosen for a start that failed is chosen anew the next time, unless it runs."""
    try:
        yield
    except ProblemsError:
        if running(directory, NATS) is None:
            with contextlib.suppress(OSError):
                _remember(directory, before)
        raise


def _remember(directory: PlatformDirectory, state: PlatformState | None) -> None:
    if state is None:
        directory.state_file.unlink(missing_ok=True)
    else:
        directory.write_state(state)


def start_detached(directory: PlatformDirectory, tell: Callable[[str], None]) -> None:
    """Start a supervisor in the background and wait until it says that all is ready.

    Raises `ProblemsError` with what it says when it isn't. Interrupted, it ends what it began, but
    never what ran before.
    """
    adopting = running(directory, NATS) is not None
    process = _start_supervisor(directory)
    try:
        _wait_until_ready(directory, process, tell)
    except KeyboardInterrupt:
        if not adopting:
            process.terminate()
            process.wait()
        raise


def _start_supervisor(directory: PlatformDirectory) -> subprocess.Popen[bytes]:
    directory.supervisor_file.unlink(missing_ok=True)
    with (directory.logs / "supervisor.log").open("ab") as log:
        return subprocess.Popen(
            [sys.executable, "-P", "-m", "inferbus_cli.platform.supervisor", str(directory.root)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            cwd="/",
        )


def _wait_until_ready(
    directory: PlatformDirectory, process: subprocess.Popen[bytes], tell: Callable[[str], None]
) -> None:
    deadline = time.monotonic() + START_SECONDS
    step = ""
    while time.monotonic() < deadline:
        report = SupervisorReport.read(directory.supervisor_file)
        if report is not None and report.step != step:
            step = report.step
            tell(step)
        if report is not None and report.phase == READY:
            return
        if process.poll() is not None:
            failed = report is not None and report.phase == FAILED
            raise ProblemsError(*(report.problems if report and failed else (_ended(directory),)))
        time.sleep(_POLL_SECONDS)
    message = f"not up within {START_SECONDS:.0f} s"
    raise ProblemsError(_ended(directory).model_copy(update={"message": message}))


def inferbus_settings(environment: Mapping[str, str]) -> dict[str, str]:
    """The settings of services in the environment of who types `up`."""
    own = (*(service.setting_prefix for service in Service), "INFERBUS_ENGINE_", KUBE_PREFIX)
    return {name: value for name, value in environment.items() if name.startswith(own)}


def _make_folder(directory: PlatformDirectory) -> None:
    try:
        for folder in (directory.root, directory.run, directory.logs, directory.manifests):
            folder.mkdir(parents=True, exist_ok=True)
        directory.root.chmod(0o700)
    except OSError as error:
        raise refused(error, _UNUSABLE, directory.root, field="--dir") from None


def _chosen(wish: ChoiceT | None, before: ChoiceT | None, default: ChoiceT) -> ChoiceT:
    return wish if wish is not None else before if before is not None else default


def _ended(directory: PlatformDirectory) -> Problem:
    log = directory.logs / "supervisor.log"
    lines = log.read_text(errors="replace").splitlines() if log.exists() else []
    return Problem(
        code=ErrorCode.PROCESS_FAILED,
        message=f"the supervisor ended: {lines[-1] if lines else 'without a word'}",
        file=str(log),
        remedy="see its log",
    )
