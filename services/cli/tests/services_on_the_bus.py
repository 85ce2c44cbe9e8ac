"""Services beside the command line: each started as the program it is."""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.support.nats import NatsServer


@contextlib.contextmanager
def running(server: NatsServer, *names: str) -> Iterator[None]:
    """The services of these names on a server's bus."""
    folder = Path(sys.executable).parent
    processes = [
        subprocess.Popen([folder / f"inferbus-{name}"], env=server.environment(name))
        for name in names
    ]
    try:
        yield
    finally:
        for process in processes:
            os.kill(process.pid, signal.SIGTERM)
        for process in processes:
            process.wait()
