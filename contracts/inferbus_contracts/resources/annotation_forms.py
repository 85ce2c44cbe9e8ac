"""Forms that values of several annotations have.

Invariant: each raises `ValueError` saying what is wrong in words that may follow the name.
"""

from enum import StrEnum
from typing import Any


def word(words: type[StrEnum], value: str) -> Any:
    """One of a few words."""
    if value not in set(words):
        raise ValueError(f"{value!r} is not one of {', '.join(sorted(words))}")
    return words(value)


def non_empty(value: str) -> str:
    """Any text with something in it."""
    if not value.strip():
        raise ValueError("should not be empty")
    return value


def count(value: str) -> int:
    """A whole number from 0 on."""
    if not value.isdecimal():
        raise ValueError("should be a whole number, 0 or more")
    return int(value)


def port(value: str) -> int:
    """A port, 1 to 65535."""
    if not value.isdecimal() or not 0 < int(value) < 65536:
        raise ValueError("should be a port, 1 to 65535")
    return int(value)
