"""Chained hashes of a prompt's blocks: two prompts share a hash where all before it is the same.

Blocks grow with their distance from the beginning, so that a long prompt has few, and the part that
falls between two block ends stays small beside the prompt. Invariant: the ends are the same for all
prompts, and a hash says everything about the bytes up to its end and the model (routing spec,
defects 10, 11 and 22).
"""

from functools import lru_cache

from xxhash import xxh3_64_intdigest

LEAST_BLOCK_BYTES = 512
GROWTH = 32
"""A block is at most that part of what precedes it."""
_LONGEST_PROMPT_BYTES = 1 << 28


def _block_ends() -> tuple[int, ...]:
    ends = [0]
    while ends[-1] < _LONGEST_PROMPT_BYTES:
        ends.append(ends[-1] + max(LEAST_BLOCK_BYTES, ends[-1] // GROWTH))
    return tuple(ends[1:])


BLOCK_ENDS = _block_ends()
"""Where blocks end, in bytes from the beginning of a prompt."""


def chained_blocks(model: str, prompt: bytes) -> list[int]:
    """The hashes of the whole blocks of a prompt for that model, first one first; 64 bits each.

    Bytes behind the last whole block are in none, and nothing is cut off, however long it is.
    """
    size = len(prompt)
    blocks: list[int] = []
    if size < LEAST_BLOCK_BYTES:
        return blocks
    view = memoryview(prompt)
    chain = _seed(model)
    start = 0
    for end in BLOCK_ENDS:
        if end > size:
            break
        chain = xxh3_64_intdigest(view[start:end], chain)
        blocks.append(chain)
        start = end
    return blocks


@lru_cache(maxsize=4096)
def _seed(model: str) -> int:
    return xxh3_64_intdigest(model.encode("utf-8", "surrogatepass"))
