"""What a pod asks of its node, and quantities as they are written.

Invariant: sums are exact; what is written reads back as the same number.
"""

from collections.abc import Iterable, Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Any

from inferbus_contracts.resources.scalars import parse_quantity

Amounts = Mapping[str, Fraction]

QUANTITIES_KEPT = 1024
"""Quantities that are read once: a fleet has few, each many times over."""

_BINARY = [(f"{letter}i", 1024**power) for power, letter in enumerate("KMGTPE", start=1)]
_MILLI = 1000
_NANO = 10**9


def effective_requests(spec: Mapping[str, Any]) -> dict[str, Fraction]:
    """What a scheduler counts for a pod (Kubernetes, "Resource sharing within containers").

    Containers and sidecars run together, other init containers one after another before them; of
    both sums the larger counts, for each resource. A limit stands for a request that is missing,
    the pod's own requests win, overhead is added. What no quantity can be read from is left out:
    the server refuses the pod for it and says so.
    """
    running: dict[str, Fraction] = {}
    starting: dict[str, Fraction] = {}
    for container in spec.get("initContainers") or ():
        during = _sum((running, _requests(container)))
        starting = _larger(starting, during)
        if container.get("restartPolicy") == "Always":
            running = during
    together = _sum((running, *map(_requests, spec.get("containers") or ())))
    return _sum(({**_larger(starting, together), **_requests(spec)}, _read(spec.get("overhead"))))


def total(parts: Iterable[tuple[Amounts, int]]) -> dict[str, Fraction]:
    """The sum of amounts, each as often as said."""
    return _sum({name: one * times for name, one in amounts.items()} for amounts, times in parts)


def quantity_text(name: str, value: Fraction) -> str:
    """A quantity as Kubernetes writes it: `17`, `500m`; bytes as `33Gi` where that is exact."""
    if value.denominator != 1:
        milli = value * _MILLI
        if milli.denominator == 1:
            return f"{milli}m"
        return f"{-(-value.numerator * _NANO // value.denominator)}n"
    for suffix, factor in reversed(_BINARY):
        if _counts_bytes(name) and value and value % factor == 0:
            return f"{value // factor}{suffix}"
    return str(value)


def canonical_quantity(value: Any) -> Any:
    """A quantity as text that is the same for equal ones; what is none stays as it is."""
    quantity = _quantity(value)
    return value if quantity is None else str(quantity)


def same_quantity(one: Any, other: Any) -> bool:
    """Whether two texts or numbers are the same quantity: a server stores `1000m` as `1`."""
    values = [_quantity(value) for value in (one, other)]
    return None not in values and values[0] == values[1]


def _counts_bytes(name: str) -> bool:
    return name.endswith(("memory", "storage")) or name.startswith("hugepages-")


def _requests(container: Mapping[str, Any]) -> dict[str, Fraction]:
    resources = container.get("resources") or {}
    return {**_read(resources.get("limits")), **_read(resources.get("requests"))}


def _read(amounts: Any) -> dict[str, Fraction]:
    if not isinstance(amounts, Mapping):
        return {}
    read = ((name, _quantity(value)) for name, value in amounts.items())
    return {name: value for name, value in read if value is not None}


def _quantity(value: Any) -> Fraction | None:
    return _parsed(value) if isinstance(value, int | float | str) else None


@lru_cache(maxsize=QUANTITIES_KEPT, typed=True)
def _parsed(value: int | float | str) -> Fraction | None:
    try:
        return parse_quantity(value)
    except (ValueError, TypeError):
        return None


def _sum(parts: Iterable[Amounts]) -> dict[str, Fraction]:
    added: dict[str, Fraction] = {}
    for amounts in parts:
        for name, value in amounts.items():
            added[name] = added.get(name, Fraction()) + value
    return added


def _larger(one: Amounts, other: Amounts) -> dict[str, Fraction]:
    nothing = Fraction()
    return {
        name: max(one.get(name, nothing), other.get(name, nothing)) for name in {**one, **other}
    }
