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
        "RT_01",
        "policy_retry",
        "    if failure is Failure.TIMEOUT or retry_after_ms > MOST_RETRY_AFTER_MS:",
        "    if failure is Failure.TIMEOUT:",
    ),
    Mutant("RT_02", "policy_retry", "    if retries_made >= allowed:", "    if True:"),
    Mutant("RT_03", "policy_retry", "    if failure is Failure.TIMEOUT or", "    if"),
    Mutant(
        "RT_03",
        "attempts",
        "        if self._plan.try_deadlines is not None:\n"
        "            self._plan.try_deadlines.start(self, now_ms)",
        "",
    ),
    Mutant("RT_03", "unserved", "    if failure is Failure.TRY_TIMEOUT and", "    if False and"),
    Mutant(
        "RT_05",
        "errors",
        '    return json.dumps({"error": error}, ensure_ascii=False).encode()',
        "    return json.dumps(message, ensure_ascii=False).encode()",
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
        "RT_18",
        "answering",
        "        if self._relay is not None:\n            self._break_off",
        "        if self._relay is not None and not self._try_again(failure, now_ms):\n"
        "            self._break_off",
    ),
    Mutant(
        "RT_19",
        "relay",
        "        if self._stream is None or self._framing == _BY_LENGTH:",
        "        if True:",
    ),
    Mutant(
        "RT_19",
        "upstream_protocol",
        "head.ends_with_connection and self._ended and error is None:",
        "head.ends_with_connection and error is None:",
    ),
    Mutant(
        "RT_24",
        "fleet",
        "        index = self._draws[rule].draw(works if any(works) else ready)",
        "        index = self._draws[rule].draw(ready)",
    ),
    Mutant("RT_24", "policy_retry", "    return failure in _NEVER_SENT or (", "    return ("),
    Mutant(
        "RT_24",
        "account",
        "            if self._runs:\n                self._leave(self._plan, now_ms)\n",
        "",
    ),
    Mutant(
        "RT_29",
        "router",
        '        if request.head.path.startswith("/v1/"):\n            self.ledger',
        '        if request.head.path == "/v1/models":\n            self.ledger',
    ),
    Mutant(
        "RT_33",
        "request_reader",
        "        if head.content_length > self._max_body_bytes:",
        "        if False:",
    ),
    Mutant(
        "RT_33",
        "request_reader",
        "        if self._body_bytes > self._max_body_bytes:",
        "        if False:",
    ),
    Mutant(
        "RT_33",
        "server_protocol",
        "            self._count(self._shared.head_deadlines)",
        "            pass",
    ),
    Mutant(
        "RT_33",
        "server_protocol",
        "            self._count(self._shared.body_deadlines)",
        "            pass",
    ),
    Mutant(
        "RT_39",
        "body",
        '    return _insertion(raw, start, _INCLUDE_USAGE + (b"," if members else b""))',
        "    return span, _STREAM_OPTIONS",
    ),
    Mutant(
        "RT_40",
        "body",
        "        self.prompt_tokens = estimate_prompt_tokens(document)",
        "        self.prompt_tokens = len(document['prompt'].encode())",
    ),
    Mutant(
        "RT_40",
        "router",
        '        if method == b"OPTIONS":',
        "        if False:",
    ),
    Mutant(
        "RT_41",
        "account",
        "        if usage.output_tokens is not None:",
        "        if usage.output_tokens is None:",
    ),
    Mutant(
        "RT_41",
        "attempts",
        "upstream_request(self._request, self._payload, self._endpoint.host)",
        'upstream_request(self._request, b"" if self._tried else self._payload, b"e")',
    ),
)
