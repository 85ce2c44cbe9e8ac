"""A platform of containers for a test: own images, own project, own port, no trace left.

It is used as a user would: through Compose, its `cli` service, and the published port.
"""

import contextlib
import json
import secrets
import shutil
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from inferbus_cli.platform.embedded_nats import free_port
from tests.support.compose import ALL_PROFILES, ROOT, compose

BUILD_SECONDS = 1200.0
UP_SECONDS = 300.0
STEP_SECONDS = 120.0


class Stack:
    """One project of Compose; `running_stack` makes and ends it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.mark = f"test-{secrets.token_hex(4)}"
        self.router_port = free_port()

    def compose(
        self,
        *arguments: str,
        stdin: str | None = None,
        check: bool = True,
        timeout_seconds: float = STEP_SECONDS,
    ) -> subprocess.CompletedProcess[str]:
        """Compose, on this project."""
        return compose(
            "--project-name",
            f"inferbus-{self.mark}",
            *arguments,
            settings={
                "INFERBUS_VERSION": self.mark,
                "INFERBUS_ROUTER_PORT": str(self.router_port),
                "INFERBUS_HEALTH_INTERVAL": "4s",
                "COMPOSE_PARALLEL_LIMIT": "2",
            },
            folder=self.folder,
            stdin=stdin,
            check=check,
            timeout_seconds=timeout_seconds,
        )

    def build(self) -> None:
        self.compose(*ALL_PROFILES, "build", timeout_seconds=BUILD_SECONDS)

    def up(self, *options: str) -> None:
        self.compose("up", "--detach", "--wait", *options, timeout_seconds=UP_SECONDS)

    def down(self) -> None:
        options = ("--volumes", "--remove-orphans", "--rmi", "all")
        self.compose(*ALL_PROFILES, "down", *options, timeout_seconds=UP_SECONDS)

    def inferbus(
        self, *arguments: str, stdin: str | None = None, check: bool = True
    ) -> subprocess.CompletedProcess[str]:
        """The command line, in its container."""
        return self.compose("run", "--rm", "-T", "cli", *arguments, stdin=stdin, check=check)

    def get(self, kind: str, *name: str) -> Any:
        return json.loads(self.inferbus("get", kind, *name, "-o", "json").stdout)

    def complete(self, model: str) -> int:
        """The status of a short completion; 0 where nothing answers."""
        body = {"model": model, "prompt": "hello", "max_tokens": 3}
        url = f"http://127.0.0.1:{self.router_port}/v1/completions"
        headers = {"content-type": "application/json"}
        request = urllib.request.Request(url, json.dumps(body).encode(), headers)
        try:
            with urllib.request.urlopen(request, timeout=30) as reply:
                status: int = reply.status
                return status
        except urllib.error.HTTPError as error:
            error.close()
            return error.code
        except OSError:
            return 0

    def states(self) -> list[Mapping[str, Any]]:
        """What Compose says of each container that runs."""
        lines = self.compose("ps", "--format", "json").stdout.splitlines()
        return [json.loads(line) for line in lines]

    def say(self, service: str, *command: str) -> str:
        """What a command prints in the first container of a service."""
        return self.compose("exec", "-T", service, *command).stdout.strip()

    def logs(self) -> str:
        """The last lines of every container, for a failure's message."""
        return self.compose("logs", "--tail", "20", check=False).stdout


@contextlib.contextmanager
def running_stack(folder: Path) -> Iterator[Stack]:
    """A platform, built and up, and gone afterwards; `folder` takes a copy of the sources."""
    copy_sources(folder)
    fetch_wheels(folder)
    stack = Stack(folder)
    try:
        stack.build()
        stack.up()
        yield stack
    except BaseException as error:
        error.add_note(stack.logs())
        raise
    finally:
        stack.down()


def copy_sources(folder: Path) -> None:
    """What images are built from, and compose.yaml, as they are in the checkout now."""
    for name in ("compose.yaml", "pyproject.toml", "uv.lock", ".dockerignore"):
        shutil.copy2(ROOT / name, folder / name)
    ignored = shutil.ignore_patterns("__pycache__", "tests", ".*_cache", ".venv")
    for name in ("contracts", "shared", "services", "deploy/docker"):
        shutil.copytree(ROOT / name, folder / name, ignore=ignored)


def fetch_wheels(folder: Path) -> None:
    """Packages by way of this machine's pip: a build may know neither its proxy nor its CA."""
    scripts = folder / "deploy/docker"
    if list((scripts / "wheels").glob("*.whl")):
        return
    fetched = subprocess.run(
        ["sh", scripts / "fetch-wheels.sh"],
        capture_output=True,
        text=True,
        timeout=BUILD_SECONDS,
        check=False,
    )
    assert fetched.returncode == 0, fetched.stderr
