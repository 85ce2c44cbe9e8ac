"""The object API: how every service but the spec-watcher reads and changes objects.

Core NATS request and reply on `inferbus.v1.api.objects.<verb>`. A reply carries its result or
`problems`, never both. Every change can be made conditional on uid, generation or revision; an
unmet condition is a problem of code CONFLICT that names both values.
"""

from enum import StrEnum
from typing import Any

from pydantic import Field

from inferbus_contracts.base import EventData
from inferbus_contracts.errors import ErrorCode, Problem, ProblemsError
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.services import Service
from inferbus_contracts.subjects import ROOT

PAGE_LIMIT = 500
"""The most objects one `list` reply holds; a reply also ends early at about 700 KB."""


class ObjectVerb(StrEnum):
    """What can be asked for."""

    GET = "get"
    LIST = "list"
    APPLY = "apply"
    DELETE = "delete"
    SCALE = "scale"
    STATUS = "status"


def object_subject(verb: ObjectVerb) -> str:
    """Where requests of a verb go."""
    return f"{ROOT}.api.objects.{verb.value}"


OBJECT_CALLERS: dict[Service, frozenset[ObjectVerb]] = {
    Service.CLI: frozenset(ObjectVerb) - {ObjectVerb.STATUS},
    Service.CONSOLE: frozenset({ObjectVerb.GET, ObjectVerb.LIST}),
    Service.WORKLOAD_RECONCILER: frozenset(ObjectVerb),
    Service.NODE_AGENT: frozenset(
        {ObjectVerb.GET, ObjectVerb.LIST, ObjectVerb.STATUS, ObjectVerb.DELETE}
    ),
}
"""Which verbs each service may use."""


class Reply(EventData):
    """The part every reply has."""

    problems: list[Problem] = Field(default_factory=list)

    def raise_for_problems(self) -> None:
        """Raise `ProblemsError` when the request was refused."""
        if self.problems:
            raise ProblemsError(*self.problems)


class Preconditions(EventData):
    """What must hold for a change to be made; absent ones always do."""

    uid: str | None = None
    generation: int | None = None
    revision: int | None = None
    """`metadata.resourceVersion` as a number."""
    absent: bool = False
    """The object must not exist yet."""

    def unmet(
        self, key: ObjectKey, *, uid: str, generation: int, revision: int | None = None
    ) -> list[Problem]:
        """What an object that exists doesn't meet, one problem (CONFLICT) per field.

        Without `revision` none is asked for.
        """
        actual = {
            "metadata.uid": (self.uid, uid),
            "metadata.generation": (self.generation, generation),
            "metadata.resourceVersion": (self.revision, revision),
        }
        return [
            Problem(
                code=ErrorCode.CONFLICT,
                message=f"the object has {has}, the request was made for {asked}",
                object=str(key),
                field=name,
                value=asked,
                remedy="read the object again and decide anew",
            )
            for name, (asked, has) in actual.items()
            if asked is not None and has is not None and asked != has
        ]


class GetRequest(EventData):
    """One object by key."""

    key: str


class ObjectReply(Reply):
    """One object with its status."""

    object: dict[str, Any] | None = None


class ListRequest(EventData):
    """Objects of a kind, in key order."""

    kind: str
    namespace: str | None = None
    """None: all namespaces."""
    label_selector: dict[str, str] = Field(default_factory=dict)
    owner_uid: str | None = None
    """Only objects that this owner controls."""
    limit: int = Field(default=PAGE_LIMIT, ge=1, le=PAGE_LIMIT)
    continue_after: str = ""
    """Key of the last object of the page before."""


class ListReply(Reply):
    """One page."""

    objects: list[dict[str, Any]] = Field(default_factory=list)
    continue_after: str = ""
    """Empty when this page is the last."""


class AppliedDocument(EventData):
    """One document to apply and where it came from."""

    object: dict[str, Any]
    file: str = ""
    preconditions: Preconditions = Preconditions()


class ApplyRequest(EventData):
    """Documents that are stored together or not at all."""

    documents: list[AppliedDocument]
    manager: str
    """Field manager, e.g. `cli`, `folder`, `workload-reconciler`."""
    force: bool = False
    """Take over fields that another manager owns."""
    dry_run: bool = False


class Change(StrEnum):
    """What an applied document did."""

    CREATED = "created"
    CONFIGURED = "configured"
    UNCHANGED = "unchanged"


class AppliedObject(EventData):
    """The result of one document."""

    key: str
    change: Change
    uid: str
    generation: int
    revision: int
    warnings: list[Problem] = Field(default_factory=list)
    """What was accepted though it looks doubtful."""


class ApplyReply(Reply):
    """Results in the order of the documents."""

    results: list[AppliedObject] = Field(default_factory=list)


class DeleteRequest(EventData):
    """Delete an object and, by owner reference, what it owns.

    A pod is marked first (`deletionTimestamp`) and gone once its node agent has stopped it and
    deletes it with `final`.
    """

    key: str
    preconditions: Preconditions = Preconditions()
    grace_period_seconds: int | None = None
    final: bool = False
    """Only the node agent: the pod has stopped."""
    manager: str = ""


class DeleteReply(Reply):
    """The deletion was accepted; deleting what is already gone is accepted."""

    revision: int = 0
    """The revision at which the object is gone, or marked; 0 when it was gone before."""


class ScaleRequest(EventData):
    """Set the replicas of a target, or of one role of it; leaves everything else alone.

    The same `decision_id` again answers what it answered the first time.
    """

    key: str
    replicas: int = Field(ge=0)
    decision_id: str
    preconditions: Preconditions = Preconditions()


class ScaleReply(Reply):
    """The target afterwards."""

    changed: bool = False
    replicas: int = 0
    uid: str = ""
    generation: int = 0


class StatusRequest(EventData):
    """Replace the status of an object; spec, labels and generation stay."""

    key: str
    status: dict[str, Any]
    preconditions: Preconditions = Preconditions()


class StatusReply(Reply):
    """The revision afterwards; the same when the status was equal."""

    revision: int = 0
