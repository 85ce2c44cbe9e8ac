"""What differs between the substrates, once it is put together.

Invariant: whatever isn't in `companions` is the same on both.
"""

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from inferbus_spec_watcher.ownership import Ownership
from inferbus_spec_watcher.policies import Policies
from inferbus_spec_watcher.ports import Hand, Objects
from inferbus_spec_watcher.surroundings import Surroundings


@dataclass(frozen=True, slots=True)
class Parts:
    """The picture, what is kept beside it, and the hand."""

    store: Objects
    ownership: Ownership
    policies: Policies
    hand: Hand
    surroundings: Surroundings
    companions: dict[str, Callable[[], Coroutine[Any, Any, None]]]
    """Work that only this substrate needs, by name."""
