"""What the reconciler needs from the world: a substrate that runs pods and keeps their objects.

The Kubernetes adapter and the process adapter both implement `Substrate`; everything above it is
the same code (DESIGN section 8). Each call is safe to repeat: creating what exists and deleting
what is gone are no errors.
"""

from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from inferbus_contracts.api.objects import ScaleReply, ScaleRequest
from inferbus_contracts.events.workload import Outcome
from inferbus_contracts.keys import ObjectKey
from inferbus_workload_reconciler.actions import Action, Create, Delete, Update, WorkloadEvent
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


class Done(NamedTuple):
    """An action and how it ended."""

    action: Action
    result: ActionResult

    @property
    def well(self) -> bool:
        """Whether the world is now as the action wanted it."""
        return self.result.outcome in (Outcome.DONE, Outcome.ALREADY)


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

    def changes(self) -> AsyncIterator[ObjectKey | None]:
        """Keys of workloads whose children, or whose nodes, changed; None stands for all."""
        ...

    def refusal(self, workload: WorkloadSpec) -> str:
        """Why nothing may be done to a workload here, though it is looked at; empty: it may."""
        ...

    async def apply(self, action: Create) -> ActionResult:
        """Create an object unless one of that name exists."""
        ...

    async def update(self, workload: WorkloadSpec, action: Update) -> ActionResult:
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

    def tell(self, workload: WorkloadSpec, events: Iterable[WorkloadEvent]) -> None:
        """Tell people who watch the object what happened; never waits, and never fails."""
        ...

    async def caught_up(self, workload: WorkloadSpec, revision: int) -> bool:
        """Wait until views show a revision that was seen before; False when they never will."""
        ...

    async def target(self, key: ObjectKey) -> Mapping[str, Any] | None:
        """The object behind a target as it stands now; None when there is none.

        Raises `ProblemsError` when it can't be read.
        """
        ...

    async def scale(self, request: ScaleRequest) -> ScaleReply:
        """Set the replicas of a target, conditional on uid and generation."""
        ...
