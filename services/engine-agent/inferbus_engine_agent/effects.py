"""Calls to the engine.

Invariant: at most one scrape of the engine is under way, shared by all who ask meanwhile; nothing
is called unless somebody asks.
"""

import asyncio
from typing import Any, NamedTuple

import aiohttp

from inferbus_contracts.errors import ErrorCode, Problem, ProblemsError
from inferbus_engine_agent.policy_arguments import AgentOptions
from inferbus_engine_agent.settings import AgentSettings


class Reply(NamedTuple):
    """What the engine answered."""

    status: int
    body: bytes
    content_type: str


class EngineClient:
    """The engine beside the sidecar."""

    def __init__(
        self, options: AgentOptions, settings: AgentSettings, session: aiohttp.ClientSession
    ) -> None:
        self._options = options
        self._settings = settings
        self._session = session
        self._scrape: asyncio.Task[str] | None = None

    async def health_problem(self) -> str:
        """Why the engine is not healthy; empty when it is."""
        url = f"{self._options.engine_base_url}/health"
        try:
            reply = await self._call("GET", url, self._settings.health_timeout_seconds)
        except ProblemsError as error:
            return error.problems[0].message
        return "" if reply.status == 200 else f"the engine's health check answers {reply.status}"

    async def metrics_page(self) -> str:
        """The engine's metrics page as it is now; raises `ProblemsError` when there is none."""
        if self._scrape is None:
            self._scrape = asyncio.create_task(self._fetch_page())
            self._scrape.add_done_callback(self._forget_scrape)
        return await asyncio.shield(self._scrape)

    async def post(self, path: str, body: dict[str, Any]) -> Reply:
        """Send a change of adapters to the engine; raises `ProblemsError` without an answer."""
        url = self._options.engine_base_url + path
        return await self._call("POST", url, self._settings.adapter_timeout_seconds, body)

    async def _fetch_page(self) -> str:
        url = self._options.metrics_url
        reply = await self._call("GET", url, self._settings.scrape_timeout_seconds)
        if reply.status != 200:
            raise ProblemsError(_problem(url, f"the engine's metrics page answers {reply.status}"))
        return reply.body.decode("utf-8", "replace")

    def _forget_scrape(self, scrape: asyncio.Task[str]) -> None:
        self._scrape = None
        if not scrape.cancelled():
            # Asking for the exception marks it as seen, in case every reader has gone.
            scrape.exception()

    async def _call(
        self, method: str, url: str, timeout_seconds: float, body: dict[str, Any] | None = None
    ) -> Reply:
        timeout = aiohttp.ClientTimeout(total=timeout_seconds)
        try:
            async with self._session.request(method, url, json=body, timeout=timeout) as response:
                data = await response.read()
                return Reply(response.status, data, response.content_type)
        except TimeoutError:
            message = f"the engine did not answer within {timeout_seconds} s"
        except aiohttp.ClientError as error:
            message = f"the engine can't be reached: {error}"
        raise ProblemsError(_problem(url, message))


def _problem(url: str, message: str) -> Problem:
    return Problem(
        code=ErrorCode.NOT_RUNNING,
        message=message,
        field="--engine-base-url",
        value=url,
        remedy="look at the engine container's log, and compare the address with its --port",
    )
