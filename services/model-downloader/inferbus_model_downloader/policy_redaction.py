"""Texts that leave the process carry no secret.

Messages of client libraries quote addresses and headers. Invariant: no known secret, no token of a
known shape, no query string of an address (signed addresses carry their signature there) and no
user part of one comes through.
"""

import re
from collections.abc import Iterable, Sequence

from inferbus_contracts.errors import Problem, shorten

HIDDEN = "***"

_SHAPES = (
    (re.compile(r"(?i)\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]+"), rf"\1 {HIDDEN}"),
    (re.compile(r"\bhf_[A-Za-z0-9]{8,}"), f"hf_{HIDDEN}"),
    (re.compile(r"([A-Za-z][A-Za-z0-9+.-]*://)[^/\s'\"@]+@"), rf"\1{HIDDEN}@"),
    (re.compile(r"([A-Za-z][A-Za-z0-9+.-]*://[^\s?'\"]*)\?[^\s'\"]*"), rf"\1?{HIDDEN}"),
)


def redacted(text: str, secrets: Iterable[str] = ()) -> str:
    """`text` without `secrets` and without anything that looks like one."""
    for secret in secrets:
        if secret:
            text = text.replace(secret, HIDDEN)
    for shape, replacement in _SHAPES:
        text = shape.sub(replacement, text)
    return text


def redacted_problem(problem: Problem, secrets: Sequence[str] = ()) -> Problem:
    """`problem` with nothing secret in its texts."""
    value = None if problem.value is None else redacted(shorten(problem.value), secrets)
    return problem.model_copy(
        update={"message": redacted(problem.message, secrets), "value": value}
    )
