"""Simulated engines behind real HTTP servers on ports of their own."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

import pytest
from aiohttp.test_utils import TestClient, TestServer
from aiohttp.web import Application, Request

from inferbus_engine_simulator.effects import EngineRunner
from inferbus_engine_simulator.policy_accelerators import accelerator
from inferbus_engine_simulator.policy_command_line import parse_command_line
from inferbus_engine_simulator.policy_faults import Fault, FaultPlan
from inferbus_engine_simulator.policy_sizing import size_engine
from inferbus_engine_simulator.server import HANDOVER, build_app
from inferbus_shared.clock import Anchor, SystemClock, real_now_ms

Client = TestClient[Request, Application]


class SimulatedEngine:
    """One engine, its client, and what happened to its process."""

    def __init__(self, runner: EngineRunner, client: Client, exits: list[int]) -> None:
        self.runner = runner
        self.client = client
        self.exits = exits
        """Exit codes that faults asked for."""
        self.rooms_port = 0
        """Where it meets those that decode, if it prefills in rooms."""


StartEngine = Callable[..., Awaitable[SimulatedEngine]]


@pytest.fixture
async def start_engine() -> AsyncIterator[StartEngine]:
    """Starts engines; they are stopped at the end of the test."""
    started: list[SimulatedEngine] = []
    servers: list[TestServer] = []

    async def start(
        *argv: str,
        preset: str = "instant",
        rate: float = 1.0,
        faults: Sequence[Fault] = (),
        startup_ms: int = 0,
        allow_adapter_updates: bool = True,
        bootstrap_timeout_seconds: float = 300.0,
    ) -> SimulatedEngine:
        options = parse_command_line(argv or ("vllm", "serve", "org/model-7b"), {})
        size = size_engine(options, accelerator(preset))._replace(startup_ms=startup_ms)
        now_ms = real_now_ms()
        clock = SystemClock(Anchor(real_ms=now_ms, virtual_ms=now_ms, rate=rate))
        runner = EngineRunner(options, size, clock, FaultPlan(faults), seed=0)
        exits: list[int] = []
        app = build_app(
            runner, "127.0.0.9", allow_adapter_updates, exits.append, bootstrap_timeout_seconds
        )
        client = TestClient(TestServer(app, handler_cancellation=True))
        await client.start_server()
        started.append(SimulatedEngine(runner, client, exits))
        if HANDOVER in app:
            rooms = TestServer(app[HANDOVER].app(), handler_cancellation=True)
            await rooms.start_server()
            servers.append(rooms)
            started[-1].rooms_port = rooms.port or 0
        return started[-1]

    yield start
    for engine in started:
        await engine.client.close()
        engine.runner.stop()
    for server in servers:
        await server.close()
