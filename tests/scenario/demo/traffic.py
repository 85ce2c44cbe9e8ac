"""Plays a trace through the router: every request at its time, streamed as clients do it.

Invariant: requests go out when the trace says, however slow the answers are (an open loop); each
is told twice, when it is sent and when it ends.
"""

import asyncio
import json
import time
from collections.abc import Mapping, Sequence

import aiohttp

from tests.scenario.demo.measured import Answer, Measured
from tests.scenario.demo.trace import TracedRequest

ANSWER_SECONDS = 120.0
"""Real time; a request that takes longer is given up."""
BYTES_PER_TOKEN = 4
"""What a simulated engine takes for a token."""

_TEXT = "return the value of "
_DONE = b"data: [DONE]"
_HEADERS = {"content-type": "application/json"}


def prompt(index: int, tokens: int) -> str:
    """A text of that many tokens; no two begin alike, so no engine answers from its cache."""
    size = tokens * BYTES_PER_TOKEN
    head = f"{index} "
    return (head + _TEXT * (size // len(_TEXT) + 1))[:size]


class Traffic:
    """The requests to all models, each model in its turn."""

    def __init__(self, router: str, models: Sequence[str], clock_rate: float) -> None:
        self.measured: Mapping[str, Measured] = {model: Measured() for model in models}
        self.latest_ms = 0.0
        """How late the latest request went out, fleet's time: what this machine could not keep."""
        self._url = f"{router}/v1/completions"
        self._models = models
        self._rate = clock_rate
        self._began = time.monotonic()

    def begin(self) -> None:
        """From now on time counts."""
        self._began = time.monotonic()

    @property
    def now_ms(self) -> float:
        """The fleet's time since the beginning."""
        return (time.monotonic() - self._began) * 1000 * self._rate

    async def play(self, requests: Sequence[TracedRequest]) -> None:
        """Send all of them, and wait for their answers."""
        connector = aiohttp.TCPConnector(limit=0)
        timeout = aiohttp.ClientTimeout(total=ANSWER_SECONDS)
        async with (
            aiohttp.ClientSession(connector=connector, timeout=timeout) as session,
            asyncio.TaskGroup() as under_way,
        ):
            for index, request in enumerate(requests):
                await asyncio.sleep(max(0.0, request.at_ms - self.now_ms) / 1000 / self._rate)
                self.latest_ms = max(self.latest_ms, self.now_ms - request.at_ms)
                under_way.create_task(self._ask(session, index, request))

    async def _ask(
        self, session: aiohttp.ClientSession, index: int, request: TracedRequest
    ) -> None:
        model = self._models[index % len(self._models)]
        body = {
            "model": model,
            "prompt": prompt(index, request.prompt_tokens),
            "max_tokens": request.output_tokens,
            "ignore_eos": True,
            "stream": True,
        }
        measured = self.measured[model]
        sent_ms = self.now_ms
        measured.send(sent_ms)
        first_ms: float | None = None
        last = b""
        error = ""
        try:
            async with session.post(
                self._url, data=json.dumps(body).encode(), headers=_HEADERS
            ) as answer:
                async for piece in answer.content.iter_any():
                    if first_ms is None and answer.status == 200:
                        first_ms = self.now_ms - sent_ms
                    last = (last + piece)[-len(_DONE) - 4 :]
                if answer.status != 200:
                    error = f"status {answer.status}"
                elif _DONE not in last:
                    error = "cut off"
        except (aiohttp.ClientError, TimeoutError) as failure:
            error = type(failure).__name__
        total_ms = self.now_ms - sent_ms
        measured.answer(
            Answer(sent_ms=sent_ms, first_token_ms=first_ms, total_ms=total_ms, error=error)
        )
