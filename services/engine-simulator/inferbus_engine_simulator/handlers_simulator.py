"""What no real engine has: setting faults, and looking inside.

Invariant: only clients on this machine are served.
"""

import ipaddress

from aiohttp import web

from inferbus_contracts.errors import ProblemsError
from inferbus_engine_simulator.effects import EngineRunner
from inferbus_engine_simulator.http_replies import json_reply, read_json
from inferbus_engine_simulator.policy_faults import parse_faults


class SimulatorHandlers:
    """Handlers of one engine."""

    def __init__(self, runner: EngineRunner) -> None:
        self._runner = runner

    def routes(self) -> list[web.RouteDef]:
        """What they serve."""
        return [
            web.get("/simulator/state", self.state),
            web.get("/simulator/faults", self.list_faults),
            web.post("/simulator/faults", self.add_faults),
            web.delete("/simulator/faults", self.clear_faults),
        ]

    async def state(self, request: web.Request) -> web.StreamResponse:
        """GET /simulator/state: the model's state, virtual times in milliseconds."""
        _require_loopback(request)
        view = self._runner.view()
        statistics = view.statistics
        return json_reply(
            {
                "engine": view.options.engine.value,
                "model": view.options.model,
                "served_model_names": list(view.options.served_model_names),
                "adapters": list(view.adapters),
                "kv_role": view.options.kv_role,
                "ready": self._runner.ready,
                "now_ms": self._runner.now_ms,
                "started_ms": self._runner.started_ms,
                "startup_ms": view.size.startup_ms,
                "max_model_len": view.size.max_model_len,
                "max_num_seqs": view.size.limits.max_num_seqs,
                "blocks": view.size.limits.blocks,
                "block_size_tokens": view.size.limits.block_size_tokens,
                "used_blocks": view.used_blocks,
                "idle_cached_blocks": view.idle_blocks,
                "running": len(view.running),
                "waiting": len(view.waiting),
                "finished": {str(reason): n for reason, n in statistics.finished.items()},
                "preemptions": statistics.preemptions,
                "prompt_tokens": statistics.prompt_tokens.total(),
                "generation_tokens": statistics.generation_tokens.total(),
                "cache_queried_tokens": statistics.cache_queried_tokens,
                "cache_hit_tokens": statistics.cache_hit_tokens,
                "transferred_tokens": statistics.transferred_tokens,
                "ignored_flags": [flag.flag for flag in view.options.ignored],
                "faults": self._faults(),
            }
        )

    async def list_faults(self, request: web.Request) -> web.StreamResponse:
        """GET /simulator/faults: those that can still happen."""
        _require_loopback(request)
        return json_reply(self._faults())

    async def add_faults(self, request: web.Request) -> web.StreamResponse:
        """POST /simulator/faults: one fault, or a list."""
        _require_loopback(request)
        try:
            self._runner.faults.add(parse_faults(await read_json(request), "faults"))
        except ProblemsError as error:
            problems = [problem.to_dict() for problem in error.problems]
            return json_reply({"problems": problems}, status=400)
        self._runner.apply_faults()
        return json_reply(self._faults())

    async def clear_faults(self, request: web.Request) -> web.StreamResponse:
        """DELETE /simulator/faults."""
        _require_loopback(request)
        self._runner.faults.clear()
        self._runner.apply_faults()
        return json_reply([])

    def _faults(self) -> list[dict[str, object]]:
        return [fault.model_dump(mode="json") for fault in self._runner.faults.faults]


def _require_loopback(request: web.Request) -> None:
    try:
        local = ipaddress.ip_address(request.remote or "").is_loopback
    except ValueError:
        local = False
    if not local:
        raise web.HTTPForbidden(text="only for clients on this machine")
