"""Canonical JSON and digests: equal content, equal bytes.

Keys are sorted, there is no insignificant white space, floats take their shortest decimal form and
text is UTF-8. NaN and infinities have no JSON form and are refused.
"""

import hashlib
import json
from typing import Any


def canonical_json(value: Any) -> bytes:
    """Encode a JSON data model canonically.

    Raises `ValueError` for NaN or an infinity and `TypeError` for a type JSON doesn't have.
    """
    return _ENCODER.encode(value).encode()


_ENCODER = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
)


def digest_bytes(data: bytes) -> str:
    """32 hexadecimal digits (128 bits) of SHA-256: short enough for labels and records."""
    return hashlib.sha256(data).hexdigest()[:32]


def digest(value: Any) -> str:
    """`digest_bytes` of the canonical JSON of `value`."""
    return digest_bytes(canonical_json(value))
