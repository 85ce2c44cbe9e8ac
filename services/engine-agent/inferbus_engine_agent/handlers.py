"""What the sidecar serves.

`/health` says what the engine's own health check says. `/metrics` is the engine's page with the
standard names added. `/drain` tells a preStop hook whether requests are left; an engine that can't
be reached has none. Adapters are forwarded: their files have to be where `lora_path` (or, as in the
reference, `output_dir`) says, because fetching them is the model downloader's work; `source` and
`async_download` are accepted and have no effect.

Invariant: an answer of the engine is relayed with its status; only the lack of one is 502.
"""

import json
from typing import Any

from aiohttp import web
from aiohttp.typedefs import Handler

from inferbus_contracts.errors import ErrorCode, Problem, ProblemsError
from inferbus_engine_agent.effects import EngineClient, Reply
from inferbus_engine_agent.policy_arguments import DEFAULT_METRICS_PATH, AgentOptions
from inferbus_engine_agent.policy_metrics import Engine, MalformedPageError, normalise, total

METRICS_CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_ADAPTER_PREFIX = {Engine.VLLM: "/v1", Engine.SGLANG: ""}


class AgentHandlers:
    """Handlers of one sidecar."""

    def __init__(self, options: AgentOptions, engine: EngineClient) -> None:
        self._options = options
        self._engine = engine

    def routes(self) -> list[web.RouteDef]:
        """What they serve.

        The page of metrics stands at the engine's own path too: RUNTIME_METRICS_PATH names both
        (ruling F3).
        """
        pages = dict.fromkeys((DEFAULT_METRICS_PATH, self._options.engine_metrics_path))
        return [
            web.get("/health", self.health),
            *(web.get(page, self.metrics) for page in pages),
            web.get("/drain", self.drain),
            web.post("/v1/load_lora_adapter", self.load_adapter),
            web.post("/v1/unload_lora_adapter", self.unload_adapter),
        ]

    async def health(self, _: web.Request) -> web.Response:
        """GET /health: 200 while the engine is healthy, else 503 with the reason."""
        problem = await self._engine.health_problem()
        if problem:
            body = {"status": "unhealthy", "service": "runtime", "reason": problem}
            return web.json_response(body, status=503)
        return web.json_response({"status": "healthy", "service": "runtime"})

    async def metrics(self, _: web.Request) -> web.Response:
        """GET the page: 502 without a page of the engine, 500 when it can't be read."""
        page = await self._engine.metrics_page()
        try:
            text = normalise(page, self._options.engine)
        except MalformedPageError as error:
            return _refusal(_malformed(str(error), self._options.metrics_url), 500)
        return web.Response(body=text.encode(), headers={"Content-Type": METRICS_CONTENT_TYPE})

    async def drain(self, _: web.Request) -> web.Response:
        """GET /drain: running and waiting requests, and whether there are none."""
        try:
            page = normalise(await self._engine.metrics_page(), self._options.engine)
        except (ProblemsError, MalformedPageError) as error:
            return web.json_response({"drained": True, "reason": str(error)})
        running = total(page, "kthena:num_requests_running")
        waiting = total(page, "kthena:num_requests_waiting")
        if running is None or waiting is None:
            reason = "the engine doesn't tell its requests"
            return web.json_response({"drained": True, "reason": reason})
        drained = running + waiting == 0
        return web.json_response({"running": running, "waiting": waiting, "drained": drained})

    async def load_adapter(self, request: web.Request) -> web.Response:
        """POST /v1/load_lora_adapter with `lora_name` and `lora_path` or `output_dir`."""
        body = await _object(request)
        name = _text(body, "lora_name")
        path = _text(body, "lora_path" if body.get("lora_path") else "output_dir")
        return await self._forward("load_lora_adapter", {"lora_name": name, "lora_path": path})

    async def unload_adapter(self, request: web.Request) -> web.Response:
        """POST /v1/unload_lora_adapter with `lora_name`."""
        body = await _object(request)
        _text(body, "lora_name")
        return await self._forward("unload_lora_adapter", body)

    async def _forward(self, action: str, body: dict[str, Any]) -> web.Response:
        prefix = _ADAPTER_PREFIX.get(self._options.engine)
        if prefix is None:
            return _refusal(_no_adapters(self._options.engine), 501)
        return _relay(await self._engine.post(f"{prefix}/{action}", body))


@web.middleware
async def problems_middleware(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Answers problems: 400 where the request is to blame, 502 where the engine gave no answer."""
    try:
        return await handler(request)
    except ProblemsError as error:
        unreachable = error.problems[0].code is ErrorCode.NOT_RUNNING
        return _refusal(error.problems[0], 502 if unreachable else 400)


def _relay(reply: Reply) -> web.Response:
    return web.Response(body=reply.body, status=reply.status, content_type=reply.content_type)


def _refusal(problem: Problem, status: int) -> web.Response:
    return web.json_response({"problems": [problem.to_dict()]}, status=status)


async def _object(request: web.Request) -> dict[str, Any]:
    try:
        body = json.loads(await request.read())
    except ValueError:
        body = None
    if not isinstance(body, dict):
        raise ProblemsError(
            Problem(
                code=ErrorCode.WRONG_TYPE,
                message="the body must be a JSON object",
                remedy='send {"lora_name": …, "lora_path": …}',
            )
        )
    return body


def _text(body: dict[str, Any], field: str) -> str:
    value = body.get(field)
    if not isinstance(value, str) or not value:
        raise ProblemsError(
            Problem(
                code=ErrorCode.MISSING_FIELD,
                message="the field must be a non-empty string",
                field=field,
                value=value,
                remedy="name the adapter, and the folder where its files are",
            )
        )
    return value


def _malformed(message: str, url: str) -> Problem:
    return Problem(
        code=ErrorCode.WRONG_TYPE,
        message=f"the engine's metrics page can't be read: {message}",
        field="--engine-metrics-path",
        value=url,
        remedy="point the path at the engine's page in the Prometheus text format",
    )


def _no_adapters(engine: Engine) -> Problem:
    return Problem(
        code=ErrorCode.UNSUPPORTED,
        message="this engine can't change adapters at run time",
        field="--engine",
        value=engine.value,
        remedy="use vLLM or SGLang, or give the adapters on the engine's command line",
    )
