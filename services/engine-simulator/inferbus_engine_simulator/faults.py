"""Doing to a request what the fault plan says.

Invariant: without a fault nothing here touches a request.
"""

import asyncio
from collections.abc import Callable

from aiohttp import web

from inferbus_engine_simulator.effects import EngineRunner
from inferbus_engine_simulator.policy_api_errors import ApiError
from inferbus_engine_simulator.policy_faults import Fault, FaultKind

GARBAGE = b'{"choices": [{"index": 0, '


class Disturber:
    """The faults of one engine, as its handlers meet them."""

    def __init__(self, runner: EngineRunner, exit_process: Callable[[int], None]) -> None:
        """`exit_process` ends the process at once with an exit code."""
        self._runner = runner
        self._exit_process = exit_process

    async def before(self) -> Fault | None:
        """Draw the fault of the next request; what is left to do later is returned.

        Waits for a slow request, and raises `ApiError` for an error.
        """
        fault = self._runner.faults.for_request()
        if fault is not None and fault.kind is FaultKind.ERROR:
            raise ApiError(fault.status, "InternalServerError", "an injected fault")
        if fault is not None and fault.kind is FaultKind.SLOW:
            await self._runner.sleep_ms(fault.delay_ms)
            return None
        return fault

    async def metrics_page(self, request: web.Request, page: bytes) -> bytes:
        """What is left of a metrics page after the next fault.

        Raises `ApiError` for an error, and may never return.
        """
        fault = self._runner.faults.for_metrics()
        if fault is None:
            return page
        if fault.kind is FaultKind.ERROR:
            raise ApiError(fault.status, "InternalServerError", "an injected fault")
        if fault.kind is FaultKind.SLOW:
            await self._runner.sleep_ms(fault.delay_ms)
            return page
        await self.strike(request, fault)
        return page.replace(b"} ", b"} x")

    async def strike(self, request: web.Request, fault: Fault) -> None:
        """Let the fault happen; returns only for garbage, which the caller sends."""
        if fault.kind is FaultKind.GARBAGE:
            return
        if fault.kind is FaultKind.EXIT:
            self._exit_process(fault.exit_code)
        elif fault.kind is FaultKind.DROP_CONNECTION and request.transport is not None:
            request.transport.abort()
        # The handler is cancelled when the connection is gone, whoever closed it.
        await asyncio.get_running_loop().create_future()
