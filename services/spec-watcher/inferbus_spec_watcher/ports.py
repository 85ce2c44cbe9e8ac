"""What everything in this service is written against: a picture of objects, and the hand that
changes them.

Two substrates implement both: the bucket `objects` (processes), and the Kubernetes API server.
Invariant: the picture is never older than what this instance's own hand wrote.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from inferbus_contracts.api.objects import AppliedDocument, AppliedObject, Preconditions
from inferbus_contracts.errors import Problem
from inferbus_contracts.keys import ObjectKey
from inferbus_shared.objects.picture import StoredObject

RenderDocuments = Callable[[], Sequence[AppliedDocument]]
RenderStatus = Callable[[StoredObject], dict[str, Any] | None]
"""The status that an object should have; None leaves the one it has."""


class Objects(Protocol):
    """All objects of the platform, in memory."""

    def get(self, key: ObjectKey) -> StoredObject | None:
        """An object, or None."""

    def keys(self) -> tuple[ObjectKey, ...]:
        """The keys of all objects, in order."""

    def items(self, kind: str = "") -> Iterator[tuple[ObjectKey, StoredObject]]:
        """Objects of a kind, or all, in key order."""

    def last_revision(self, key: ObjectKey) -> int:
        """The revision that a write of the key has to expect; 0 where there is none."""

    def refusal(self, key: ObjectKey) -> tuple[Problem, ...]:
        """Why a stored object is no fact; empty for one that was admitted, or isn't there."""

    def unseen(self, key: ObjectKey) -> Problem | None:
        """Why an object of this key wouldn't be in the picture if there were one; None: it is."""

    def on_change(self, listener: Callable[[ObjectKey], None]) -> None:
        """Call back with the key of every object that changed or went."""

    async def ready(self) -> None:
        """Wait until the picture is complete."""

    async def run(self) -> None:
        """Keep the picture current until cancelled."""


class Hand(Protocol):
    """Every way to change an object; each raises `ProblemsError` when it is refused."""

    async def apply(
        self,
        documents: Sequence[AppliedDocument],
        manager: str,
        *,
        force: bool = False,
        dry_run: bool = False,
    ) -> list[AppliedObject]:
        """Apply all documents or none, as far as the substrate can promise that."""

    async def apply_rendered(
        self,
        render: RenderDocuments,
        manager: str,
        *,
        force: bool = False,
        dry_run: bool = False,
    ) -> list[AppliedObject]:
        """Apply what `render` makes of the objects as they stand when it is written."""

    async def scale(
        self, key: ObjectKey, number: int, decision_id: str, conditions: Preconditions
    ) -> tuple[bool, StoredObject]:
        """Set the replicas of a target or role; (whether this decision did, the object now)."""

    async def set_status(
        self, key: ObjectKey, status: Mapping[str, Any], conditions: Preconditions
    ) -> StoredObject:
        """Replace the status; the object afterwards."""

    async def update_status(self, key: ObjectKey, render: RenderStatus) -> None:
        """Give an object the status rendered of it as it stands then; one that is gone needs
        none."""

    async def delete(
        self,
        key: ObjectKey,
        conditions: Preconditions,
        *,
        grace_period_seconds: int | None = None,
        final: bool = False,
    ) -> int:
        """Delete an object; the revision of that, 0 where there was nothing to delete."""

    async def delete_if(self, key: ObjectKey, is_unwanted: Callable[[StoredObject], bool]) -> None:
        """Delete an object unless it is wanted as it stands then."""
