"""The OpenAI endpoints: chat completions, completions, embeddings.

Invariant: however a handler ends, its sequences leave the engine.
"""

import base64
import struct
from typing import Any

from aiohttp import web

from inferbus_engine_simulator.effects import EngineRunner, Inbox
from inferbus_engine_simulator.faults import GARBAGE, Disturber
from inferbus_engine_simulator.handover import Handover
from inferbus_engine_simulator.http_replies import json_reply, read_json, read_object
from inferbus_engine_simulator.policy_api_errors import bad_request, not_found
from inferbus_engine_simulator.policy_api_requests import (
    Call,
    parse_chat,
    parse_completion,
    text_or_tokens,
)
from inferbus_engine_simulator.policy_api_responses import (
    DONE,
    Answer,
    StreamWriter,
    embedding,
    usage,
    whole_body,
)
from inferbus_engine_simulator.policy_engine_flags import EngineKind
from inferbus_engine_simulator.policy_events import Request
from inferbus_engine_simulator.policy_faults import Fault
from inferbus_engine_simulator.policy_rooms import Side
from inferbus_engine_simulator.policy_tokens import detokenize, output_text, prompt_seed

_STRICT = (EngineKind.VLLM, EngineKind.SGLANG)
"""Engines that refuse a model name they don't serve; the others serve their one model."""
_EMBEDDING_DIMENSIONS = 64


class OpenAiHandlers:
    """Handlers of one engine."""

    def __init__(
        self, runner: EngineRunner, disturber: Disturber, handover: Handover, address: str
    ) -> None:
        """`address` is where other engines reach this one."""
        self._runner = runner
        self._disturber = disturber
        self._handover = handover
        self._address = address

    def routes(self) -> list[web.RouteDef]:
        """What they serve."""
        return [
            web.post("/v1/chat/completions", self.chat),
            web.post("/v1/completions", self.completions),
            web.post("/v1/embeddings", self.embeddings),
        ]

    async def chat(self, request: web.Request) -> web.StreamResponse:
        """POST /v1/chat/completions."""
        runner = self._runner
        call = parse_chat(await read_json(request), runner.size.max_model_len, runner.seed)
        return await self._generate(request, call, chat=True)

    async def completions(self, request: web.Request) -> web.StreamResponse:
        """POST /v1/completions."""
        runner = self._runner
        call = parse_completion(await read_json(request), runner.size.max_model_len, runner.seed)
        return await self._generate(request, call, chat=False)

    async def embeddings(self, request: web.Request) -> web.StreamResponse:
        """POST /v1/embeddings."""
        body = await read_object(request)
        prompts = text_or_tokens(body.get("input"), "input")
        longest = max(map(len, prompts))
        if longest > self._runner.size.max_model_len:
            raise bad_request(f"an input of {longest} tokens doesn't fit the context", "input")
        adapter = self._adapter(str(body.get("model") or ""))
        fault = await self._disturber.before()
        if fault is not None:
            return await self._garbage(request, fault)
        call_id = f"embd-{self._runner.next_id()}"
        requests = [
            Request(f"{call_id}-{index}", prompt, 0, adapter=adapter)
            for index, prompt in enumerate(prompts)
        ]
        inbox = self._runner.submit(requests)
        try:
            await inbox.wait()
        finally:
            self._runner.abort(inbox)
        return json_reply(self._embedding_body(call_id, body, prompts))

    async def _generate(
        self, request: web.Request, call: Call, *, chat: bool
    ) -> web.StreamResponse:
        adapter = self._adapter(call.model)
        fault = await self._disturber.before()
        if fault is not None and not call.stream:
            return await self._garbage(request, fault)
        answer = Answer(
            answer_id=f"{'chatcmpl' if chat else 'cmpl'}-{self._runner.next_id()}",
            model=call.model or self._runner.options.served_model_names[0],
            created_seconds=self._runner.now_ms // 1000,
            chat=chat,
        )
        self._runner.statistics.note_parameters(call.n, call.max_tokens)
        async with self._handover.of(call):
            inbox = self._runner.submit(self._requests(call, answer.answer_id, adapter))
            try:
                if call.stream:
                    return await self._stream(request, call, inbox, answer, fault)
                return await self._whole(call, inbox, answer)
            finally:
                self._runner.abort(inbox)

    def _requests(self, call: Call, call_id: str, adapter: str) -> list[Request]:
        options, transfer = self._runner.options, self._runner.size.transfer
        in_room = options.meets_in_rooms and options.kv_role == Side.DECODE
        prefilled = in_room or (options.takes_over and call.names_blocks)
        return [
            Request(
                request_id=f"{call_id}-{index}",
                prompt=output.prompt,
                output_tokens=output.tokens,
                finish_reason=output.reason,
                output_seed=output.seed,
                adapter=adapter,
                transferred_tokens=len(output.prompt) if prefilled else 0,
                transfer_us=transfer.transfer_us(len(output.prompt)) if prefilled else 0,
                streaming=call.stream,
            )
            for index, output in enumerate(call.outputs)
        ]

    async def _garbage(self, request: web.Request, fault: Fault) -> web.StreamResponse:
        await self._disturber.strike(request, fault)
        return web.Response(body=GARBAGE, content_type="application/json")

    async def _whole(self, call: Call, inbox: Inbox, answer: Answer) -> web.StreamResponse:
        lives = await inbox.wait()
        texts = [
            (detokenize(output.prompt) if call.echo else "")
            + output_text(output.seed, life.output_tokens)
            for output, life in zip(call.outputs, lives, strict=True)
        ]
        body = whole_body(answer, texts, lives, sum(map(len, call.prompts)))
        if call.asks_for_prefill and self._runner.options.hands_over:
            body["kv_transfer_params"] = self._transfer(call, answer.answer_id)
        return json_reply(body)

    async def _stream(
        self, request: web.Request, call: Call, inbox: Inbox, answer: Answer, fault: Fault | None
    ) -> web.StreamResponse:
        response = web.StreamResponse(
            headers={
                "Content-Type": "text/event-stream; charset=utf-8",
                "Cache-Control": "no-cache",
            }
        )
        await response.prepare(request)
        writer = StreamWriter(answer, len(call.outputs))
        sent = [0] * len(call.outputs)
        chunks = writer.head()
        if call.echo:
            for choice, output in enumerate(call.outputs):
                chunks += writer.text(choice, detokenize(output.prompt))
        while not inbox.complete:
            for choice, tokens, life in await inbox.take():
                seed = call.outputs[choice].seed
                cut = None if fault is None else fault.cut(sum(sent), tokens)
                if fault is not None and cut is not None:
                    await response.write(chunks + writer.tokens(choice, seed, sent[choice], cut))
                    await self._disturber.strike(request, fault)
                    await response.write(b"data: " + GARBAGE + b"\n\n")
                    return response
                chunks += writer.tokens(choice, seed, sent[choice], tokens)
                sent[choice] += tokens
                if life is not None:
                    chunks += writer.end(choice, life.reason)
            await response.write(chunks)
            chunks = b""
        if call.include_usage:
            lives = list(inbox.lives.values())
            chunks = writer.usage(usage(sum(map(len, call.prompts)), lives))
        await response.write(chunks + DONE)
        return response

    def _adapter(self, model: str) -> str:
        """The adapter that a model name stands for; empty for the model itself."""
        if model in self._runner.adapters:
            return model
        names = self._runner.options.served_model_names
        if model and model not in names and self._runner.options.engine in _STRICT:
            served = ", ".join((*names, *self._runner.adapters))
            raise not_found(f"there is no model {model!r} here, only {served}", "model")
        return ""

    def _transfer(self, call: Call, answer_id: str) -> dict[str, Any]:
        """Where the KV blocks of a prefill wait for the decoding engine (NIXL, Mooncake)."""
        limits = self._runner.size.limits
        blocks = -(-len(call.outputs[0].prompt) // limits.block_size_tokens)
        return {
            "do_remote_prefill": True,
            "do_remote_decode": False,
            "remote_block_ids": list(range(blocks)),
            "remote_engine_id": f"{self._address}-{self._runner.started_ms:x}",
            "remote_request_id": answer_id,
            "remote_host": self._address,
            "remote_port": 5600,
            "tp_size": self._runner.options.tensor_parallel_size,
        }

    def _embedding_body(
        self, call_id: str, body: dict[str, Any], prompts: list[tuple[int, ...]]
    ) -> dict[str, Any]:
        dimensions = body.get("dimensions") or _EMBEDDING_DIMENSIONS
        if not isinstance(dimensions, int) or not 1 <= dimensions <= 8192:
            raise bad_request("dimensions must be a whole number, from 1 to 8192", "dimensions")
        vectors = [embedding(p, prompt_seed(p, self._runner.seed), dimensions) for p in prompts]
        packed = body.get("encoding_format") == "base64"
        tokens = sum(map(len, prompts))
        return {
            "id": call_id,
            "object": "list",
            "created": self._runner.now_ms // 1000,
            "model": body.get("model") or self._runner.options.served_model_names[0],
            "data": [
                {"index": index, "object": "embedding", "embedding": _base64(v) if packed else v}
                for index, v in enumerate(vectors)
            ],
            "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
        }


def _base64(vector: list[float]) -> str:
    return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()
