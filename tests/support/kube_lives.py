"""Lives of a reconciler that end wherever a test says: before or after any step that lasts.

What a reconciler leaves behind are its writes to the API server and to the bus; all else dies with
its process. A life is given a number of such steps and ends at the next one, which is not made: so
the moments after one step and before the next can be gone through one by one. Events for people are
no steps, since nothing rests on them.

Invariant: whatever a life still had under way when it ended has no effect any more.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass

from nats.aio.msg import Msg
from prometheus_client import CollectorRegistry

from inferbus_contracts.services import Service
from inferbus_shared.bus.bus import Bus
from inferbus_shared.bus.connection import Connection, Headers
from inferbus_shared.bus.observer import Observer
from inferbus_shared.clock import SystemClock
from inferbus_workload_reconciler.adapters_kubernetes import KubernetesSubstrate
from inferbus_workload_reconciler.handlers import DecisionHandler
from inferbus_workload_reconciler.memory_store import MemoryStore
from inferbus_workload_reconciler.order_book import OrderBook
from inferbus_workload_reconciler.reconciler import Reconciler
from inferbus_workload_reconciler.telemetry import ReconcilerMetrics
from tests.fakes.kubernetes.faults import Call
from tests.fakes.kubernetes.status import ApiError
from tests.support.kube import KubeServer
from tests.support.kube_passes import kube_substrate
from tests.support.nats import NatsServer

USER = Service.WORKLOAD_RECONCILER
_READS = ("$JS.API.",)
"""Subjects on which the bus is asked, and nothing is stored."""


class MovedClock(SystemClock):
    """The machine's clock, moved ahead by the test where a reconciler would wait."""

    def __init__(self) -> None:
        super().__init__()
        self.ahead_ms = 0

    def now_ms(self) -> int:
        return super().now_ms() + self.ahead_ms


class Steps:
    """The lasting steps of one life: `limit` of them (None: any number), then it ends."""

    def __init__(self, limit: int | None = None) -> None:
        self.limit = limit
        self.made: list[str] = []
        self.ended = asyncio.Event()
        self._buried = asyncio.Event()

    async def take(self, what: str) -> None:
        """Make a step, or never return; raises `ApiError` once nobody waits for the answer."""
        if self.ended.is_set() or (self.limit is not None and len(self.made) >= self.limit):
            self.ended.set()
            await self._buried.wait()
            raise ApiError(503, "who asked is no more")
        self.made.append(what)

    async def of_call(self, call: Call) -> None:
        """A write that arrived at the API server, before it is made."""
        if call.user == USER and call.plural != "events":
            await self.take(" ".join(filter(None, (call.verb, call.plural, call.subresource))))

    def bury(self) -> None:
        """Nobody waits for answers any more."""
        self._buried.set()


class MortalConnection(Connection):
    """A connection to the bus whose writes are steps."""

    def __init__(self, nats: NatsServer, steps: Steps) -> None:
        super().__init__(USER, nats.settings("mortal"))
        self._steps = steps

    async def request(
        self, subject: str, body: bytes = b"", *, timeout: float, headers: Headers = None
    ) -> Msg:
        if not subject.startswith(_READS):
            await self._steps.take(f"store {'.'.join(subject.split('.')[:4])}")
        return await super().request(subject, body, timeout=timeout, headers=headers)


@dataclass(frozen=True)
class Life:
    """The parts of a reconciler that a process holds."""

    bus: Bus
    substrate: KubernetesSubstrate
    reconciler: Reconciler
    decisions: DecisionHandler


@contextlib.asynccontextmanager
async def life(
    nats: NatsServer, server: KubeServer, namespace: str, steps: Steps, clock: MovedClock
) -> AsyncIterator[Life]:
    """A reconciler that knows nothing but what it reads."""
    assert server.fake is not None
    server.fake.before_each_write(steps.of_call)
    connection = MortalConnection(nats, steps)
    await connection.open()
    bus = Bus(connection, clock)
    observer = Observer(bus, "workload.observed")
    following = asyncio.create_task(observer.run())
    try:
        async with kube_substrate(server, namespace, user=USER) as substrate:
            orders, metrics = OrderBook(bus), ReconcilerMetrics(CollectorRegistry())
            memory = MemoryStore(bus)
            await observer.ready()
            yield Life(
                bus,
                substrate,
                Reconciler(bus, substrate, memory, observer, orders, metrics),
                DecisionHandler(bus, substrate, orders, metrics),
            )
    finally:
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
        await connection.close()
