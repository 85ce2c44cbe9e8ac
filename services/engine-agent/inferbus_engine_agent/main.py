"""`inferbus-engine-agent --port P --engine E --engine-base-url U --pod N --model M`.

Exit codes: 0 after SIGTERM or SIGINT, 1 when the port is taken, 2 for a bad command line or
setting.
"""

import asyncio
import logging
import signal
import sys
from collections.abc import Sequence

import aiohttp
from aiohttp import web

from inferbus_contracts.errors import ErrorCode, Problem, ProblemsError
from inferbus_engine_agent.effects import EngineClient
from inferbus_engine_agent.handlers import AgentHandlers, problems_middleware
from inferbus_engine_agent.policy_arguments import AgentOptions, parse_arguments
from inferbus_engine_agent.settings import AgentSettings, PodSettings
from inferbus_shared.settings import load_settings
from inferbus_shared.telemetry import set_up_logging

_log = logging.getLogger("inferbus.engine_agent")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the sidecar until it is told to stop; answers the exit code."""
    set_up_logging("engine-agent")
    try:
        words = list(sys.argv[1:] if argv is None else argv)
        options = parse_arguments(words, load_settings(PodSettings).pod_ip)
        asyncio.run(_run(options, load_settings(AgentSettings)))
    except ProblemsError as error:
        for problem in error.problems:
            _log.error("not started", extra={"problem": str(problem)})
        return 1 if error.problems[0].code is ErrorCode.PORT_IN_USE else 2
    return 0


def build_app(
    options: AgentOptions, settings: AgentSettings, session: aiohttp.ClientSession
) -> web.Application:
    """The sidecar's HTTP interface."""
    app = web.Application(middlewares=[problems_middleware])
    engine = EngineClient(options, settings, session)
    app.add_routes(AgentHandlers(options, engine).routes())
    return app


async def _run(options: AgentOptions, settings: AgentSettings) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    async with aiohttp.ClientSession() as session:
        runner = web.AppRunner(build_app(options, settings, session), access_log=None)
        await runner.setup()
        try:
            await _listen(runner, options)
            _log.info(
                "sidecar started",
                extra={
                    "address": f"{options.host}:{options.port}",
                    "engine": options.engine.value,
                    "engine_base_url": options.engine_base_url,
                    "pod": options.pod,
                    "model": options.model,
                },
            )
            await stop.wait()
        finally:
            await runner.cleanup()


async def _listen(runner: web.AppRunner, options: AgentOptions) -> None:
    try:
        await web.TCPSite(runner, options.host, options.port).start()
    except OSError as error:
        raise ProblemsError(
            Problem(
                code=ErrorCode.PORT_IN_USE,
                message=f"can't listen: {error}",
                field="--port",
                value=f"{options.host}:{options.port}",
                remedy="stop what uses the port, or choose another one",
            )
        ) from None


if __name__ == "__main__":
    sys.exit(main())
