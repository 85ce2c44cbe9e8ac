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
    """The mean request."""

    requests: int = 0
    """How many it is the mean of, up to the length of the memory."""
    prompt_tokens: float = 0.0
    output_tokens: float = 0.0

    def after(self, came: Counters) -> "Sizes":
        """The mean after some more requests were answered; itself without any."""
        if came.completions <= 0:
            return self
        share = came.completions / min(self.requests + came.completions, _MEMORY_REQUESTS)
        share = min(share, 1.0)
        return Sizes(
            requests=min(self.requests + came.completions, _MEMORY_REQUESTS),
            prompt_tokens=_moved(self.prompt_tokens, came.prompt_tokens / came.completions, share),
            output_tokens=_moved(self.output_tokens, came.output_tokens / came.completions, share),
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


def _moved(mean: float, value: float, share: float) -> float:
    return mean + (value - mean) * share
