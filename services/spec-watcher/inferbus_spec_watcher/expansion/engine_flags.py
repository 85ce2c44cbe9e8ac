"""From a worker's free `config` to words of a command line.

Invariant: the words depend on the content of the configuration alone, not on its order, and every
value arrives at the engine as it was written: no shell, no scientific notation of whole numbers.
(modelbooster spec 2.4 and 7.6 item 1)
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

_CAMEL_CASE = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")

_SEVERAL_VALUES = frozenset(
    {"served-model-name", "lora-modules", "lora-paths", "cuda-graph-sizes", "cuda-graph-bs"}
)
"""Flags that take a list as words; other lists are JSON text."""


def flag_name(key: str) -> str:
    """The flag that a key means, without hyphens before it: `max_model_len` and `maxModelLen` are
    both `max-model-len`."""
    words = _CAMEL_CASE.sub("-", key)
    return (words if words == key else words.lower()).replace("_", "-")


def options_of(config: Mapping[str, Any] | None) -> dict[str, Any]:
    """Flags and their values, keys in ASCII order; null says nothing."""
    given = config or {}
    return {flag_name(key): given[key] for key in sorted(given) if given[key] is not None}


def render_flags(options: Mapping[str, Any], *, negatable: bool = True) -> list[str]:
    """The words of all options, in order.

    True and an empty text are the bare flag. False is its `--no-` form, or nothing for engines
    whose switches can't be negated.
    """
    return [word for name, value in options.items() for word in _words(name, value, negatable)]


def _words(name: str, value: Any, negatable: bool) -> list[str]:
    flag = f"--{name}"
    if value is True or value == "":
        return [flag]
    if value is False:
        return [_negated(name)] if negatable else []
    if isinstance(value, list) and name in _SEVERAL_VALUES:
        return [flag, *(_text(item) for item in value)]
    return [flag, _text(value)]


def _negated(name: str) -> str:
    return f"--{name.removeprefix('no-')}" if name.startswith("no-") else f"--no-{name}"


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return json.dumps(value, separators=(",", ":"), sort_keys=True, ensure_ascii=False)


def value_after(words: Sequence[str], flags: Sequence[str]) -> str | None:
    """The value that the last of these flags has on a command line; None when none stands there.

    Both `--flag value` and `--flag=value` are read.
    """
    found = None
    for index, word in enumerate(words):
        name, equals, value = word.partition("=")
        if name in flags:
            found = value if equals else next(iter(words[index + 1 : index + 2]), found)
    return found


def is_port(text: str) -> bool:
    """Whether a text is a TCP port, 1 to 65535."""
    return len(text) <= 5 and text.isascii() and text.isdigit() and 1 <= int(text) <= 65535
