"""What people and expanders want: facts about objects, written by the spec-watcher alone."""

from typing import Any, ClassVar

from inferbus_contracts.base import EventData
from inferbus_contracts.errors import Problem


class SpecChanged(EventData):
    """An object was created, its spec, labels or annotations changed, or it was deleted."""

    event_type: ClassVar[str] = "spec.changed"

    uid: str
    generation: int
    """Counts changes of the spec from 1; status and metadata don't count."""
    digest: str
    """Digest of `object`; for a tombstone of its identity."""
    deleted: bool = False
    """True marks the tombstone: `object` then holds apiVersion, kind and metadata only."""
    object: dict[str, Any]
    """The normalised object: defaults filled in, without status."""
    changed_by: str = ""
    """Field manager of the change, e.g. `cli`, `folder`, `scale`, `expander`."""


class SpecRejected(EventData):
    """A document was refused; nothing of its unit (file, `apply`) was stored."""

    event_type: ClassVar[str] = "spec.rejected"

    manager: str
    problems: list[Problem]
