"""How long one batch takes.

A roofline: a step reads the weights and the KV blocks of its sequences from memory, and computes
its tokens; the slower of the two decides, and a fixed overhead is added (Williams et al., CACM
2009; for serving: Pope et al., MLSys 2023). The quadratic part of attention is left out: it is
small against the weights below some ten thousand tokens of context.

Invariant: more tokens, or more context, never make a step shorter.
"""

from typing import NamedTuple


class StepTiming(NamedTuple):
    """The cost of a step, in microseconds."""

    overhead_us: float = 0.0
    """Launch, sampling and scheduling, whatever is in the batch."""
    weights_us: float = 0.0
    """Reading the active weights once."""
    context_token_us: float = 0.0
    """Reading the KV of one token of context."""
    compute_token_us: float = 0.0
    """Computing one token, prefill or decode."""

    def step_us(self, tokens: int, context_tokens: int, slowdown: float = 1.0) -> int:
        """Duration of a step over `tokens` new tokens that attends to `context_tokens` older ones.

        `slowdown` of at least 0 multiplies it (fault injection).
        """
        memory = self.weights_us + self.context_token_us * context_tokens
        compute = self.compute_token_us * tokens
        return round((self.overhead_us + max(memory, compute)) * slowdown)


INSTANT = StepTiming()
"""Every step takes no time: for tests of everything around the model."""
