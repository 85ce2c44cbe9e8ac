"""What a template means, however it was written down.

A controller that reads an object into types and writes it out again leaves empty fields out and
writes quantities its own way. A fleet that such a controller built must not roll because of that
(defect MS_D1).

Invariant: what is dropped here says nothing: a server reads the object alike with it and without.
"""

from collections.abc import Mapping
from typing import Any, Final

from inferbus_workload_reconciler.policy_resources import canonical_quantity

_OFF_BY_DEFAULT: Final = frozenset(
    {"hostNetwork", "hostPID", "hostIPC", "stdin", "stdinOnce", "tty", "readOnly"}
)
"""Fields of pods that mean the same absent and false."""

_AMOUNTS: Final = frozenset({"requests", "limits", "overhead"})
"""Fields whose entries are quantities."""

_QUANTITIES: Final = frozenset({"sizeLimit", "divisor"})


def meaning(value: Any) -> Any:
    """A JSON value without what says nothing, with quantities written one way."""
    if isinstance(value, Mapping):
        items = ((key, _field(key, item)) for key, item in value.items())
        return {key: item for key, item in items if item not in (None, {}, [], "")}
    if isinstance(value, list | tuple):
        return [meaning(item) for item in value]
    return value


def _field(key: str, value: Any) -> Any:
    if value is False and key in _OFF_BY_DEFAULT:
        return None
    if key in _AMOUNTS and isinstance(value, Mapping):
        return {name: canonical_quantity(amount) for name, amount in value.items()}
    return canonical_quantity(value) if key in _QUANTITIES else meaning(value)
