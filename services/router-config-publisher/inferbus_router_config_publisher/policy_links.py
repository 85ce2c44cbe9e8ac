"""Who names whom, to be asked from the named side.

Invariant: `naming` tells exactly those whose last `set` named the place; nothing is left of others.
"""

from collections.abc import Iterable

from inferbus_contracts.keys import ObjectKey

_NOBODY: frozenset[ObjectKey] = frozenset()


class Links:
    """References of objects to others, whether these exist or not."""

    def __init__(self) -> None:
        self._named_by: dict[ObjectKey, set[ObjectKey]] = {}
        self._names: dict[ObjectKey, tuple[ObjectKey, ...]] = {}

    def set(self, key: ObjectKey, places: Iterable[ObjectKey]) -> None:
        """An object names these now, and nothing else."""
        for place in self._names.pop(key, ()):
            naming = self._named_by[place]
            naming.discard(key)
            if not naming:
                del self._named_by[place]
        named = tuple(dict.fromkeys(places))
        if named:
            self._names[key] = named
        for place in named:
            self._named_by.setdefault(place, set()).add(key)

    def naming(self, place: ObjectKey) -> frozenset[ObjectKey]:
        """The objects that name this one."""
        return frozenset(self._named_by.get(place, _NOBODY))
