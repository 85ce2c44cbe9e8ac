"""Processes of one service, beside a server of the test's own."""

import contextlib
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from inferbus_contracts.services import Service
from inferbus_contracts.topology import PARTITIONS, durable_name, inbox_stream
from inferbus_shared.bus.jetstream import api
from tests.support.eventually import eventually
from tests.support.nats import NatsServer

START_SECONDS = 30.0


@contextlib.contextmanager
def running_instances(
    server: NatsServer, service: Service, instances: Sequence[str]
) -> Iterator[list[int]]:
    """So many processes of a service; their pids."""
    binary = Path(sys.executable).parent / f"inferbus-{service}"
    processes = [
        subprocess.Popen([binary], env=server.environment(instance)) for instance in instances
    ]
    try:
        yield [process.pid for process in processes]
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.wait()


async def until_waiting(server: NatsServer, service: Service, instances: int) -> None:
    """Wait until every instance asks for work of every partition."""
    async with server.connection() as connection:

        async def waiting() -> bool:
            polls = [
                (await api(connection, f"CONSUMER.INFO.{inbox_stream(service)}.{name}"))[
                    "num_waiting"
                ]
                for name in (durable_name(service, number) for number in range(PARTITIONS))
            ]
            return all(number == instances for number in polls)

        await eventually(waiting, START_SECONDS)
