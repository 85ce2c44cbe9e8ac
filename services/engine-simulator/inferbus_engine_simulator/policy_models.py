"""How big a model is, guessed from its name.

Weights are never loaded, so the name is all there is. The rule, on the first of the given names
that tells something: `8x7B` is a mixture (total = experts × size × 0.83, two experts active),
`235B-A22B` names the active parameters, otherwise the number before `B` (or `M`) counts; `0--5b`
is read as 0.5B, as dots become `--` in Kubernetes names. A few families without a number are
listed. Without any hint: 7 billion. The number format comes from the name too (AWQ, FP8, Q4_K_M).

Invariant: the answer depends on the names alone, and is always positive.
"""

import math
import re
from collections.abc import Iterable
from typing import NamedTuple

_MIXTURE = re.compile(r"(?<![a-z0-9.])(\d+)x(\d+(?:\.\d+)?)b(?![a-z0-9])")
_SIZE = re.compile(r"(?<![a-z0-9.])(\d+(?:\.\d+)?)([bm])(?![a-z0-9])")
_ACTIVE = re.compile(r"(?<![a-z0-9])a(\d+(?:\.\d+)?)b(?![a-z0-9])")
_GGUF = re.compile(r"(?<![a-z0-9])i?q([2-8])(?:_[0-9a-z]+)*(?![a-z0-9])")

_FAMILIES: tuple[tuple[str, float, float], ...] = (
    ("deepseek-v2-lite", 15.7, 2.4),
    ("deepseek-v2", 236.0, 21.0),
    ("deepseek-v3", 671.0, 37.0),
    ("deepseek-r1", 671.0, 37.0),
    ("phi-3-mini", 3.8, 3.8),
    ("tinyllama", 1.1, 1.1),
    ("gpt2", 0.12, 0.12),
)

_HALF_BYTE = ("awq", "gptq", "int4", "w4a16", "4bit", "nvfp4", "mxfp4")
_ONE_BYTE = ("fp8", "int8", "w8a8", "8bit")

_DEFAULT_BILLIONS = 7.0
_ACTIVE_EXPERTS = 2
_TOTAL_FRACTION = 0.83
"""Experts share attention and embeddings: Mixtral-8x7B has 46.7 billion in total, not 56 …"""
_ACTIVE_FRACTION = 0.92
"""… and 12.9 billion active, not 14."""


class ModelShape(NamedTuple):
    """What the cost of serving a model depends on."""

    total_billions: float
    """Parameters that lie in memory, billions."""
    active_billions: float
    """Parameters that one token uses, billions."""
    bytes_per_parameter: float
    kv_bytes_per_token: int
    """KV cache of one token over all layers, bytes, in 16 bits."""

    @property
    def weight_bytes(self) -> float:
        """Memory of the weights."""
        return self.total_billions * 1e9 * self.bytes_per_parameter

    @property
    def active_weight_bytes(self) -> float:
        """Bytes of weights that a step with one token reads."""
        return self.active_billions * 1e9 * self.bytes_per_parameter


def guess_shape(names: Iterable[str], billions: float | None = None) -> ModelShape:
    """The shape of the model that goes by these names; `billions` overrides the guessed size."""
    plain = [_plain(name) for name in names]
    total, active = next(
        (size for name in plain if (size := _size(name)) is not None),
        (_DEFAULT_BILLIONS, _DEFAULT_BILLIONS),
    )
    if billions is not None:
        total, active = billions, billions * active / total
    width = next((width for name in plain if (width := _bytes(name)) is not None), 2.0)
    return ModelShape(total, active, width, _kv_bytes_per_token(total))


def _plain(name: str) -> str:
    return re.sub(r"(\d)--(\d)", r"\1.\2", name.lower()).replace("_", "-").replace("--", "/")


def _size(name: str) -> tuple[float, float] | None:
    if mixture := _MIXTURE.search(name):
        experts, each = int(mixture[1]), float(mixture[2])
        active_experts = min(experts, _ACTIVE_EXPERTS)
        return experts * each * _TOTAL_FRACTION, active_experts * each * _ACTIVE_FRACTION
    if size := _SIZE.search(name):
        total = float(size[1]) / (1.0 if size[2] == "b" else 1000.0)
        active = _ACTIVE.search(name)
        if total > 0:
            return total, min(float(active[1]), total) if active else total
    for family, total, active_billions in _FAMILIES:
        if family in name:
            return total, active_billions
    return None


def _bytes(name: str) -> float | None:
    if any(word in name for word in _HALF_BYTE):
        return 0.56
    if any(word in name for word in _ONE_BYTE):
        return 1.0
    if quantised := _GGUF.search(name.replace("-", "_")):
        return int(quantised[1]) / 8 * 1.1
    return None


def _kv_bytes_per_token(billions: float) -> int:
    """32 KiB × billions^0.55: 22 KB at 0.5B, 103 KB at 8B, 339 KB at 70B.

    Published shapes with grouped-query attention: 12 KB (Qwen2.5-0.5B), 131 KB (Llama-3-8B),
    328 KB (Llama-3-70B).
    """
    return round(32768 * math.pow(billions, 0.55))
