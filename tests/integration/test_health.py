"""A service tells how it is through all that can befall the bus, from its first moment on.

The service is the program that people run: what it says on its health page is all that counts.
"""

import asyncio
import contextlib
import json
import re
import sys
import urllib.error
import urllib.request
from asyncio.subprocess import Process, create_subprocess_exec
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from inferbus_contracts.services import Service
from inferbus_contracts.stream_specs import DurableSpec
from inferbus_contracts.topology import topology
from inferbus_shared.bus.jetstream import api
from inferbus_shared.bus.service import NOT_SERVING, Runtime
from tests.support.eventually import eventually
from tests.support.handling import Settings
from tests.support.nats import NatsServer

PROGRAM = Path(sys.executable).parent / "inferbus-autoscaler"


@dataclass(frozen=True)
class Program:
    """A running service and where its pages are."""

    process: Process
    url: str

    async def page(self, path: str) -> tuple[int, dict[str, object]]:
        """Status and body of a page."""
        return await asyncio.to_thread(_get, f"{self.url}{path}")

    async def missing(self) -> dict[str, str]:
        """Why it isn't ready; empty when it is."""
        status, body = await self.page("/readyz")
        missing = body["missing"]
        assert isinstance(missing, dict)
        assert (status == 503) == bool(missing)
        return missing

    async def stop(self) -> int:
        """End it politely; its exit code."""
        self.process.terminate()
        async with asyncio.timeout(30):
            return await self.process.wait()


def _get(url: str) -> tuple[int, dict[str, object]]:
    try:
        with urllib.request.urlopen(url, timeout=30) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


@contextlib.asynccontextmanager
async def autoscaler(server: NatsServer, folder: Path) -> AsyncIterator[Program]:
    log = folder / "log"
    with log.open("wb") as file:
        process = await create_subprocess_exec(PROGRAM, env=server.environment(), stderr=file)

    def url() -> str:
        told = re.search(r"health page address=(\S+)", log.read_text())
        assert told
        return f"http://{told[1]}"

    try:
        yield Program(process, await eventually(url, timeout=30, what=log.read_text))
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


def durables() -> list[DurableSpec]:
    return [item for item in topology().durables if item.service is Service.AUTOSCALER]


async def test_it_waits_for_the_bus_and_says_so(nats_server: NatsServer, tmp_path: Path) -> None:
    nats_server.kill()
    async with autoscaler(nats_server, tmp_path) as program:
        assert await program.page("/healthz") == (200, {"status": "alive"})
        assert await program.missing() == {"bus": "not connected"}

        nats_server.start()
        await eventually(lambda: _is(program, {}), timeout=30)

        gone = durables()[0]
        async with nats_server.connection() as admin:
            await api(admin, f"CONSUMER.DELETE.{gone.stream}.{gone.name}")
        name = f"durable {gone.stream}.{gone.name}"
        await eventually(lambda: _names(program, name))
        assert (await program.page("/healthz"))[0] == 200, "it is no reason to end it"
        await nats_server.provision()
        await eventually(lambda: _is(program, {}), timeout=30)

        nats_server.kill()
        await eventually(lambda: _is(program, {"bus": "not connected"}))
        nats_server.start()
        await eventually(lambda: _is(program, {}), timeout=30)
        assert await program.stop() == 0


async def _is(program: Program, missing: dict[str, str]) -> bool:
    return await program.missing() == missing


async def _names(program: Program, what: str) -> bool:
    return what in await program.missing()


async def test_it_can_be_ended_while_it_waits_for_the_bus(
    nats_server: NatsServer, tmp_path: Path
) -> None:
    nats_server.kill()
    async with autoscaler(nats_server, tmp_path) as program:
        assert await program.missing()
        assert await program.stop() == 0


async def test_what_was_never_provisioned_ends_it_with_the_names(
    bare_nats_server: NatsServer, tmp_path: Path
) -> None:
    async with bare_nats_server.connection() as admin:
        # Only what is read before anything is wired.
        await api(
            admin,
            "STREAM.CREATE.KV_clock",
            {"name": "KV_clock", "subjects": ["$KV.clock.>"], "allow_direct": True},
        )
    process = await create_subprocess_exec(
        PROGRAM, env=bare_nats_server.environment(), stderr=asyncio.subprocess.PIPE
    )
    _, said = await process.communicate()
    assert process.returncode == 3
    assert "stream not found" in said.decode()
    assert "inferbus provision" in said.decode()


async def test_it_is_ready_when_its_work_is_wired_and_no_sooner(nats_server: NatsServer) -> None:
    wired = asyncio.Event()

    async def serve(_: Runtime[Settings]) -> None:
        await wired.wait()

    async def live() -> None:
        await runtime.wire(serve)
        await runtime.run()

    async with nats_server.bus(Service.AUTOSCALER) as bus:
        runtime = Runtime(Service.AUTOSCALER, Settings(), bus, CollectorRegistry())
        running = asyncio.create_task(live())
        assert await runtime.missing() == NOT_SERVING
        wired.set()
        await eventually(lambda: _is_ready(runtime))
        runtime.stop()
        await running
        assert await runtime.missing() == NOT_SERVING


async def _is_ready(runtime: Runtime[Settings]) -> bool:
    return not await runtime.missing()


async def test_work_that_fails_while_other_work_is_wired_ends_the_service(
    nats_server: NatsServer,
) -> None:
    async def fail() -> None:
        raise RuntimeError("broken")

    async def serve(runtime: Runtime[Settings]) -> None:
        runtime.background(fail(), "broken work")
        await asyncio.Event().wait()

    async with nats_server.bus(Service.AUTOSCALER) as bus:
        runtime = Runtime(Service.AUTOSCALER, Settings(), bus, CollectorRegistry())
        await runtime.wire(serve)
        with pytest.raises(RuntimeError, match="broken"):
            await runtime.run()
