"""Asks engines how they are, for the plugins that want to know (routing spec, section 7).

Each endpoint has a task and a timer of its own, so that a hung engine delays nobody (the
reference's defect 15). Nothing is asked unless a configured plugin needs it, and a large fleet is
asked less often, because the router's time belongs to requests. Invariant: what is in `readings` is
younger than `MOST_AGE_INTERVALS` intervals and a timeout; an endpoint that is gone is in no reading
and asked no more.
"""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass

from inferbus_router.endpoint import Endpoint
from inferbus_router.own_request import OwnRequestError, ask
from inferbus_router.policy_engine_page import (
    FAMILIES,
    EnginePage,
    read_models,
    read_page,
    with_models,
)
from inferbus_router.policy_plugins import UNREAD, EngineReading
from inferbus_shared.pages.scan import scan

TIMEOUT_SECONDS = 5.0
MOST_AGE_INTERVALS = 5
MOST_ASKED_PER_SECOND = 200
"""Endpoints; some 5 % of a core."""
_MOST_PAGE_BYTES = 4 << 20
_METRICS = b"GET /metrics HTTP/1.1\r\naccept: text/plain"
_MODELS = b"GET /v1/models HTTP/1.1\r\naccept: application/json"


@dataclass(frozen=True, slots=True)
class Interest:
    """What the configured plugins want to know."""

    metrics: bool = False
    models: bool = False

    def __bool__(self) -> bool:
        return self.metrics or self.models


class EnginePolling:
    """Keeps readings of all endpoints."""

    def __init__(self, interest: Interest, interval_seconds: float) -> None:
        self.interest = interest
        self.readings: dict[Endpoint, EngineReading] = {}
        self.failures = 0
        """Requests without a usable answer."""
        self._interval_seconds = interval_seconds
        self._tasks: dict[Endpoint, asyncio.Task[None]] = {}

    @property
    def interval_seconds(self) -> float:
        """Between two questions to one endpoint."""
        return max(self._interval_seconds, len(self._tasks) / MOST_ASKED_PER_SECOND)

    def follow(self, endpoints: Iterable[Endpoint]) -> None:
        """Ask these from now on, and no others."""
        wanted = dict.fromkeys(endpoints) if self.interest else {}
        for endpoint in [each for each in self._tasks if each not in wanted]:
            self._tasks.pop(endpoint).cancel()
            self.readings.pop(endpoint, None)
        loop = asyncio.get_running_loop()
        for endpoint in wanted:
            if endpoint not in self._tasks:
                self._tasks[endpoint] = loop.create_task(self._keep_asking(endpoint))

    def stop(self) -> None:
        """Ask nobody any more."""
        self.follow(())

    async def _keep_asking(self, endpoint: Endpoint) -> None:
        loop = asyncio.get_running_loop()
        page: EnginePage | None = None
        models: frozenset[str] | None = None
        answered_at = loop.time()
        while True:
            asked_at = loop.time()
            try:
                if self.interest.metrics:
                    page = await _page(endpoint, page)
                if self.interest.models:
                    models = await _models(endpoint)
            except OwnRequestError:
                self.failures += 1
                if loop.time() - answered_at > MOST_AGE_INTERVALS * self.interval_seconds:
                    self.readings.pop(endpoint, None)
            else:
                answered_at = loop.time()
                self.readings[endpoint] = with_models(page.reading if page else UNREAD, models)
            await asyncio.sleep(asked_at + self.interval_seconds - loop.time())


async def _page(endpoint: Endpoint, before: EnginePage | None) -> EnginePage:
    body = await ask(endpoint, _METRICS, b"", TIMEOUT_SECONDS, _MOST_PAGE_BYTES)
    return read_page(scan(body, FAMILIES), before)


async def _models(endpoint: Endpoint) -> frozenset[str]:
    models = read_models(await ask(endpoint, _MODELS, b"", TIMEOUT_SECONDS, _MOST_PAGE_BYTES))
    if models is None:
        raise OwnRequestError("the answer is no list of models")
    return models
