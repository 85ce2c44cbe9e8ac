"""API keys: how a list of them is written, and whose a key is.

Keys are kept as their SHA-256 alone, and looked up by it, so that neither memory nor the time of a
comparison tells anything about them. Invariant: a key belongs to one principal; a list that can't
be read in full is refused in full.
"""

import re
from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import NamedTuple

from inferbus_contracts.errors import ErrorCode, Problem, ProblemsError

PRINCIPAL_PREFIX = "api-key:"
"""Before the key's name, so that no subject of a token is taken for it."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,127}")
_DIGEST_PREFIX = "sha256:"
_DIGEST = re.compile(r"[0-9a-f]{64}")
_REMEDY = "write `name: key` or `name: sha256:<64 hexadecimal digits>`, one a line"

ApiKeys = Mapping[bytes, str]
"""Principals by the SHA-256 of their keys."""


class KeyLine(NamedTuple):
    """A key and where it stands."""

    place: str
    """`file:line`, or the file of one key."""
    name: str
    value: str
    """The key, or `sha256:` and its digest."""


def key_lines(file: str, text: str) -> list[KeyLine]:
    """The lines of a list of keys: `name: key` each; empty ones and those after `#` are skipped."""
    lines = []
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip() and not line.lstrip().startswith("#"):
            name, _, value = line.partition(":")
            lines.append(KeyLine(f"{file}:{number}", name.strip(), value.strip()))
    return lines


def read_api_keys(lines: Iterable[KeyLine]) -> ApiKeys:
    """Principals by their keys; raises `ProblemsError` with all that is wrong.

    A name may have several keys, so that they can be exchanged one after the other.
    """
    keys: dict[bytes, str] = {}
    problems = []
    for line in lines:
        fault = _fault(line)
        if fault is not None:
            problems.append(_problem(line, fault))
            continue
        digest = _digest(line.value)
        if keys.setdefault(digest, PRINCIPAL_PREFIX + line.name) != PRINCIPAL_PREFIX + line.name:
            problems.append(_problem(line, "its key belongs to another name already"))
    if problems:
        raise ProblemsError(*problems)
    return keys


def key_digest(key: bytes) -> bytes:
    """What a key is looked up by."""
    return sha256(key).digest()


def _digest(value: str) -> bytes:
    if value.startswith(_DIGEST_PREFIX):
        return bytes.fromhex(value.removeprefix(_DIGEST_PREFIX))
    return key_digest(value.encode())


def _fault(line: KeyLine) -> str | None:
    if not _NAME.fullmatch(line.name):
        return "the name of an API key must be 1 to 128 letters, digits, '.', '_', '@' or '-'"
    if not line.value or len(line.value.split()) != 1:
        return "an API key must be one word"
    written = line.value.removeprefix(_DIGEST_PREFIX)
    if written != line.value and not _DIGEST.fullmatch(written):
        return "a SHA-256 must be 64 hexadecimal digits in lower case"
    return None


def _problem(line: KeyLine, fault: str) -> Problem:
    """Names the place and never the key."""
    return Problem(
        code=ErrorCode.BAD_SETTING, message=fault, file=line.place, field=line.name, remedy=_REMEDY
    )
