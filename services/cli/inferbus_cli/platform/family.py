"""The platform's processes as children of one fork server: start, adopt, end.

Invariant: a process is known by its identity file, so whoever comes after a crash (of the
supervisor, of the fork server) finds what runs and starts only what doesn't.
"""

import contextlib
import signal
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from inferbus_cli.platform.directory import PlatformDirectory
from inferbus_contracts.errors import ProblemsError
from inferbus_shared.processes.client import ForkServerClient
from inferbus_shared.processes.commands import adopt, spawn
from inferbus_shared.processes.identity import (
    ProcessIdentity,
    alive,
    kill_group,
    read_identity,
    send_signal,
    wait_until_gone,
)
from inferbus_shared.processes.records import ChildInfo, SpawnSpec

TERMINATE_SECONDS = 12.0


class Family:
    """Processes by name."""

    def __init__(self, directory: PlatformDirectory, client: ForkServerClient) -> None:
        self._directory = directory
        self._client = client

    def running(self, name: str) -> ProcessIdentity | None:
        """The living process of that name; None where there is none."""
        return running(self._directory, name)

    def find_or_start(
        self,
        name: str,
        *,
        entry_point: str = "",
        argv: Sequence[str] = (),
        environment: Mapping[str, str],
        listeners: Mapping[int, str] | None = None,
    ) -> ProcessIdentity:
        """Adopt the process of that name if it lives, else start it. Raises `ProblemsError`."""
        found = self.running(name)
        if found is not None:
            self._adopt(name, found)
            return found
        self._identity_path(name).unlink(missing_ok=True)
        self._exit_path(name).unlink(missing_ok=True)
        spec = SpawnSpec(
            name=name,
            entry_point=entry_point,
            argv=tuple(argv),
            environment=dict(environment),
            directory=str(self._directory.root),
            log_path=str(self._directory.logs / f"{name}.log"),
            identity_path=str(self._identity_path(name)),
            exit_path=str(self._exit_path(name)),
            lock_path=str(self._directory.run / f"{name}.lock"),
            title=f"inferbus-{name}",
            listeners=listeners or {},
        )
        return self._client.call(spawn(spec)).identity

    def _adopt(self, name: str, identity: ProcessIdentity) -> None:
        """Have the fork server watch a process that an earlier one started."""
        info = ChildInfo(name, identity, str(self._exit_path(name)), adopted=True)
        with contextlib.suppress(ProblemsError):  # it is watched already
            self._client.call(adopt(info))

    def _identity_path(self, name: str) -> Path:
        return _identity_path(self._directory, name)

    def _exit_path(self, name: str) -> Path:
        return self._directory.run / f"{name}.exit.json"


def running(directory: PlatformDirectory, name: str) -> ProcessIdentity | None:
    """The living process of that name in a platform's folder; None where there is none."""
    identity = read_identity(_identity_path(directory, name))
    return identity if identity and alive(identity) else None


def _identity_path(directory: PlatformDirectory, name: str) -> Path:
    return directory.run / f"{name}.json"


def end_all(identities: Iterable[ProcessIdentity], seconds: float) -> None:
    """SIGTERM to all at once, SIGKILL to what is left after `seconds`."""
    known = list(identities)
    for identity in known:
        send_signal(identity, signal.SIGTERM)
    for left in wait_until_gone(known, seconds):
        kill_group(left)
