"""Subjects: `inferbus.v1.<domain>.<fact>.<kind>.<namespace>.<name>`.

Each token is escaped, so that any name fits into one token and comes back unchanged: letters,
digits, `-` and `_` stand for themselves, every other byte is `=` and two hexadecimal digits. A role
of an object is part of the name's token, after an escaped slash.
"""

import re
from functools import lru_cache

from inferbus_contracts.keys import ObjectKey

ROOT = "inferbus.v1"

KEYS_KEPT = 4096
"""Of so many keys the tokens are remembered: most events are about few objects."""

_UNSAFE = re.compile(rb"[^A-Za-z0-9_-]")
_ESCAPED = re.compile(rb"=([0-9A-F]{2})")


def escape(text: str) -> str:
    """One subject token that stands for `text`; raises `ValueError` when `text` is empty."""
    if not text:
        raise ValueError("an empty text has no subject token")
    return _UNSAFE.sub(lambda match: b"=%02X" % match[0][0], text.encode()).decode()


def unescape(token: str) -> str:
    """The inverse of `escape`."""
    return _ESCAPED.sub(lambda match: bytes([int(match[1], 16)]), token.encode()).decode()


@lru_cache(maxsize=KEYS_KEPT)
def key_tokens(key: ObjectKey) -> str:
    """The three tokens of a key."""
    name = f"{key.name}/{key.role}" if key.role else key.name
    return f"{escape(key.kind)}.{escape(key.namespace)}.{escape(name)}"


def subject(event_type: str, key: ObjectKey) -> str:
    """The subject of an event; `event_type` is `<domain>.<fact>`."""
    return f"{ROOT}.{event_type}.{key_tokens(key)}"


def parse_subject(text: str) -> tuple[str, ObjectKey]:
    """(`<domain>.<fact>`, key) of a subject, whatever prefix stands before the root.

    Raises `ValueError` when it isn't the subject of an event.
    """
    tokens = text.split(".")
    root = ROOT.split(".")
    if tokens[-7:-5] != root:
        raise ValueError(f"{text!r} is not the subject of an event")
    domain, fact, kind, namespace, name = tokens[-5:]
    return f"{domain}.{fact}", parse_key(kind, namespace, name)


def parse_key(kind: str, namespace: str, name: str) -> ObjectKey:
    """The key that stands behind its three tokens."""
    name, _, role = unescape(name).partition("/")
    return ObjectKey(unescape(kind), unescape(namespace), name, role)


def wildcard(event_type: str, kind: str = "*", namespace: str = "*") -> str:
    """The filter for all events of a type; `kind` and `namespace` narrow it (unescaped)."""
    tokens = (token if token == "*" else escape(token) for token in (kind, namespace))
    return f"{ROOT}.{event_type}.{'.'.join(tokens)}.*"
