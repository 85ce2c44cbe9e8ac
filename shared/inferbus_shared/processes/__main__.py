"""`python -m inferbus_shared.processes <json>`: become a fork server, in the background.

The caller waits for this process only: it ends when the fork server, its own child in a session of
its own, answers on its socket (exit code 0), or can't (a problem as JSON on standard output).
"""

import fcntl
import gc
import importlib
import json
import logging
import os
import signal
import socket
import sys
import traceback
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NoReturn

from inferbus_contracts.errors import ErrorCode, Problem, ProblemsError
from inferbus_shared.open_files import raise_limit_of_open_files
from inferbus_shared.processes.forkserver import ForkServer
from inferbus_shared.processes.linux import set_process_title
from inferbus_shared.processes.start import LOCK_HELD_CODE
from inferbus_shared.processes.wire import socket_address

FAILED_CODE = 1
TITLE = "inferbus: fork server"
_LOG_FORMAT = "%(asctime)s %(levelname)s fork-server %(message)s"


def main(argv: list[str]) -> int:
    """Start the server that the JSON object in `argv` describes; see `start.py` for its fields."""
    config = json.loads(argv[0])
    socket_path = Path(config["socket_path"])
    lock = _lock(socket_path)
    if lock is None:
        return LOCK_HELD_CODE
    outcome, outcome_of_server = os.pipe()
    if os.fork() == 0:
        os.close(outcome)
        _become_server(config, socket_path, outcome_of_server)
    os.close(outcome_of_server)
    with os.fdopen(outcome, "rb") as report:
        text = report.read().decode()
    if text == "ready":
        return 0
    sys.stdout.write(text)
    return FAILED_CODE


def _lock(socket_path: Path) -> int | None:
    """The lock that a fork server holds as long as it lives; None when another holds it."""
    lock = os.open(socket_path.with_name(f"{socket_path.name}.lock"), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        return None
    return lock


def _become_server(config: dict[str, Any], socket_path: Path, outcome: int) -> NoReturn:
    try:
        _detach(Path(config["log_path"]))
        raise_limit_of_open_files()
        preload(config["preload"])
        set_process_title(TITLE)
        server = ForkServer(_bind(socket_path))
    except ProblemsError as error:
        os.write(outcome, error.problems[0].to_json())
        os._exit(FAILED_CODE)
    except BaseException as error:
        traceback.print_exc()
        os.write(outcome, _failed(f"{type(error).__name__}: {error}", None).to_json())
        os._exit(FAILED_CODE)
    try:
        os.write(outcome, b"ready")
    except BrokenPipeError:  # whoever wanted it was ended meanwhile, and would never end it
        socket_path.unlink(missing_ok=True)
        os._exit(FAILED_CODE)
    os.close(outcome)
    try:
        server.run()
    except BaseException:
        traceback.print_exc()
        os._exit(FAILED_CODE)
    socket_path.unlink(missing_ok=True)
    os._exit(0)


def _detach(log_path: Path) -> None:
    os.setsid()
    os.chdir("/")
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    nothing = os.open(os.devnull, os.O_RDONLY)
    log_file = os.open(log_path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o640)
    for number, descriptor in ((0, nothing), (1, log_file), (2, log_file)):
        os.dup2(descriptor, number)
    os.close(nothing)
    os.close(log_file)
    log = logging.getLogger("inferbus.forkserver")
    log.propagate = False
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter(_LOG_FORMAT))
    log.addHandler(handler)


def preload(modules: Iterable[str]) -> None:
    """Import what children will need and keep the collector away from it.

    Raises `ProblemsError` for a module that can't be imported or that starts a thread: a fork
    copies one thread only, and locks that others hold stay locked for ever.
    """
    for module in modules:
        try:
            importlib.import_module(module)
        except Exception as error:
            raise ProblemsError(_failed(f"{type(error).__name__}: {error}", module)) from error
        if len(list(Path("/proc/self/task").iterdir())) > 1:
            raise ProblemsError(_failed("importing it starts threads", module))
    gc.collect()
    gc.freeze()


def _failed(message: str, module: str | None) -> Problem:
    return Problem(
        code=ErrorCode.PROCESS_FAILED,
        message=f"the fork server could not start: {message}",
        field="preload" if module else None,
        value=module,
        remedy="see its log; leave a module out of `preload` that can't be forked",
    )


def _bind(socket_path: Path) -> socket.socket:
    socket_path.unlink(missing_ok=True)
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o077)
    try:
        with socket_address(socket_path) as address:
            listening.bind(address)
    finally:
        os.umask(before)
    listening.listen()
    return listening


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
