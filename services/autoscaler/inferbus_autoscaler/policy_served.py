"""What a replica serves, in requests per second, whatever unit it was said or learned in.

Invariant: a capacity that nobody said and nobody has seen yet is unknown, never guessed.
"""

from dataclasses import dataclass

from inferbus_autoscaler.events import Counters
from inferbus_autoscaler.facts import ObjectiveFacts
from inferbus_contracts.resources.annotations import CapacityUnit

_MEMORY_REQUESTS = 500
"""The size of a request is the mean of about so many."""


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """The mean request.

    A router counts a prompt when it comes in and an output when it is done: in a burst these are
    very different numbers, so each has a mean of its own.
    """

    requests: int = 0
    """How many answers it is the mean of, up to the length of the memory."""
    prompts: int = 0
    """How many prompts, likewise."""
    prompt_tokens: float = 0.0
    output_tokens: float = 0.0

    def after(self, came: Counters) -> "Sizes":
        """The mean after some more requests; itself without any."""
        answers = max(came.completions, 0)
        prompts = max(came.requests, 0) if came.prompt_tokens > 0 else 0
        if not answers and not prompts:
            return self
        return Sizes(
            requests=min(self.requests + answers, _MEMORY_REQUESTS),
            prompts=min(self.prompts + prompts, _MEMORY_REQUESTS),
            prompt_tokens=_moved(self.prompt_tokens, self.prompts, came.prompt_tokens, prompts),
            output_tokens=_moved(self.output_tokens, self.requests, came.output_tokens, answers),
        )


def capacity_per_second(
    objective: ObjectiveFacts, sizes: Sizes, learned_tokens: float | None
) -> float | None:
    """Requests that one replica (of a mix: one capacity unit) serves per second; None: unknown.

    `learned_tokens` are output tokens per second that a replica was seen to hold out.
    """
    if objective.capacity is not None and objective.unit is CapacityUnit.REQUESTS:
        return objective.capacity
    if sizes.requests == 0:
        return None
    if objective.capacity is not None:
        tokens = sizes.prompt_tokens + sizes.output_tokens
        return objective.capacity / tokens if tokens > 0 else None
    if learned_tokens is None or sizes.output_tokens <= 0:
        return None
    return learned_tokens / sizes.output_tokens


def _moved(mean: float, count: int, tokens: int, more: int) -> float:
    """The mean of `count` values after `more` of them, of `tokens` together."""
    if more == 0:
        return mean
    share = min(more / min(count + more, _MEMORY_REQUESTS), 1.0)
    return mean + (tokens / more - mean) * share
