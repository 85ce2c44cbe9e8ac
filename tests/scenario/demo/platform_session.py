"""The demo's own platform: brought up as a user would, and gone however the demo ends.

Invariant: unless it is to be kept, no process of it outlives `demo_platform`, a second Ctrl-C
included; a platform that the demo did not start is never touched.
"""

import contextlib
import shlex
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from rich.console import Console

from inferbus_cli.platform.directory import PlatformDirectory
from tests.scenario.demo.screen import say
from tests.support.platform import COMMAND, Platform

_INTERRUPTS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class DemoError(Exception):
    """Something that ends the demo, told in one line or as a command said it."""


@contextlib.contextmanager
def demo_platform(
    console: Console, folder: Path | None, options: tuple[str, ...], *, keep: bool
) -> Iterator[Platform]:
    """A platform in `folder`, or in one of its own; raises `DemoError` when it doesn't start."""
    if folder is not None and PlatformDirectory(folder).state_file.exists():
        raise DemoError(f"there is a platform in {folder} already; name another folder with --dir")
    say(console, "Starting a platform: NATS, the services, two routers. A few seconds.")
    root = folder or Path(tempfile.mkdtemp(prefix="inferbus-demo-"))
    platform = Platform(root.absolute())
    try:
        port = str(platform.router_port)
        command(console, platform, "up", "--detach", "--router-port", port, *options)
        yield platform
    finally:
        if keep:
            say(console, f"\nThe platform goes on. `inferbus down --dir {root}` ends it.")
        else:
            _end(console, platform)
            if folder is None:
                shutil.rmtree(root, ignore_errors=True)


def command(console: Console, platform: Platform, *arguments: str) -> None:
    """Run a command of `inferbus` for everyone to see; raises `DemoError` when it fails.

    An interrupt waits until it is done: half a start can't be ended as surely as a whole one.
    """
    words = [*arguments, "--dir", str(platform.directory.root)]
    say(console, f"\n$ {shlex.join(['inferbus', *words])}")
    with _interrupts_wait():
        status = subprocess.run([COMMAND, *words], check=False, process_group=0).returncode
    if status != 0:
        raise DemoError(f"`inferbus {arguments[0]}` ended with status {status}")


@contextlib.contextmanager
def _interrupts_wait() -> Iterator[None]:
    """Raises `KeyboardInterrupt` at the end when there was an interrupt meanwhile."""
    heard: list[int] = []
    before = {
        number: signal.signal(number, lambda number, _: heard.append(number))
        for number in _INTERRUPTS
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if heard:
        raise KeyboardInterrupt


def _end(console: Console, platform: Platform) -> None:
    """Whoever is impatient here would leave processes behind: further Ctrl-C are not heard."""
    for number in _INTERRUPTS:
        signal.signal(number, signal.SIG_IGN)
    if platform.directory.state_file.exists():
        say(console, "\nEnding the platform …")
        platform.down()
