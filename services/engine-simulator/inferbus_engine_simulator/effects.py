"""The engine model in real time: one timer, set for the model's next event.

Invariant: while no request is in the engine, no timer is set and nothing runs; what a request's
inbox receives is what the model emitted, in order, and exactly one `Finished` ends it.
"""

import asyncio
import itertools
from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

from inferbus_engine_simulator.core import Engine
from inferbus_engine_simulator.exposition import families, histogram_bounds, render
from inferbus_engine_simulator.policy_command_line import ServerOptions
from inferbus_engine_simulator.policy_engine_flags import Adapter
from inferbus_engine_simulator.policy_events import Emitted, Event, Finished, Request, Timeline
from inferbus_engine_simulator.policy_faults import FaultPlan
from inferbus_engine_simulator.policy_pages import PageView
from inferbus_engine_simulator.policy_sizing import EngineSize
from inferbus_engine_simulator.policy_statistics import Statistics
from inferbus_shared.clock import Clock


class Progress(NamedTuple):
    """What happened to one sequence of a call since the call was last asked."""

    choice: int
    tokens: int
    life: Timeline | None
    """Set once it is finished."""


class Inbox:
    """The sequences of one call, and what they have produced."""

    def __init__(self, request_ids: Sequence[str]) -> None:
        self.request_ids = tuple(request_ids)
        self.lives: dict[int, Timeline] = {}
        """Of the finished sequences, by choice."""
        self._news: deque[Progress] = deque()
        self._waiter: asyncio.Future[None] | None = None

    @property
    def complete(self) -> bool:
        """Whether every sequence is finished and was taken."""
        return len(self.lives) == len(self.request_ids) and not self._news

    def put(self, progress: Progress) -> None:
        """Add news; tokens of the same sequence are put together."""
        if self._news and self._news[-1].choice == progress.choice:
            last = self._news.pop()
            progress = progress._replace(tokens=progress.tokens + last.tokens)
        self._news.append(progress)
        if progress.life is not None:
            self.lives[progress.choice] = progress.life
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def take(self) -> list[Progress]:
        """The news since the last call; waits for some. Not for two readers at once."""
        if not self._news:
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
            self._waiter = None
        news = list(self._news)
        self._news.clear()
        return news

    async def wait(self) -> list[Timeline]:
        """The lives of all sequences, once they are finished."""
        while not self.complete:
            await self.take()
        return [self.lives[choice] for choice in range(len(self.request_ids))]


class EngineRunner:
    """Everything one simulated engine is: the model, its statistics, its adapters, its faults."""

    def __init__(
        self, options: ServerOptions, size: EngineSize, clock: Clock, faults: FaultPlan, seed: int
    ) -> None:
        self.options = options
        self.size = size
        self.faults = faults
        self.seed = seed
        self.started_ms = clock.now_ms()
        self.adapters: dict[str, Adapter] = {each.name: each for each in options.adapters}
        self.statistics = Statistics(histogram_bounds(options, size.max_model_len))
        self._clock = clock
        self._engine = Engine(size.limits, size.timing, self.started_ms, size.startup_ms)
        self._engine.slowdown = faults.slowdown
        self._inboxes: dict[str, tuple[Inbox, int]] = {}
        self._numbers = itertools.count()
        self._timer: asyncio.TimerHandle | None = None

    @property
    def now_ms(self) -> int:
        """Virtual time."""
        return self._clock.now_ms()

    @property
    def ready(self) -> bool:
        """Whether the start-up is over."""
        return self.now_ms >= self._engine.ready_ms

    @property
    def busy(self) -> bool:
        """Whether a request is in the engine."""
        return bool(self._inboxes)

    async def until_ready(self) -> None:
        """Wait for the end of the start-up."""
        while (left_ms := self._engine.ready_ms - self.now_ms) > 0:
            await self._clock.sleep(left_ms / 1000)

    async def sleep_ms(self, duration_ms: int) -> None:
        """Wait for virtual milliseconds."""
        await self._clock.sleep(duration_ms / 1000)

    def real_seconds(self, duration_ms: int) -> float:
        """What virtual milliseconds take."""
        return duration_ms / 1000 / self._clock.anchor.rate

    def next_id(self) -> str:
        """A number that no other call of this engine has, as text."""
        return f"{self.started_ms:x}{next(self._numbers):08x}"

    def submit(self, requests: Sequence[Request]) -> Inbox:
        """Give the sequences of one call to the engine."""
        inbox = Inbox([request.request_id for request in requests])
        now_ms = self.now_ms
        for choice, request in enumerate(requests):
            self._inboxes[request.request_id] = (inbox, choice)
            self._engine.submit(request, now_ms)
        self._run()
        return inbox

    def abort(self, inbox: Inbox) -> None:
        """End what is left of a call."""
        now_ms = self.now_ms
        for request_id in inbox.request_ids:
            if self._inboxes.pop(request_id, None) is not None:
                self._engine.abort(request_id, now_ms)
        self._run()

    def apply_faults(self) -> None:
        """Take over what the faults say about the engine's speed."""
        self._run()
        self._engine.slowdown = self.faults.slowdown

    def view(self) -> PageView:
        """The engine as it is now."""
        self._run()
        engine = self._engine
        return PageView(
            options=self.options,
            size=self.size,
            statistics=self.statistics,
            running=engine.running,
            waiting=engine.waiting,
            used_blocks=engine.blocks.used,
            idle_blocks=engine.blocks.idle,
            context_tokens=engine.context_tokens,
            adapters=tuple(self.adapters),
            now_seconds=self.now_ms / 1000,
        )

    def metrics_page(self) -> bytes:
        """The engine's own metrics page."""
        return render(families(self.view()))

    def forget_cache(self) -> None:
        """Drop the cached prefixes that no request uses."""
        self._engine.blocks.forget()

    def stop(self) -> None:
        """Set no timer any more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _run(self) -> None:
        self.stop()
        events = self._engine.advance(self.now_ms)
        self.statistics.record(events)
        for event in events:
            self._deliver(event)
        next_ms = self._engine.next_event_ms()
        if next_ms is not None:
            real_seconds = max(0, next_ms - self.now_ms) / 1000 / self._clock.anchor.rate
            self._timer = asyncio.get_running_loop().call_later(real_seconds, self._run)

    def _deliver(self, event: Event) -> None:
        if isinstance(event, Emitted):
            found = self._inboxes.get(event.request_id)
            if found is not None:
                found[0].put(Progress(found[1], 1, None))
        elif isinstance(event, Finished):
            found = self._inboxes.pop(event.request_id, None)
            if found is not None:
                found[0].put(Progress(found[1], 0, event.timeline))
