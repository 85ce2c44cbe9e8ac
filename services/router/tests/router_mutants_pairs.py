"""One-line mutants of prefill/decode: each brings back a defect, and its tests must notice.

The number is that of routing spec section 9.2.
"""

from tests.support.mutants import Mutant

MUTANTS = (
    Mutant(
        "RT_20",
        "prefill_decode",
        "    if prompt_tokens < split.prefill_min_tokens and",
        "    if False and",
    ),
    Mutant("RT_20", "access_log", '        "prefill_pod": record.prefill_pod,\n', ""),
    Mutant(
        "RT_21",
        "prefill_decode",
        "        if self._decode.status:\n            self._fail(self._prefill,",
        "        if False:\n            self._fail(self._prefill,",
    ),
    Mutant(
        "RT_21",
        "prefill_decode",
        "        if self._decode.status:\n            self._fail(prefill,",
        "        if False:\n            self._fail(prefill,",
    ),
    Mutant(
        "RT_21",
        "policy_connectors",
        "    if declared in (None, Connector.HTTP) and engine",
        "    if declared is None and engine",
    ),
)
