"""Makes the helper modules beside the tests importable, and shares a running spec-watcher.

With importlib mode pytest does not do the first by itself.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.nats import NatsServer

sys.path.append(str(Path(__file__).parent))


@pytest.fixture
def spec_watcher(nats_server: NatsServer) -> Iterator[None]:
    """A spec-watcher on the test's bus."""
    binary = Path(sys.executable).parent / "inferbus-spec-watcher"
    process = subprocess.Popen([binary], env=nats_server.environment())
    try:
        yield
    finally:
        os.kill(process.pid, signal.SIGTERM)
        process.wait()
