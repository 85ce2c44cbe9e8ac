"""Listening, and stopping without losing a request.

vLLM, TGI and TensorRT-LLM listen once the model is loaded; SGLang, llama.cpp and Ollama listen at
once and answer 503 until then. A stop closes the listening socket, lets running requests finish for
a bounded time, and then cuts them off.

Invariant: a port that is taken is found out before the start-up time has passed.
"""

import asyncio
import errno
import socket
from collections.abc import Callable

from aiohttp import web

from inferbus_contracts.errors import ErrorCode, Problem, ProblemsError
from inferbus_engine_simulator.effects import EngineRunner
from inferbus_engine_simulator.faults import Disturber
from inferbus_engine_simulator.handlers_engine import EngineHandlers
from inferbus_engine_simulator.handlers_openai import OpenAiHandlers
from inferbus_engine_simulator.handlers_simulator import SimulatorHandlers
from inferbus_engine_simulator.handover import Handover
from inferbus_engine_simulator.http_replies import MAX_BODY_BYTES, engine_middleware
from inferbus_engine_simulator.policy_engine_flags import EngineKind

_LISTEN_WHILE_LOADING = (EngineKind.SGLANG, EngineKind.LLAMACPP, EngineKind.OLLAMA)
_BACKLOG = 1024

HANDOVER = web.AppKey("handover", Handover)


def build_app(
    runner: EngineRunner,
    address: str,
    allow_adapter_updates: bool,
    exit_process: Callable[[int], None],
    bootstrap_timeout_seconds: float = 300.0,
) -> web.Application:
    """The HTTP interface of an engine; a follower of a multi-node engine answers probes only.

    `HANDOVER` in it has what an engine that prefills serves to those that decode.
    """
    app = web.Application(middlewares=[engine_middleware(runner)], client_max_size=MAX_BODY_BYTES)
    disturber = Disturber(runner, exit_process)
    engine = EngineHandlers(runner, disturber, allow_adapter_updates)
    app.add_routes(SimulatorHandlers(runner).routes())
    if runner.options.headless:
        app.add_routes([web.get("/health", engine.health)])
        return app
    app.add_routes(engine.routes())
    handover = app[HANDOVER] = Handover(runner, round(bootstrap_timeout_seconds * 1000))
    app.add_routes(OpenAiHandlers(runner, disturber, handover, address).routes())
    return app


def bind(host: str, port: int) -> socket.socket:
    """A bound socket that doesn't listen yet; raises `ProblemsError` when that fails."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except (OSError, UnicodeError) as error:
        listener.close()
        raise ProblemsError(_cannot_listen(f"{host}:{port}", error)) from None
    return listener


async def serve(
    app: web.Application,
    runner: EngineRunner,
    listener: socket.socket,
    stop: asyncio.Event,
    drain_seconds: float,
    rooms: socket.socket | None = None,
) -> None:
    """Serve until `stop` is set and running requests are done, or `drain_seconds` have passed.

    `rooms` is where an engine that prefills meets those that decode.
    """
    app_runner = _app_runner(app, drain_seconds)
    rooms_runner = _app_runner(app[HANDOVER].app(), drain_seconds) if rooms else None
    await app_runner.setup()
    try:
        if rooms_runner is not None and rooms is not None:
            await rooms_runner.setup()
            await web.SockSite(rooms_runner, rooms, backlog=_BACKLOG).start()
        if runner.options.engine not in _LISTEN_WHILE_LOADING:
            await _until_ready(runner, stop)
        if not stop.is_set():
            await web.SockSite(app_runner, listener, backlog=_BACKLOG).start()
            await stop.wait()
    finally:
        await app_runner.cleanup()
        if rooms_runner is not None:
            await rooms_runner.cleanup()
        runner.stop()
        listener.close()


def _app_runner(app: web.Application, drain_seconds: float) -> web.AppRunner:
    return web.AppRunner(
        app, access_log=None, handler_cancellation=True, shutdown_timeout=drain_seconds
    )


def _cannot_listen(address: str, error: Exception) -> Problem:
    known = {
        errno.EADDRINUSE: (ErrorCode.PORT_IN_USE, "stop what uses the port, or choose another"),
        errno.EACCES: (ErrorCode.PERMISSION_DENIED, "choose a port from 1024 on"),
    }
    number = error.errno if isinstance(error, OSError) else None
    code, remedy = known.get(
        number or 0, (ErrorCode.BAD_ARGUMENT, "use an address of this machine, by number")
    )
    return Problem(
        code=code,
        message=f"can't listen: {error}",
        field="--host and --port",
        value=address,
        remedy=remedy,
    )


async def _until_ready(runner: EngineRunner, stop: asyncio.Event) -> None:
    loading = asyncio.ensure_future(runner.until_ready())
    stopping = asyncio.ensure_future(stop.wait())
    try:
        await asyncio.wait((loading, stopping), return_when=asyncio.FIRST_COMPLETED)
    finally:
        loading.cancel()
        stopping.cancel()
