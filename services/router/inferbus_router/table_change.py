"""What one routing table has that the one before it has not, so that followers look at that alone.

Invariant: a change names the table it was made from without keeping it alive.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from inferbus_contracts.keys import ObjectKey

RouteT = TypeVar("RouteT")
KeyT = TypeVar("KeyT")
ValueT = TypeVar("ValueT")


@dataclass(frozen=True, slots=True, eq=False)
class TableChange(Generic[RouteT]):
    """From one table to the next, and back."""

    base: object
    """`identity` of the table it was made from."""
    gone: tuple[RouteT, ...] = ()
    """Routes that are no more, or have another form now."""
    new: tuple[RouteT, ...] = ()
    """Routes that are new, or have another form than before."""
    servers: tuple[ObjectKey, ...] = ()
    """Servers that came, went or changed."""

    @property
    def has_routes(self) -> bool:
        """Whether any route differs."""
        return bool(self.gone or self.new)


def updated(
    earlier: dict[KeyT, ValueT], changed: Mapping[KeyT, ValueT | None]
) -> dict[KeyT, ValueT]:
    """A copy with these values, None for what is gone; `earlier` itself where nothing changed."""
    if not changed:
        return earlier
    values = earlier.copy()
    for key, value in changed.items():
        if value is None:
            values.pop(key, None)
        else:
            values[key] = value
    return values
