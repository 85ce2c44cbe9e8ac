"""Learns from the reference's Redis what engines hold, beside what they were sent.

The reference asks a tokenizer and Redis while each request waits, which adds 50 to 100 ms before
its first token (its defect 9). Here the question is asked behind a request whose beginning is new,
and the answer is there for the next one. Invariant: no request waits for anything here; at most
`MOST_RUNNING` questions are under way, and none while Redis was silent lately.
"""

import asyncio
from collections.abc import Sequence
from time import perf_counter
from typing import Protocol

import orjson

from inferbus_router.endpoint import Endpoint
from inferbus_router.fleet import ServerState
from inferbus_router.own_request import OwnRequestError, ask
from inferbus_router.policy_block_owners import leading_runs
from inferbus_router.policy_kv_blocks import (
    block_key,
    fresh_owners,
    token_block_hashes,
    tokenize_body,
)
from inferbus_router.policy_plugins import PluginRequest
from inferbus_router.policy_plugins_cache import PrefixOwners
from inferbus_router.scheduling_counts import SchedulingCounts

MOST_RUNNING = 4
TIMEOUT_SECONDS = 5.0
PAUSE_SECONDS = 5.0
"""After Redis was silent."""
_MOST_ANSWER_BYTES = 8 << 20
_TOKENIZE = b"POST /tokenize HTTP/1.1\r\ncontent-type: application/json"


class StoreError(Exception):
    """Redis doesn't answer; the message says why."""


class BlockStore(Protocol):
    """Where sidecars write who holds a block."""

    async def owners(self, keys: Sequence[str]) -> list[dict[str, str]]:
        """What stands under each key: `pod.namespace` to Unix seconds; raises `StoreError`."""
        ...

    async def close(self) -> None:
        """It isn't asked any more."""
        ...


class KvLearning:
    """Fills the memory of one kvcache-aware plugin."""

    def __init__(
        self,
        cache: PrefixOwners,
        store: BlockStore,
        counts: SchedulingCounts,
        block_tokens: int,
        most_blocks: int,
    ) -> None:
        self._cache = cache
        self._store = store
        self._counts = counts
        self._block_tokens = block_tokens
        self._most_blocks = most_blocks
        self._restarted: dict[Endpoint, float] = {}
        """When endpoints were seen to be not ready last, Unix seconds."""
        self._running: set[asyncio.Task[None]] = set()
        self._resumes_at = 0.0

    def restarted(self, endpoint: Endpoint, now_seconds: float) -> None:
        """What was written about the endpoint up to now (Unix seconds) holds no more."""
        self._restarted[endpoint] = now_seconds

    def forget(self, endpoint: Endpoint) -> None:
        """The endpoint is gone."""
        self._restarted.pop(endpoint, None)

    def served(
        self, request: PluginRequest, endpoint: Endpoint, state: ServerState[Endpoint]
    ) -> None:
        """An endpoint has answered; find out who else could have answered from its cache."""
        loop = asyncio.get_running_loop()
        if len(self._running) >= MOST_RUNNING or loop.time() < self._resumes_at:
            return
        hashes = self._cache.hashes(request)
        known = self._cache.owners.leading_runs(request.model, hashes, {endpoint})
        if known.get(endpoint, 0) == len(hashes):
            return
        task = loop.create_task(self._learn(request, endpoint, state, hashes))
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def stop(self) -> None:
        """Learn nothing more."""
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)
        await self._store.close()

    async def _learn(
        self,
        request: PluginRequest,
        endpoint: Endpoint,
        state: ServerState[Endpoint],
        hashes: Sequence[int],
    ) -> None:
        model = request.model
        try:
            tokens = await self._tokens(endpoint, request)
            blocks = token_block_hashes(tokens, self._block_tokens, self._most_blocks)
            began = perf_counter()
            written = await self._store.owners([block_key(model, block) for block in blocks])
            self._counts.kv_took("redis", model, perf_counter() - began)
        except OwnRequestError:
            self._counts.kv_failed("tokenize", model)
            return
        except StoreError:
            self._counts.kv_failed("redis", model)
            self._resumes_at = asyncio.get_running_loop().time() + PAUSE_SECONDS
            return
        pods = {f"{each.pod}.{state.server.key.namespace}": each for each in state.candidates}
        started = {pod: self._restarted.get(each, 0.0) for pod, each in pods.items()}
        owners = [set(fresh_owners(each, started)) for each in written]
        for pod, run in leading_runs(owners, pods).items():
            holder = pods[str(pod)]
            if not holder.is_retired:
                held = len(hashes) * run // len(blocks)
                self._cache.owners.add(model, hashes[:held], holder)

    async def _tokens(self, endpoint: Endpoint, request: PluginRequest) -> list[int]:
        """The ids of the prompt's tokens; raises `OwnRequestError`."""
        prompt = request.document.get("prompt")
        if isinstance(prompt, list) and all(type(token) is int for token in prompt):
            return _checked(prompt)
        body = tokenize_body(request.model, request.document)
        if body is None:
            raise OwnRequestError("there is no tokenizer for such a body")
        began = perf_counter()
        answer = await ask(
            endpoint, _TOKENIZE, orjson.dumps(body), TIMEOUT_SECONDS, _MOST_ANSWER_BYTES
        )
        self._counts.kv_took("tokenize", request.model, perf_counter() - began)
        try:
            return _checked(orjson.loads(answer)["tokens"])
        except (orjson.JSONDecodeError, KeyError, TypeError):
            raise OwnRequestError("the answer holds no tokens") from None


def _checked(tokens: object) -> list[int]:
    if isinstance(tokens, list) and all(
        type(token) is int and 0 <= token < 1 << 32 for token in tokens
    ):
        return tokens
    raise OwnRequestError("these are no token ids")
