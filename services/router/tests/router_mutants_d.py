"""One-line mutants of the request path: each brings back a defect, and its tests must notice.

The number is that of routing spec section 9.2.
"""

from tests.support.mutants import Mutant

MUTANTS = (
    Mutant(
        "RT_01",
        "policy_retry",
        "RETRYABLE_STATUSES = frozenset({502, 503, 504})",
        "RETRYABLE_STATUSES = frozenset(range(400, 600))",
    ),
    Mutant(
        "RT_02",
        "policy_retry",
        "    if retries_made >= allowed:",
        "    if retries_made >= 0:",
    ),
    Mutant(
        "RT_16",
        "policy_ejection",
        "        self.ejected_until_ms = now_ms + length_ms",
        "        self.ejected_until_ms = 0",
    ),
    Mutant(
        "RT_17",
        "endpoint",
        "        if self._retired:\n            connection.close()",
        "        if self._retired or len(self.idle.items()) >= 2:\n            connection.close()",
    ),
    Mutant(
        "RT_19",
        "relay",
        "        if self._stream is None or self._framing == _BY_LENGTH:",
        "        if True:",
    ),
    Mutant(
        "RT_39",
        "body",
        '    return _insertion(raw, start, _INCLUDE_USAGE + (b"," if members else b""))',
        "    return span, _STREAM_OPTIONS",
    ),
)
