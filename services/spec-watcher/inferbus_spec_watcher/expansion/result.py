"""What an expansion gives, and what it is given to look things up with.

Invariant: `waits_for` names everything the result depends on beside the document and the settings.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from inferbus_contracts.events.route import ConditionFact
from inferbus_contracts.keys import ObjectKey

Lookup = Callable[[ObjectKey], Mapping[str, Any] | None]
"""The stored object of a key, `metadata.uid` included; None when there is none."""


@dataclass(frozen=True, kw_only=True)
class Expansion:
    """The children that an object should have, and what there is to say about them."""

    children: tuple[dict[str, Any], ...]
    """Complete, admitted manifests in a stable order; owner references are the applier's."""
    conditions: tuple[ConditionFact, ...]
    """At most one of each type; a type of `conditions.OCCASIONAL` that is absent is False."""
    waits_for: frozenset[ObjectKey]
    """Objects that were looked up, whether they exist or not."""
    blocked: bool = False
    """Nothing could be rendered: children that exist stay as they are and none is deleted, because
    a model that is missing for a moment must not stop what serves."""
