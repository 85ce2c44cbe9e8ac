"""The part of an object's status that is written here."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from inferbus_contracts.events.route import ConditionFact


@dataclass(frozen=True, slots=True)
class StatusPart:
    """Fields and conditions; those of other writers stay as they are."""

    conditions: tuple[ConditionFact, ...]
    fields: Mapping[str, Any] = field(default_factory=dict)
    """None stands for a field that has nothing to tell (any more)."""
    generation: int | None = None
    """The generation all this is about; None: the object's present one, not told as observed."""
    occasional: frozenset[str] = frozenset()
    """Types of conditions that turn False when they are no longer asserted."""
    withdrawn: frozenset[str] = frozenset()
    """Types of conditions that mean nothing (any more) and go."""
