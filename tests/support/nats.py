"""A real NATS server for a test: its own folder, any free port, the project's own configuration."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

from nats.aio.client import Client

from inferbus_contracts.services import Service
from inferbus_contracts.topology import topology
from inferbus_shared.bus.bus import Bus
from inferbus_shared.bus.connection import Connection
from inferbus_shared.bus.provision import Report, provision, read_anchor
from inferbus_shared.bus.server import ServerPlan, new_passwords, server_config
from inferbus_shared.clock import SystemClock
from inferbus_shared.settings import BusSettings

STORAGE_BYTES = 512 * 1024 * 1024
NODES = ("local",)


class NatsServer:
    """One server process; `kill` and `start` again keep the port and the data."""

    def __init__(self, directory: Path, *, storage_bytes: int = STORAGE_BYTES) -> None:
        self.directory = directory
        self.passwords = new_passwords()
        self.storage_bytes = storage_bytes
        self.port = -1
        self.monitor = 0
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"nats://127.0.0.1:{self.port}"

    @property
    def credentials(self) -> Path:
        return self.directory / "credentials.json"

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        self.directory.mkdir(parents=True, exist_ok=True)
        self.credentials.write_text(json.dumps(self.passwords))
        plan = ServerPlan(
            directory=self.directory,
            port=self.port,
            storage_bytes=self.storage_bytes,
            passwords=self.passwords,
        )
        config = self.directory / "nats.conf"
        config.write_text(server_config(plan, topology(NODES)))
        for stale in self.directory.glob("*.ports"):
            stale.unlink()
        log = (self.directory / "nats.log").open("ab")
        binary = Path(sys.executable).parent / "nats-server"
        self._process = subprocess.Popen([binary, "-c", config], stdout=log, stderr=log)
        log.close()
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            for file in self.directory.glob("*.ports"):
                with contextlib.suppress(ValueError):
                    ports = json.loads(file.read_text())
                    self.port = int(ports["nats"][0].rpartition(":")[2])
                    self.monitor = int(ports["monitoring"][0].rpartition(":")[2])
                    return
            if self._process.poll() is not None:
                break
            time.sleep(0.005)
        raise AssertionError(
            f"nats-server did not start: {(self.directory / 'nats.log').read_text()}"
        )

    def kill(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()

    def stop(self) -> None:
        """At once: nobody needs this server's data any more."""
        if self._process is not None and self._process.poll() is None:
            self.kill()

    def settings(self, instance: str = "test", prefix: str = "") -> BusSettings:
        return BusSettings(
            nats_url=self.url,
            nats_credentials=self.credentials,
            instance=instance,
            subject_prefix=prefix,
        )

    def environment(self, instance: str = "test") -> dict[str, str]:
        """What a service's process needs to reach this server."""
        return {
            **os.environ,
            "INFERBUS_NATS_URL": self.url,
            "INFERBUS_NATS_CREDENTIALS": str(self.credentials),
            "INFERBUS_INSTANCE": instance,
        }

    @contextlib.asynccontextmanager
    async def connection(
        self, service: Service = Service.PROVISIONER, instance: str = "test"
    ) -> AsyncIterator[Connection]:
        connection = Connection(service, self.settings(instance))
        await connection.open()
        try:
            yield connection
        finally:
            await connection.close()

    @contextlib.asynccontextmanager
    async def bus(self, service: Service, instance: str = "test") -> AsyncIterator[Bus]:
        async with self.connection(service, instance) as connection:
            yield Bus(connection, SystemClock(await read_anchor(connection)))

    async def provision(self) -> Report:
        async with self.connection() as connection:
            return await provision(connection, topology(NODES), self.storage_bytes)


async def heard(client: Client) -> None:
    """Return once the server has dealt with all that was sent.

    The client's own flush pings ahead of what it has yet to write: only a second one comes after.
    """
    await client.flush()
    await client.flush()


@contextlib.contextmanager
def running_server(**options: int) -> Iterator[NatsServer]:
    """A started server in a folder of its own, gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="inferbus-nats-") as folder:
        server = NatsServer(Path(folder), **options)
        server.start()
        try:
            yield server
        finally:
            server.stop()
