"""What engines serve beside generation: health, metrics, models, tokens, LoRA adapters.

Invariant: an engine serves the paths that its real counterpart has, under the conditions that this
one has for them (SGLang and llama.cpp show metrics only when asked to; vLLM changes adapters at run
time only with `VLLM_ALLOW_RUNTIME_LORA_UPDATING`).
"""

from typing import Any

from aiohttp import web

from inferbus_engine_simulator.effects import EngineRunner
from inferbus_engine_simulator.exposition import CONTENT_TYPE
from inferbus_engine_simulator.faults import Disturber
from inferbus_engine_simulator.http_replies import json_reply, read_object
from inferbus_engine_simulator.policy_api_errors import ApiError, bad_request, not_found
from inferbus_engine_simulator.policy_api_requests import chat_tokens
from inferbus_engine_simulator.policy_engine_flags import Adapter, EngineKind
from inferbus_engine_simulator.policy_page_sglang import engine_type
from inferbus_engine_simulator.policy_tokens import MAX_TOKEN_ID, detokenize, tokenize

VERSIONS = {EngineKind.VLLM: "0.13.0", EngineKind.SGLANG: "0.5.7"}

_OWNERS = {EngineKind.VLLM: "vllm", EngineKind.SGLANG: "sglang", EngineKind.OLLAMA: "library"}


class EngineHandlers:
    """Handlers of one engine."""

    def __init__(
        self, runner: EngineRunner, disturber: Disturber, allow_adapter_updates: bool
    ) -> None:
        """`allow_adapter_updates`: whether adapters may be changed at run time."""
        self._runner = runner
        self._disturber = disturber
        self._allow_adapter_updates = allow_adapter_updates

    def routes(self) -> list[web.RouteDef]:
        """What this engine serves."""
        engine = self._runner.options.engine
        routes = [
            web.get("/health", self.health),
            web.get("/v1/models", self.models),
            web.get("/metrics", self.metrics),
            web.post("/tokenize", self.tokenize),
            web.post("/detokenize", self.detokenize),
        ]
        if engine is EngineKind.VLLM:
            routes += [
                web.get("/ping", self.health),
                web.get("/version", self.version),
                web.post("/v1/load_lora_adapter", self.load_adapter),
                web.post("/v1/unload_lora_adapter", self.unload_adapter),
            ]
        if engine is EngineKind.SGLANG:
            routes += [
                web.get("/health_generate", self.health),
                web.get("/get_model_info", self.model_info),
                web.get("/model_info", self.model_info),
                web.get("/get_server_info", self.server_info),
                web.get("/server_info", self.server_info),
                web.post("/flush_cache", self.flush_cache),
                web.post("/load_lora_adapter", self.load_adapter),
                web.post("/unload_lora_adapter", self.unload_adapter),
            ]
        return routes

    async def health(self, _: web.Request) -> web.StreamResponse:
        """GET /health: 200 when the engine serves."""
        fault = self._runner.faults.for_health()
        if fault is not None:
            return web.Response(status=fault.status)
        if self._runner.options.engine is EngineKind.LLAMACPP:
            return json_reply({"status": "ok"})
        return web.Response()

    async def version(self, _: web.Request) -> web.StreamResponse:
        """GET /version."""
        return json_reply({"version": VERSIONS[self._runner.options.engine]})

    async def metrics(self, request: web.Request) -> web.StreamResponse:
        """GET /metrics."""
        options = self._runner.options
        if not options.metrics_enabled:
            status = 501 if options.engine is EngineKind.LLAMACPP else 404
            raise ApiError(status, "NotFoundError", "this engine was started without metrics")
        page = await self._disturber.metrics_page(request, self._runner.metrics_page())
        return web.Response(body=page, headers={"Content-Type": CONTENT_TYPE})

    async def models(self, _: web.Request) -> web.StreamResponse:
        """GET /v1/models: the served names, then the adapters."""
        options = self._runner.options
        names = options.served_model_names
        data = [self._model(name, options.model, None) for name in names]
        data += [
            self._model(adapter.name, adapter.path, adapter.base_model or names[0])
            for adapter in self._runner.adapters.values()
        ]
        return json_reply({"object": "list", "data": data})

    async def tokenize(self, request: web.Request) -> web.StreamResponse:
        """POST /tokenize: of a prompt, a content (llama.cpp), or a conversation."""
        body = await read_object(request)
        if "messages" in body:
            tokens = list(chat_tokens(body["messages"]))
        else:
            text = body.get("content" if "content" in body else "prompt")
            if not isinstance(text, str):
                raise bad_request("prompt must be a string", "prompt")
            tokens = tokenize(text)
        if self._runner.options.engine is EngineKind.LLAMACPP:
            return json_reply({"tokens": tokens})
        return json_reply(
            {
                "count": len(tokens),
                "max_model_len": self._runner.size.max_model_len,
                "tokens": tokens,
                "token_strs": None,
            }
        )

    async def detokenize(self, request: web.Request) -> web.StreamResponse:
        """POST /detokenize."""
        tokens = (await read_object(request)).get("tokens")
        if not isinstance(tokens, list) or not all(
            type(token) is int and 0 <= token <= MAX_TOKEN_ID for token in tokens
        ):
            raise bad_request("tokens must be a list of token ids", "tokens")
        names = {EngineKind.SGLANG: "text", EngineKind.LLAMACPP: "content"}
        name = names.get(self._runner.options.engine, "prompt")
        return json_reply({name: detokenize(tokens)})

    async def load_adapter(self, request: web.Request) -> web.StreamResponse:
        """POST …/load_lora_adapter with `lora_name` and `lora_path`."""
        self._require_adapter_updates()
        body = await read_object(request)
        name, path = self._adapter_field(body, "lora_name"), self._adapter_field(body, "lora_path")
        runner = self._runner
        if name in runner.adapters and not body.get("load_inplace"):
            raise bad_request(f"the adapter {name!r} is loaded already", "lora_name")
        if name in runner.options.served_model_names:
            raise bad_request(f"{name!r} is the name of the model itself", "lora_name")
        runner.adapters[name] = Adapter(name, path)
        return self._adapter_reply(f"the adapter {name!r} is loaded")

    async def unload_adapter(self, request: web.Request) -> web.StreamResponse:
        """POST …/unload_lora_adapter with `lora_name`."""
        self._require_adapter_updates()
        name = self._adapter_field(await read_object(request), "lora_name")
        if self._runner.adapters.pop(name, None) is None:
            raise not_found(f"there is no adapter {name!r}", "lora_name")
        return self._adapter_reply(f"the adapter {name!r} is removed")

    async def model_info(self, _: web.Request) -> web.StreamResponse:
        """GET /model_info (SGLang)."""
        options = self._runner.options
        return json_reply(
            {
                "model_path": options.model,
                "tokenizer_path": options.model,
                "is_generation": True,
                "preferred_sampling_params": None,
                "weight_version": "default",
            }
        )

    async def server_info(self, _: web.Request) -> web.StreamResponse:
        """GET /server_info (SGLang)."""
        options, size = self._runner.options, self._runner.size
        return json_reply(
            {
                "model_path": options.model,
                "served_model_name": options.served_model_names[0],
                "port": options.port,
                "tp_size": options.tensor_parallel_size,
                "page_size": options.block_size,
                "context_length": size.max_model_len,
                "disaggregation_mode": options.kv_role or "null",
                "engine_type": engine_type(options),
                "max_total_num_tokens": size.limits.blocks * size.limits.block_size_tokens,
                "max_running_requests": size.limits.max_num_seqs,
                "version": VERSIONS[options.engine],
            }
        )

    async def flush_cache(self, _: web.Request) -> web.StreamResponse:
        """POST /flush_cache (SGLang)."""
        self._runner.forget_cache()
        return web.Response(text="the prefix cache is empty\n")

    def _model(self, name: str, root: str, parent: str | None) -> dict[str, Any]:
        engine = self._runner.options.engine
        return {
            "id": name,
            "object": "model",
            "created": self._runner.started_ms // 1000,
            "owned_by": _OWNERS.get(engine, engine.value),
            "root": root,
            "parent": parent,
            "max_model_len": self._runner.size.max_model_len,
        }

    def _require_adapter_updates(self) -> None:
        if not self._runner.options.lora_enabled:
            raise bad_request("the engine was started without --enable-lora")
        if not self._allow_adapter_updates:
            raise not_found(
                "adapters can't be changed at run time; start the engine with the variable "
                "VLLM_ALLOW_RUNTIME_LORA_UPDATING=true"
            )

    def _adapter_field(self, body: dict[str, Any], name: str) -> str:
        value = body.get(name)
        if not isinstance(value, str) or not value:
            raise bad_request(f"{name} must be a non-empty string", name)
        return value

    def _adapter_reply(self, message: str) -> web.StreamResponse:
        if self._runner.options.engine is EngineKind.VLLM:
            return web.Response(text=message)
        loaded = {adapter.name: adapter.path for adapter in self._runner.adapters.values()}
        return json_reply({"success": True, "error_message": "", "loaded_adapters": loaded})
