"""Starting a fork server, or finding the one that runs.

Any number of processes may want it at once, and any of them may be killed meanwhile: the server's
lock decides, and everybody ends up with the same server.
"""

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from inferbus_contracts.errors import ErrorCode, Problem, ProblemsError
from inferbus_shared.processes.wire import socket_address

START_TIMEOUT_SECONDS = 60.0
LOCK_HELD_CODE = 3
"""Exit code of a starting server when another owns the socket, or is about to."""
_RETRY_SECONDS = 0.02


def connect_socket(socket_path: Path) -> socket.socket:
    """A connection to the fork server; raises `ProblemsError` (NOT_RUNNING) when there is none."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with socket_address(socket_path) as address:
            connection.connect(address)
    except OSError as error:
        connection.close()
        raise ProblemsError(
            Problem(
                code=ErrorCode.NOT_RUNNING,
                message=f"no fork server answers: {error.strerror}",
                file=str(socket_path),
                remedy="start the platform with `inferbus up`",
            )
        ) from error
    return connection


def start_fork_server(
    socket_path: Path,
    preload: Sequence[str],
    log_path: Path,
    environment: Mapping[str, str] | None = None,
) -> bool:
    """Make sure a fork server answers at `socket_path`; blocks until it does.

    `preload` are the modules it imports before it forks, `environment` (default: the caller's) is
    its own. False: one was running already, with whatever it was started with. Raises
    `ProblemsError` when a module can't be preloaded or the server doesn't come up.
    """
    config = {
        "socket_path": str(socket_path.absolute()),
        "log_path": str(log_path.absolute()),
        "preload": list(preload),
    }
    command = [sys.executable, "-P", "-m", "inferbus_shared.processes", json.dumps(config)]
    deadline = time.monotonic() + START_TIMEOUT_SECONDS
    while not _answers(socket_path):
        if time.monotonic() > deadline:
            raise _timed_out(socket_path)
        started = subprocess.run(
            command,
            env=dict(os.environ if environment is None else environment),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
        if started.returncode == 0:
            return True
        if started.returncode != LOCK_HELD_CODE:
            raise _failed(started, log_path)
        time.sleep(_RETRY_SECONDS)
    return False


def _answers(socket_path: Path) -> bool:
    try:
        connect_socket(socket_path).close()
    except ProblemsError:
        return False
    return True


def _failed(started: subprocess.CompletedProcess[bytes], log_path: Path) -> ProblemsError:
    try:
        return ProblemsError(Problem.from_json(started.stdout))
    except ValueError:
        last_words = started.stderr.decode(errors="replace").strip().splitlines()[-1:]
        return ProblemsError(
            Problem(
                code=ErrorCode.PROCESS_FAILED,
                message="the fork server could not start",
                value=" ".join(last_words) or f"exit code {started.returncode}",
                file=str(log_path),
                remedy="see its log",
            )
        )


def _timed_out(socket_path: Path) -> ProblemsError:
    return ProblemsError(
        Problem(
            code=ErrorCode.TIMED_OUT,
            message=f"the fork server didn't answer within {START_TIMEOUT_SECONDS:.0f} s",
            file=str(socket_path),
            remedy="end the process that holds the lock beside the socket: it hangs",
        )
    )
