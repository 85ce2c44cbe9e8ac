"""The program in processes that start within milliseconds, so that many can be killed."""

import contextlib
import itertools
import os
import signal
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from inferbus_shared.processes.client import ForkServerClient
from inferbus_shared.processes.commands import spawn, stop
from inferbus_shared.processes.records import ExitRecord, SpawnSpec, read_exit_record
from inferbus_shared.processes.start import start_fork_server

_MAIN = "inferbus_model_downloader.main"
_PRELOAD = (_MAIN, "inferbus_model_downloader.adapters_hub", "huggingface_hub.hf_api")


class Forks:
    """A fork server, and the processes of one test in it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.environment: Mapping[str, str] = {}
        """Of the processes."""
        self._numbers = itertools.count()
        start_fork_server(folder / "s", _PRELOAD, folder / "server.log")
        self._client = ForkServerClient(folder / "s")

    def start(self, words: Sequence[str]) -> "Fork":
        number = next(self._numbers)
        exit_path = self._folder / f"{number}.exit"
        child = self._client.call(
            spawn(
                SpawnSpec(
                    name=f"fetch-{number}",
                    entry_point=f"{_MAIN}:main",
                    argv=tuple(words),
                    environment=self.environment,
                    directory=str(self._folder),
                    log_path=str(self._folder / "log"),
                    identity_path=str(self._folder / f"{number}.identity"),
                    exit_path=str(exit_path),
                )
            )
        )
        return Fork(child.identity.pid, exit_path)

    @property
    def log(self) -> str:
        return (self._folder / "log").read_text()

    def close(self) -> None:
        self._client.call(stop())
        self._client.close()


class Fork:
    """One process."""

    def __init__(self, pid: int, exit_path: Path) -> None:
        self._pid = pid
        self._exit_path = exit_path

    def ended(self) -> ExitRecord | None:
        return read_exit_record(self._exit_path)

    def wait(self, seconds: float) -> bool:
        """Whether the process ended by itself within that time."""
        deadline = time.monotonic() + seconds
        while self.ended() is None and time.monotonic() < deadline:
            time.sleep(0.002)
        return self.ended() is not None

    def kill(self) -> None:
        if self.ended() is None:
            with contextlib.suppress(ProcessLookupError):  # it ended just now
                os.kill(self._pid, signal.SIGKILL)
        assert self.wait(20)
