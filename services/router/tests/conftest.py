"""Routers in the test's own event loop, with real engines and real clients around them."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
import uvloop

from inferbus_contracts.events.demand import DemandObserved, DemandPending, DemandSummed
from inferbus_contracts.events.route import EndpointEntry
from inferbus_contracts.keys import ObjectKey
from inferbus_router.adapters_static import Entry, published
from inferbus_router.queue_settings import QueueSettings
from inferbus_router.settings import RouterSettings
from inferbus_router.wiring import RunningRouter, start_router
from inferbus_shared.clock import Clock, SystemClock
from services.router.tests.builders import route, route_key, server, server_key
from services.router.tests.client import Client
from services.router.tests.engine import Engine, Script, answers, running_engine
from services.router.tests.engines_that_fail import refusing_port
from services.router.tests.named_fleet import QUICK, Fleet, StartFleet
from tests.support.eventually import eventually


def pytest_asyncio_loop_factories(
    config: pytest.Config, item: pytest.Item
) -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    """The loop that routers run on."""
    del config, item
    return {"uvloop": uvloop.new_event_loop}


class RecordedDemand:
    """Keeps what a router tells."""

    def __init__(self) -> None:
        self.seconds: list[tuple[ObjectKey, DemandObserved]] = []
        self.sums: list[tuple[ObjectKey, DemandSummed]] = []
        self.unready: list[list[str]] = []
        self.waiting: list[tuple[ObjectKey, DemandPending]] = []

    def observed(self, target: ObjectKey, data: DemandObserved) -> None:
        self.seconds.append((target, data))

    def summed(self, target: ObjectKey, data: DemandSummed) -> None:
        self.sums.append((target, data))

    def pending(self, target: ObjectKey, data: DemandPending) -> None:
        self.waiting.append((target, data))

    def without_credential(self, providers: Sequence[ObjectKey]) -> None:
        self.unready.append([str(provider) for provider in providers])

    def total(self, field: str) -> int:
        """A count over all seconds and models."""
        return sum(getattr(model, field) for _, data in self.seconds for model in data.models)


Entries = Mapping[ObjectKey, Entry]


class RouterUnderTest:
    """A running router, and short ways to feed and ask it."""

    def __init__(self, running: RunningRouter, demand: RecordedDemand) -> None:
        self.running = running
        self.demand = demand
        self.entries: dict[ObjectKey, Entry] = {}
        self._revision = 0
        self._clients: list[Client] = []
        self._stopped = False

    @property
    def port(self) -> int:
        """Where clients connect."""
        return self.running.listener.port

    @property
    def admin_port(self) -> int:
        """Where operators connect."""
        return self.running.admin.port

    def apply(self, entries: Entries) -> None:
        """Publish parts; those of earlier calls stay."""
        self.entries |= entries
        self._revision += 1
        self.running.router.apply(published(self.entries, self._revision))
        self.running.router.snapshot_ended()

    def remove(self, *keys: ObjectKey) -> None:
        """Publish a table without these parts."""
        self._revision += 1
        for key in keys:
            del self.entries[key]
        self.running.router.replace(published(self.entries, self._revision))

    def serve(self, *endpoints: EndpointEntry, model: str = "m", **fields: Any) -> None:
        """A route for `model` to one model server with these endpoints."""
        self.apply(
            {route_key("r"): route(model=model), server_key("ms"): server(*endpoints, **fields)}
        )

    async def client(
        self, port: int | None = None, limit: int = 1 << 20, tls: ssl.SSLContext | None = None
    ) -> Client:
        """A connection, closed at the end of the test."""
        client = await Client.connect(port or self.port, limit, tls)
        self._clients.append(client)
        return client

    async def metrics(self) -> dict[str, float]:
        """Sums of the samples of each metric."""
        page = await (await self.client(self.admin_port)).get("/metrics")
        sums: dict[str, float] = {}
        for line in page.body.decode().splitlines():
            if not line.startswith("#"):
                name, value = line.rsplit(" ", 1)
                name = name.partition("{")[0]
                sums[name] = sums.get(name, 0) + float(value)
        return sums

    async def settled(self) -> None:
        """Wait until no request runs, and check that nothing was left open."""
        state = self.running.router.state
        await eventually(lambda: state.ledger.traffic.active_requests == 0)
        assert len(state.hold) == 0
        if state.queues is not None:
            assert len(state.queues) == 0
            assert not any(line.running for line in state.queues.lines.values())
        for traffic in state.ledger.traffic.destinations():
            assert traffic.active == 0, traffic.labels
        for model, traffic_of_model in state.ledger.traffic.models.items():
            assert traffic_of_model.active == 0, model
        for each in state.fleet.endpoints():
            assert (each.in_flight, each.waiting_prompt_tokens) == (0, 0), each.pod

    async def stop(self) -> None:
        """Drain, once; clients of the test stay."""
        if not self._stopped:
            self._stopped = True
            await self.running.stop()

    def leave(self) -> None:
        """Close the test's clients."""
        for client in self._clients:
            client.close()


StartRouter = Callable[..., Awaitable[RouterUnderTest]]
StartEngine = Callable[..., Awaitable[Engine]]


@pytest.fixture
async def start_router_under_test() -> AsyncIterator[StartRouter]:
    """Starts routers; they are stopped at the end of the test."""
    started: list[RouterUnderTest] = []

    async def start(
        clock: Clock | None = None, queues: QueueSettings | None = None, **settings: Any
    ) -> RouterUnderTest:
        defaults = {"port": 0, "http_port": 0, "access_log": "off", "drain_linger_seconds": 0}
        known = RouterSettings(**defaults | {"grace_seconds": 0} | settings)
        demand = RecordedDemand()
        running = await start_router(known, clock or SystemClock(), "router-1", demand, queues)
        await running.accept()
        started.append(RouterUnderTest(running, demand))
        return started[-1]

    yield start
    for router in started:
        router.leave()
        await router.stop()


@pytest.fixture
async def router(start_router_under_test: StartRouter) -> RouterUnderTest:
    """A router with default settings and an empty table."""
    return await start_router_under_test()


@pytest.fixture
def dead_port() -> Iterator[int]:
    """A port that refuses connections."""
    with refusing_port() as port:
        yield port


@pytest.fixture
async def start_engine() -> AsyncIterator[StartEngine]:
    """Starts engines; they are stopped at the end of the test."""
    async with AsyncExitStack() as stack:

        async def start(
            script: Script = answers, port: int = 0, tls: ssl.SSLContext | None = None
        ) -> Engine:
            return await stack.enter_async_context(running_engine(script, port, tls))

        yield start


@pytest.fixture
def start_fleet(
    tmp_path: Path, start_router_under_test: StartRouter, start_engine: StartEngine
) -> StartFleet:
    """Starts routers with a configuration file, and engines by their scripts behind them."""

    async def start(configuration: str, *scripts: Any, **fields: Any) -> Fleet:
        path = tmp_path / "routerConfiguration.yaml"
        path.write_text(configuration)
        router = await start_router_under_test(
            configuration_file=path,
            configuration_interval_seconds=QUICK,
            engine_metrics_interval_seconds=QUICK,
        )
        engines = [await start_engine(script) for script in scripts]
        fleet = Fleet(router, path, engines)
        fleet.serve(*engines, **fields)
        return fleet

    return start
