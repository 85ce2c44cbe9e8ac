"""Logs, metrics and the health pages of a service.

Log lines are one line each: time, level, service, message, then key=value pairs; the message of a
line is constant and what varies stands in the pairs. Every service serves /metrics, /healthz and
/readyz on its own port.
"""

import logging
import sys
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from aiohttp import web
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

from inferbus_contracts.envelope import format_time

_STANDARD = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime", "taskName"}


class PairFormatter(logging.Formatter):
    """`time level service message key=value …`."""

    def __init__(self, service: str) -> None:
        super().__init__()
        self._service = service

    def format(self, record: logging.LogRecord) -> str:
        """One line; a traceback, where there is one, follows it."""
        pairs = "".join(
            f" {name}={_plain(value)}"
            for name, value in record.__dict__.items()
            if name not in _STANDARD
        )
        line = (
            f"{format_time(int(record.created * 1000))} {record.levelname.lower():7} "
            f"{self._service} {record.getMessage()}{pairs}"
        )
        if record.exc_info:
            line = f"{line}\n{self.formatException(record.exc_info)}"
        return line


def _plain(value: object) -> str:
    text = str(value).replace("\n", "\\n")
    return f'"{text}"' if " " in text else text


def set_up_logging(service: str, level: int = logging.INFO) -> None:
    """Log to standard error; libraries speak from WARNING on."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(PairFormatter(service))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger("inferbus").setLevel(level)


Readiness = Callable[[], Awaitable[Mapping[str, str]]]
"""What keeps a service from being ready, by what is affected; empty when it is ready."""


class HealthServer:
    """/metrics, /healthz (the event loop answers) and /readyz (the work can be done)."""

    def __init__(self, registry: CollectorRegistry, ready: Readiness) -> None:
        self._registry = registry
        self._ready = ready
        self._runner: web.AppRunner | None = None
        self.port = 0

    async def start(self, host: str, port: int) -> None:
        """Listen; `self.port` is the port that was chosen. Raises OSError when it is taken."""
        app = web.Application()
        app.add_routes(
            [
                web.get("/metrics", self._metrics),
                web.get("/healthz", self._alive),
                web.get("/readyz", self._is_ready),
            ]
        )
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        site = web.TCPSite(runner, host, port)
        await site.start()
        self._runner = runner
        self.port = _port_of(runner.addresses)

    async def stop(self) -> None:
        """Stop listening."""
        if self._runner:
            await self._runner.cleanup()

    async def _metrics(self, _: web.Request) -> web.Response:
        page = generate_latest(self._registry)
        return web.Response(body=page, headers={"Content-Type": CONTENT_TYPE_LATEST})

    async def _alive(self, _: web.Request) -> web.Response:
        return web.json_response({"status": "alive"})

    async def _is_ready(self, _: web.Request) -> web.Response:
        missing = dict(await self._ready())
        body = {"status": "not ready" if missing else "ready", "missing": missing}
        return web.json_response(body, status=503 if missing else 200)


def _port_of(addresses: list[Any]) -> int:
    return int(addresses[0][1])
