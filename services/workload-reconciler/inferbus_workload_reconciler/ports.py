"""What the reconciler needs from the world: a substrate that runs pods and keeps their objects.

The Kubernetes adapter and the process adapter both implement `Substrate`; everything above it is
the same code (DESIGN section 8). Each call is safe to repeat: creating what exists and deleting
what is gone are no errors.
"""

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from inferbus_contracts.api.objects import ScaleReply, ScaleRequest
from inferbus_contracts.events.workload import Outcome
from inferbus_contracts.keys import ObjectKey
from inferbus_workload_reconciler.actions import Create, Delete, Update
from inferbus_workload_reconciler.observed import Observed
from inferbus_workload_reconciler.workload import WorkloadSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionResult:
    """How an action ended.

    `ALREADY`: it exists, or is gone, as wanted. `CONFLICT`: the name is held by another object, or
    the uid isn't what it was. `FAILED`: refused or unreachable; the error says what.
    """

    outcome: Outcome
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """A workload's children at one moment."""

    observed: Observed
    revisions: tuple[Mapping[str, Any], ...]
    """ControllerRevision objects with the workload's name label."""


class Substrate(Protocol):
    """Where pods run."""

    async def observe(self, workload: WorkloadSpec) -> Surroundings:
        """The workload's pods, services and revisions, those of other owners too.

        Raises `ProblemsError` when the substrate can't be read; then nothing is planned.
        """
        ...

    def changes(self) -> AsyncIterator[ObjectKey]:
        """Keys of workloads whose children, or whose nodes, changed; begins with all of them."""
        ...

    async def apply(self, action: Create) -> ActionResult:
        """Create an object unless one of that name exists."""
        ...

    async def update(self, action: Update) -> ActionResult:
        """Apply a merge patch with its preconditions; CONFLICT where they don't hold."""
        ...

    async def delete(self, workload: WorkloadSpec, action: Delete) -> ActionResult:
        """Request the deletion of an object if it still has that uid."""
        ...

    def status_of(self, key: ObjectKey) -> Mapping[str, Any]:
        """The status that a workload object has now; empty without one."""
        ...

    async def report(self, workload: WorkloadSpec, status: Mapping[str, Any]) -> None:
        """Write the object's status, conditional on its uid."""
        ...

    async def caught_up(self, revision: int) -> None:
        """Wait until views show a revision that was seen before."""
        ...

    async def scale(self, request: ScaleRequest) -> ScaleReply:
        """Set the replicas of a target, conditional on uid and generation."""
        ...
