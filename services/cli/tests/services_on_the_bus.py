"""Services beside the command line: each started as the program it is, and waited for."""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from functools import partial
from pathlib import Path

import nats.errors

from inferbus_contracts.api.console import ConsoleQuery, console_subject
from inferbus_contracts.api.objects import ObjectVerb, object_subject
from inferbus_contracts.services import Service
from inferbus_shared.bus.connection import Connection
from tests.support.eventually import eventually
from tests.support.nats import NatsServer

START_SECONDS = 60.0
ANSWERS = {
    Service.SPEC_WATCHER: object_subject(ObjectVerb.GET),
    Service.CONSOLE: console_subject(ConsoleQuery.ORDER),
}
"""A subject of each that is listened to once the service serves."""


@contextlib.asynccontextmanager
async def running(server: NatsServer, *names: Service) -> AsyncIterator[None]:
    """These services on a server's bus, from when they answer."""
    with _started(server, names):
        async with server.connection(Service.CLI) as connection:
            for name in names:
                await eventually(partial(_answers, connection, ANSWERS[name]), START_SECONDS)
        yield


@contextlib.contextmanager
def _started(server: NatsServer, names: Sequence[Service]) -> Iterator[None]:
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


async def _answers(connection: Connection, subject: str) -> bool:
    """Whether somebody listens; what is asked here is refused, which is an answer too."""
    try:
        await connection.request(subject, b"", timeout=1)
    except (nats.errors.NoRespondersError, nats.errors.TimeoutError):
        return False
    return True
