"""A serving engine as a discrete-event model: continuous batching over a paged KV cache.

Requests wait first in, first out. Each step computes one batch within a token budget: first the
running requests (one token when decoding, a chunk when their prompt is not yet computed), then new
ones while sequence slots and blocks last. When blocks run out, the request admitted last loses its
blocks and is computed again from the front of the queue (vLLM V1's scheduler; Sarathi-Serve, OSDI
2024, for chunked prefill).

Invariant: the events depend on the submitted requests and their times alone, never on how often
`advance` is called; no clock and no randomness are read.
"""

from collections import deque
from typing import NamedTuple

from inferbus_engine_simulator.policy_arrivals import Arrivals
from inferbus_engine_simulator.policy_blocks import BlockPool
from inferbus_engine_simulator.policy_events import (
    Aborted,
    Admitted,
    Emitted,
    Event,
    Finished,
    Preempted,
    Request,
    Stepped,
)
from inferbus_engine_simulator.policy_limits import EngineLimits
from inferbus_engine_simulator.policy_sequence import Sequence
from inferbus_engine_simulator.policy_timing import StepTiming

_US_PER_MS = 1000


class _Step(NamedTuple):
    ends_us: int
    duration_us: int
    work: list[tuple[Sequence, int]]
    """Who is computed, and how many tokens of it."""


class Engine:
    """The model; times go in as whole milliseconds that never decrease."""

    def __init__(
        self, limits: EngineLimits, timing: StepTiming, start_ms: int, startup_ms: int = 0
    ) -> None:
        """An engine that is started at `start_ms` and computes from `startup_ms` later on."""
        self.limits = limits
        self.blocks = BlockPool(limits.blocks, limits.prefix_caching)
        self.slowdown = 1.0
        """Multiplies the duration of the steps that begin from now on."""
        self.ready_ms = start_ms + startup_ms
        self._timing = timing
        self._now_us = start_ms * _US_PER_MS
        self._arriving = Arrivals()
        self._waiting: deque[Sequence] = deque()
        self._running: list[Sequence] = []
        self._sequences: dict[str, Sequence] = {}
        self._step: _Step | None = None
        self._events: list[Event] = []

    @property
    def running(self) -> list[Request]:
        """Requests that hold blocks, in the order of their admission."""
        return [sequence.request for sequence in self._running]

    @property
    def waiting(self) -> list[Request]:
        """Requests in the queue, the next to be admitted first, then those whose blocks come."""
        return [one.request for one in (*self._waiting, *self._arriving.sequences)]

    @property
    def context_tokens(self) -> int:
        """Tokens in the KV cache that running requests hold."""
        return sum(sequence.computed for sequence in self._running)

    @property
    def capacity_tokens(self) -> int:
        """The longest request that fits, prompt and output together."""
        return self.limits.blocks * self.limits.block_size_tokens

    def submit(self, request: Request, now_ms: int) -> None:
        """Queue a request.

        Raises ValueError for an id that is in use, an empty prompt, or a request that could never
        fit into the cache.
        """
        if request.request_id in self._sequences:
            raise ValueError(f"request {request.request_id!r} is already in the engine")
        if not request.prompt:
            raise ValueError("a request needs at least one prompt token")
        if len(request.prompt) + request.output_tokens > self.capacity_tokens:
            raise ValueError(f"the request is longer than the cache ({self.capacity_tokens})")
        self._run_until(now_ms * _US_PER_MS)
        sequence = Sequence(request, max(self._now_us, now_ms * _US_PER_MS))
        self._sequences[request.request_id] = sequence
        self._arriving.add(sequence)
        self._run_until(now_ms * _US_PER_MS)

    def abort(self, request_id: str, now_ms: int) -> bool:
        """End a request now; False when it isn't in the engine (any more)."""
        self._run_until(now_ms * _US_PER_MS)
        sequence = self._sequences.pop(request_id, None)
        if sequence is None:
            return False
        if sequence in self._running:
            self._running.remove(sequence)
            self._release(sequence)
        elif not self._arriving.remove(sequence):
            self._waiting.remove(sequence)
        self._events.append(Aborted(request_id, max(self._now_us, now_ms * _US_PER_MS)))
        return True

    def next_event_ms(self) -> int | None:
        """The first millisecond at which `advance` has something to do; None while idle."""
        next_us = self._begins_us() if self._step is None else self._step.ends_us
        return None if next_us is None else -(-next_us // _US_PER_MS)

    def advance(self, now_ms: int) -> list[Event]:
        """Everything that happened since the last call, up to and including `now_ms`."""
        self._run_until(now_ms * _US_PER_MS)
        events, self._events = self._events, []
        return events

    def _begins_us(self) -> int | None:
        """When the next step begins; None while there is nothing to compute."""
        now_us = max(self._now_us, self.ready_ms * _US_PER_MS)
        if self._waiting or self._running:
            return now_us
        arrives_us = self._arriving.next_us
        return None if arrives_us is None else max(now_us, arrives_us)

    def _run_until(self, until_us: int) -> None:
        while True:
            if self._step is None:
                begins_us = self._begins_us()
                if begins_us is None or begins_us > until_us:
                    self._now_us = max(self._now_us, until_us)
                    return
                self._begin_step(begins_us)
            elif self._step.ends_us <= until_us:
                self._end_step(self._step)
            else:
                return

    def _begin_step(self, now_us: int) -> None:
        self._now_us = now_us
        self._waiting.extend(self._arriving.take(now_us))
        running = len(self._running)
        work = self._schedule_running(now_us)
        # Whoever was preempted would otherwise take back the blocks it has just given up.
        if len(self._running) == running:
            budget = self.limits.max_num_batched_tokens - sum(tokens for _, tokens in work)
            work += self._admit(budget, now_us)
        tokens = sum(count for _, count in work)
        context = sum(sequence.computed for sequence, _ in work)
        duration = self._timing.step_us(tokens, context, self.slowdown)
        self._step = _Step(now_us + duration, duration, work)

    def _schedule_running(self, now_us: int) -> list[tuple[Sequence, int]]:
        budget = self.limits.max_num_batched_tokens
        work: list[tuple[Sequence, int]] = []
        position = 0
        while position < len(self._running) and budget:
            sequence = self._running[position]
            tokens = min(sequence.length - sequence.computed, budget)
            if not self._make_room(sequence, tokens, now_us):
                break
            work.append((sequence, tokens))
            budget -= tokens
            position += 1
        return work

    def _make_room(self, sequence: Sequence, tokens: int, now_us: int) -> bool:
        """Blocks for `tokens` more of a running request; False when it was preempted itself."""
        while not self._reserve(sequence, sequence.computed + tokens):
            victim = self._running.pop()
            self._release(victim)
            self._waiting.appendleft(victim)
            self._events.append(Preempted(victim.request.request_id, now_us))
            if victim is sequence:
                return False
        return True

    def _reserve(self, sequence: Sequence, tokens: int) -> bool:
        missing = -(-tokens // self.limits.block_size_tokens) - len(sequence.held)
        if missing > 0:
            if not self.blocks.allocate(missing):
                return False
            sequence.held.extend([None] * missing)
        return True

    def _admit(self, budget: int, now_us: int) -> list[tuple[Sequence, int]]:
        work: list[tuple[Sequence, int]] = []
        while self._waiting and budget and len(self._running) < self.limits.max_num_seqs:
            sequence = self._waiting[0]
            tokens = self._start(sequence, budget)
            if not tokens:
                break
            self._waiting.popleft()
            self._running.append(sequence)
            self._note_admission(sequence, now_us)
            work.append((sequence, tokens))
            budget -= tokens
        return work

    def _start(self, sequence: Sequence, budget: int) -> int:
        """Blocks for the first chunk of a waiting request; 0 when there are too few."""
        size = self.limits.block_size_tokens
        full = (sequence.length - 1) // size if self.limits.prefix_caching else 0
        hashes = sequence.hashes(full, size)
        hits = hashes[: self.blocks.match(hashes)]
        computed = max(
            len(hits) * size, min(sequence.request.transferred_tokens, sequence.length - 1)
        )
        tokens = min(sequence.length - computed, budget)
        self.blocks.acquire(hits)
        sequence.held = list(hits)
        if not self._reserve(sequence, computed + tokens):
            self._release(sequence)
            return 0
        sequence.computed = computed
        sequence.published = len(hits)
        if sequence.admitted_us < 0:
            sequence.cached_tokens = min(len(hits) * size, len(sequence.request.prompt))
        return tokens

    def _note_admission(self, sequence: Sequence, now_us: int) -> None:
        first = sequence.admitted_us < 0
        if first:
            sequence.admitted_us = now_us
        self._events.append(
            Admitted(
                request_id=sequence.request.request_id,
                at_us=now_us,
                waited_us=now_us - sequence.submitted_us if first else 0,
                queried_tokens=len(sequence.request.prompt) if first else 0,
                cached_tokens=sequence.cached_tokens if first else 0,
            )
        )

    def _end_step(self, step: _Step) -> None:
        self._step = None
        self._now_us = step.ends_us
        prefill = decode = 0
        for sequence, tokens in step.work:
            if sequence.request.request_id not in self._sequences:
                continue
            if tokens > 1 or sequence.first_token_us < 0:
                prefill += tokens
            else:
                decode += tokens
            sequence.computed += tokens
            self._publish(sequence)
            if sequence.computed == sequence.length:
                self._emit(sequence, step.ends_us)
        self._events.append(Stepped(step.ends_us, step.duration_us, prefill, decode))

    def _publish(self, sequence: Sequence) -> None:
        size = self.limits.block_size_tokens
        full = sequence.computed // size
        if full == sequence.published or not self.limits.prefix_caching:
            return
        hashes = sequence.hashes(full, size)
        for index in range(sequence.published, full):
            if sequence.held[index] is None and self.blocks.publish(hashes[index]):
                sequence.held[index] = hashes[index]
        sequence.published = full

    def _emit(self, sequence: Sequence, now_us: int) -> None:
        request = sequence.request
        if sequence.first_token_us < 0:
            sequence.first_token_us = now_us
            self._events.append(sequence.prefilled(now_us))
        if sequence.emitted < request.output_tokens:
            since_us = now_us - sequence.last_token_us
            self._events.append(
                Emitted(request.request_id, now_us, sequence.emitted, since_us, request.streaming)
            )
            sequence.emitted += 1
            sequence.last_token_us = now_us
        if sequence.emitted == request.output_tokens:
            self._finish(sequence, now_us)

    def _finish(self, sequence: Sequence, now_us: int) -> None:
        request = sequence.request
        del self._sequences[request.request_id]
        self._running.remove(sequence)
        self._release(sequence)
        timeline = sequence.timeline(now_us)
        self._events.append(Finished(request.request_id, now_us, timeline))

    def _release(self, sequence: Sequence) -> None:
        self.blocks.release(sequence.held)
        sequence.reset()
