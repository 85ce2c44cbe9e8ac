"""What an engine counts about its work: a fold of the events of the model.

The counters and histograms are those that the metrics pages of the engines are made of; which
histograms exist, and their bucket bounds, is up to the page.

Invariant: counters never decrease; a histogram's count is the sum of its buckets.
"""

from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum

from inferbus_engine_simulator.policy_events import (
    Aborted,
    Admitted,
    Emitted,
    Event,
    Finished,
    FinishReason,
    Preempted,
    Prefilled,
    Stepped,
    Timeline,
)

_US_PER_SECOND = 1_000_000
_RATE_STEPS = 40
"""Steps over which throughput is averaged: SGLang's decode log interval."""


class Quantity(StrEnum):
    """What is put into histograms; seconds unless its name says otherwise."""

    TIME_TO_FIRST_TOKEN = "time_to_first_token"
    INTER_TOKEN_LATENCY = "inter_token_latency"
    TIME_PER_OUTPUT_TOKEN = "time_per_output_token"
    """The mean of one request."""
    END_TO_END_LATENCY = "end_to_end_latency"
    QUEUE_TIME = "queue_time"
    PREFILL_TIME = "prefill_time"
    DECODE_TIME = "decode_time"
    INFERENCE_TIME = "inference_time"
    PROMPT_TOKENS = "prompt_tokens"
    COMPUTED_PROMPT_TOKENS = "computed_prompt_tokens"
    OUTPUT_TOKENS = "output_tokens"
    STEP_TOKENS = "step_tokens"
    MAX_TOKENS_PARAMETER = "max_tokens_parameter"
    N_PARAMETER = "n_parameter"


class Histogram:
    """Counts per bucket; a value on a bound belongs to the bucket below it (`le`)."""

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: Sequence[float]) -> None:
        """`bounds` ascend; the bucket above the last one is added."""
        self.bounds = tuple(bounds)
        self.counts = [0] * (len(self.bounds) + 1)
        self.total = 0.0

    @property
    def count(self) -> int:
        """How many values were observed."""
        return sum(self.counts)

    def observe(self, value: float) -> None:
        """Add one value."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value


class Statistics:
    """The running totals of one engine."""

    def __init__(self, bounds: Mapping[Quantity, Sequence[float]]) -> None:
        """`bounds` names the histograms that are kept; other quantities are dropped."""
        self._bounds = dict(bounds)
        self.histograms: dict[tuple[Quantity, bool], Histogram] = {}
        """By quantity, and whether the request was streamed."""
        self.prompt_tokens: Counter[bool] = Counter()
        """Of requests whose prefill ended, cached tokens included; by streaming."""
        self.generation_tokens: Counter[bool] = Counter()
        self.requests: Counter[bool] = Counter()
        self.finished: Counter[FinishReason] = Counter()
        self.cache_queried_tokens = 0
        self.cache_hit_tokens = 0
        self.cached_prompt_tokens = 0
        self.transferred_tokens = 0
        self.preemptions = 0
        self.steps = 0
        self.busy_us = 0
        self.prefill_us = 0
        """Time of steps that computed prompts."""
        self.prefilled_tokens = 0
        """Prompt tokens computed, without those found in a cache."""
        self.decoded_tokens = 0
        self._recent: deque[tuple[int, int]] = deque(maxlen=_RATE_STEPS)

    @property
    def generation_rate(self) -> float:
        """Decoded tokens per second of the last busy steps; 0 before the first."""
        busy_us = sum(duration for duration, _ in self._recent)
        tokens = sum(decoded for _, decoded in self._recent)
        return tokens * _US_PER_SECOND / busy_us if busy_us else 0.0

    @property
    def aborted(self) -> int:
        """Requests that were ended from outside."""
        return self.finished[FinishReason.ABORT]

    def histogram(self, quantity: Quantity, streaming: bool | None = None) -> Histogram:
        """Of one quantity; None: streamed and other requests together."""
        if streaming is not None:
            return self._get(quantity, streaming)
        both = Histogram(self._bounds[quantity])
        for part in (self._get(quantity, False), self._get(quantity, True)):
            both.counts = [a + b for a, b in zip(both.counts, part.counts, strict=True)]
            both.total += part.total
        return both

    def note_parameters(self, n: int, max_tokens: int | None) -> None:
        """The parameters of a call."""
        self._observe(Quantity.N_PARAMETER, n, False)
        if max_tokens is not None:
            self._observe(Quantity.MAX_TOKENS_PARAMETER, max_tokens, False)

    def record(self, events: Iterable[Event]) -> None:
        """Add what happened."""
        for event in events:
            match event:
                case Emitted():
                    self._record_token(event)
                case Stepped():
                    self._record_step(event)
                case Prefilled():
                    self._record_prefill(event)
                case Admitted():
                    self.cache_queried_tokens += event.queried_tokens
                    self.cache_hit_tokens += event.cached_tokens
                case Finished():
                    self._record_finish(event.timeline)
                case Preempted():
                    self.preemptions += 1
                case Aborted():
                    self.finished[FinishReason.ABORT] += 1

    def _record_token(self, event: Emitted) -> None:
        quantity = Quantity.INTER_TOKEN_LATENCY if event.position else Quantity.TIME_TO_FIRST_TOKEN
        self._observe(quantity, event.since_us / _US_PER_SECOND, event.streaming)
        self.generation_tokens[event.streaming] += 1

    def _record_step(self, event: Stepped) -> None:
        self.steps += 1
        self.busy_us += event.duration_us
        self.prefilled_tokens += event.prefill_tokens
        self.decoded_tokens += event.decode_tokens
        if event.prefill_tokens:
            self.prefill_us += event.duration_us
        self._observe(Quantity.STEP_TOKENS, event.prefill_tokens + event.decode_tokens, False)
        self._recent.append((event.duration_us, event.decode_tokens))

    def _record_prefill(self, event: Prefilled) -> None:
        known = event.cached_tokens + event.transferred_tokens
        self.prompt_tokens[event.streaming] += event.prompt_tokens
        self.cached_prompt_tokens += event.cached_tokens
        self.transferred_tokens += event.transferred_tokens
        self._observe(Quantity.PROMPT_TOKENS, event.prompt_tokens, event.streaming)
        self._observe(Quantity.COMPUTED_PROMPT_TOKENS, event.prompt_tokens - known, event.streaming)

    def _record_finish(self, life: Timeline) -> None:
        self.finished[life.reason] += 1
        self.requests[life.streaming] += 1
        decode_us = life.finished_us - life.first_token_us
        seconds = {
            Quantity.END_TO_END_LATENCY: life.finished_us - life.arrived_us,
            Quantity.QUEUE_TIME: life.admitted_us - life.arrived_us,
            Quantity.PREFILL_TIME: life.first_token_us - life.admitted_us,
            Quantity.DECODE_TIME: decode_us,
            Quantity.INFERENCE_TIME: life.finished_us - life.admitted_us,
            Quantity.TIME_PER_OUTPUT_TOKEN: decode_us / max(life.output_tokens - 1, 1),
        }
        for quantity, duration_us in seconds.items():
            self._observe(quantity, duration_us / _US_PER_SECOND, life.streaming)
        self._observe(Quantity.OUTPUT_TOKENS, life.output_tokens, life.streaming)

    def _observe(self, quantity: Quantity, value: float, streaming: bool) -> None:
        if quantity in self._bounds:
            self._get(quantity, streaming).observe(value)

    def _get(self, quantity: Quantity, streaming: bool) -> Histogram:
        key = (quantity, streaming)
        if key not in self.histograms:
            self.histograms[key] = Histogram(self._bounds[quantity])
        return self.histograms[key]
