"""The publisher as a program: its settings, its work, its end."""

import asyncio
import sys
from asyncio.subprocess import DEVNULL, PIPE, create_subprocess_exec
from pathlib import Path

from publisher_builders import server, server_key
from publisher_platform import platform

from tests.support.eventually import eventually
from tests.support.nats import NatsServer

PROGRAM = Path(sys.executable).parent / "inferbus-router-config-publisher"


async def test_it_publishes_and_ends_when_told_to(nats_server: NatsServer) -> None:
    async with platform(nats_server) as world:
        process = await create_subprocess_exec(
            PROGRAM, env=nats_server.environment(), stderr=DEVNULL
        )
        try:
            await world.apply(server())
            await eventually(lambda: server_key() in world.router.held, timeout=30)
            process.terminate()
            async with asyncio.timeout(30):
                assert await process.wait() == 0
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()


async def test_a_bad_setting_is_told_by_its_variable(nats_server: NatsServer) -> None:
    variable = "INFERBUS_ROUTER_CONFIG_PUBLISHER_COALESCE_MS"
    process = await create_subprocess_exec(
        PROGRAM, env=nats_server.environment() | {variable: "-1"}, stderr=PIPE
    )
    _, said = await process.communicate()
    assert process.returncode == 2
    assert variable in said.decode()
    assert "Traceback" not in said.decode()
