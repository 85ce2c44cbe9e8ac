"""Running commands as a user would, in this process."""

import asyncio
import sys
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
import pytest_asyncio

from inferbus_cli.main import main
from tests.support.nats import NatsServer


@dataclass(frozen=True)
class Outcome:
    """How a command ended."""

    code: int
    out: str
    err: str


Run = Callable[..., Outcome]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """`run("get", "pods")`; without a platform unless the test has one."""
    monkeypatch.setenv("INFERBUS_DIR", str(tmp_path / "platform"))

    def command(*words: object) -> Outcome:
        capsys.readouterr()
        code = main([str(word) for word in words])
        return Outcome(code, *capsys.readouterr())

    return command


class Platform:
    """A bus with the services that a test starts on it, and commands that use it."""

    def __init__(self, server: NatsServer, run: Run, directory: Path) -> None:
        self.server = server
        self.directory = directory
        self._run = run

    async def run(self, *words: object) -> Outcome:
        """A command has an event loop of its own, so it runs in a thread of its own.

        One at a time: they share their output.
        """
        return await asyncio.to_thread(self._run, *words)

    async def program(self, *words: object) -> asyncio.subprocess.Process:
        """A command beside others, as a program; its output is a pipe."""
        return await asyncio.create_subprocess_exec(
            Path(sys.executable).with_name("inferbus"),
            *map(str, words),
            stdout=asyncio.subprocess.PIPE,
        )


@pytest_asyncio.fixture
async def platform(
    nats_server: NatsServer, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Platform]:
    """A bus that commands find by their environment."""
    monkeypatch.setenv("INFERBUS_NATS_URL", nats_server.url)
    monkeypatch.setenv("INFERBUS_NATS_CREDENTIALS", str(nats_server.credentials))
    yield Platform(nats_server, run, tmp_path / "platform")
