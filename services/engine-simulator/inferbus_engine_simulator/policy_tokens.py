"""Text to tokens and back, and the text that the model "generates".

A token is four bytes of UTF-8, its id these bytes as a big-endian number: near the four characters
per token of common vocabularies for English (and 4/3 characters for Chinese), countable without a
vocabulary, and reversible. Generated words are three letters and a space, so a client that sends
an answer back as context gets the same tokens, and with them the same prefix-cache blocks.

Invariant: `detokenize(tokenize(text)) == text`, except for NUL characters at the head of a token.
"""

import hashlib
import math
import struct
from collections.abc import Iterable, Sequence

BYTES_PER_TOKEN = 4
MAX_TOKEN_ID = 2**32 - 1

_LETTERS = (
    "actaddageagoaimairallandanyarearmartaskbadbagbarbatbaybedbetbigbitboxboybusbutbuycancapcar"
    "catcupcutdaydiddigdogdrydueeareateggendeyefarfewfitflyforfungapgasgetgothadhashatherhimhis"
    "hithothowiceinkitsjobjoykeylablawlayledlegletlieloglotlowmadmanmapmaymenmetmixnetnewnornot"
    "nowoddoffoiloldone"
)
"""Words of three letters, one after the other."""

OUTPUT_WORDS: tuple[str, ...] = tuple(
    f"{_LETTERS[start : start + 3]} " for start in range(0, len(_LETTERS), 3)
)
"""What the model can say; each is exactly one token."""

_OUTPUT_IDS = tuple(int.from_bytes(word.encode(), "big") for word in OUTPUT_WORDS)

_MEAN_OUTPUT_TOKENS = 200


def tokenize(text: str) -> list[int]:
    """The token ids of a text, `ceil(bytes / 4)` of them."""
    data = text.encode("utf-8", "surrogatepass")
    whole = len(data) // BYTES_PER_TOKEN
    end = whole * BYTES_PER_TOKEN
    tokens = list(struct.unpack(f">{whole}I", data[:end]))
    if end < len(data):
        tokens.append(int.from_bytes(data[end:], "big"))
    return tokens


def token_bytes(token: int) -> bytes:
    """The bytes of one token; `token` from 0 to 2**32 - 1."""
    return token.to_bytes(max(1, (token.bit_length() + 7) // 8), "big")


def detokenize(tokens: Iterable[int]) -> str:
    """The text of token ids; bytes that are no UTF-8 become the replacement character."""
    return b"".join(token_bytes(token) for token in tokens).decode("utf-8", "replace")


def output_index(seed: int, index: int) -> int:
    """Which of `OUTPUT_WORDS` is the `index`-th word of the text `seed`."""
    mixed = (seed ^ (index * 0x9E3779B1)) & 0xFFFFFFFF
    mixed = (mixed ^ (mixed >> 15)) * 0x2C1B3C6D & 0xFFFFFFFF
    return (mixed ^ (mixed >> 12)) % len(OUTPUT_WORDS)


def output_token(seed: int, index: int) -> int:
    """The id of the `index`-th generated token of the text `seed`."""
    return _OUTPUT_IDS[output_index(seed, index)]


def output_text(seed: int, count: int) -> str:
    """The first `count` words of the text `seed`."""
    return "".join(OUTPUT_WORDS[output_index(seed, index)] for index in range(count))


def prompt_seed(prompt: Sequence[int], seed: int = 0) -> int:
    """A number that depends on every token of the prompt and on `seed`; 64 bits."""
    packed = struct.pack(f">{len(prompt)}I", *prompt)
    key = seed.to_bytes(8, "big", signed=True)
    return int.from_bytes(hashlib.blake2b(packed, digest_size=8, key=key).digest(), "big")


def natural_output_tokens(seed: int) -> int:
    """How long the model answers when nobody limits it: exponential, 200 tokens on average.

    At least 1; the same for the same `seed`.
    """
    draw = hashlib.blake2b(seed.to_bytes(8, "big"), digest_size=8).digest()
    fraction = (int.from_bytes(draw, "big") + 1) / 2**64
    return max(1, round(-math.log(fraction) * _MEAN_OUTPUT_TOKENS))
