"""What an engine can hold.

Invariant: a step's token budget is never below the number of sequences, so that no decoding
request starves.
"""

from typing import NamedTuple


class EngineLimits(NamedTuple):
    """What an engine can hold."""

    block_size_tokens: int = 16
    blocks: int = 4096
    max_num_seqs: int = 256
    max_num_batched_tokens: int = 2048
    """Token budget of one step; at least `max_num_seqs`."""
    prefix_caching: bool = True
