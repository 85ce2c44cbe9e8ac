"""Reading requests and writing answers, the same for all handlers.

Invariant: an `ApiError` becomes the error body of the simulated engine, and nothing else of a
refusal reaches the client.
"""

import json
from typing import Any

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from inferbus_engine_simulator.effects import EngineRunner
from inferbus_engine_simulator.policy_api_errors import ApiError, bad_request, unavailable

MAX_BODY_BYTES = 64 * 2**20
SIMULATOR_PATHS = "/simulator/"


async def read_json(request: web.Request) -> Any:
    """The JSON of a body; raises `ApiError` with status 400."""
    try:
        return json.loads(await request.read())
    except ValueError as error:
        raise bad_request(f"the body is no JSON: {error}") from None


async def read_object(request: web.Request) -> dict[str, Any]:
    """The JSON object of a body; raises `ApiError` with status 400."""
    body = await read_json(request)
    if not isinstance(body, dict):
        raise bad_request("the body must be a JSON object")
    return body


def json_reply(body: Any, status: int = 200) -> web.Response:
    """An answer with compact JSON."""
    data = json.dumps(body, separators=(",", ":"), ensure_ascii=False).encode()
    return web.Response(body=data, status=status, content_type="application/json")


def engine_middleware(runner: EngineRunner) -> Middleware:
    """Refuses what the engine can't serve yet, and shapes refusals."""

    @web.middleware
    async def middleware(request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            if not runner.ready and not request.path.startswith(SIMULATOR_PATHS):
                raise unavailable("the model is being loaded")
            return await handler(request)
        except ApiError as error:
            return json_reply(error.body(runner.options.engine), error.status)

    return middleware
