"""Metadata of objects, references to objects, and the base class of a whole resource.

Invariant: everything Kubernetes may put into `metadata` is understood, so that an object read back
from a cluster can be applied again; anything else is a spelling mistake and an error.
"""

import copy
from typing import Any

from pydantic import Field

from inferbus_contracts.resources.document import ResourcePart
from inferbus_contracts.resources.scalars import Flag, Integer

SERVER_FIELDS = (
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "managedFields",
    "selfLink",
)
"""Fields of `metadata` that the store of the object writes, never its author."""


class OwnerReference(ResourcePart):
    """An owner: when it goes, the object goes with it."""

    api_version: str
    kind: str
    name: str
    uid: str
    controller: Flag | None = None
    block_owner_deletion: Flag | None = None


class ObjectMeta(ResourcePart):
    """`metadata` of an object."""

    name: str = Field(min_length=1)
    generate_name: str | None = None
    namespace: str | None = None
    labels: dict[str, str] = Field(default_factory=dict)
    annotations: dict[str, str] = Field(default_factory=dict)
    finalizers: list[str] = Field(default_factory=list)
    owner_references: list[OwnerReference] = Field(default_factory=list)
    uid: str | None = None
    resource_version: str | None = None
    generation: Integer | None = None
    creation_timestamp: str | None = None
    """RFC 3339."""
    deletion_timestamp: str | None = None
    """RFC 3339."""
    deletion_grace_period_seconds: Integer | None = None
    managed_fields: list[dict[str, Any]] = Field(default_factory=list)
    self_link: str | None = None


class TemplateMetadata(ResourcePart):
    """`metadata` of a pod template, as far as the platform lets it be set."""

    labels: dict[str, str] = Field(default_factory=dict)
    """Labels of the pods."""
    annotations: dict[str, str] = Field(default_factory=dict)
    """Annotations of the pods."""


class LabelSelectorRequirement(ResourcePart):
    """One expression of a label selector; the operator is checked by who selects."""

    key: str
    """The label."""
    operator: str
    """In, NotIn, Exists or DoesNotExist."""
    values: list[str] = Field(default_factory=list)
    """Values for In and NotIn."""


class LabelSelector(ResourcePart):
    """Labels and expressions that all must hold."""

    match_labels: dict[str, str] = Field(default_factory=dict)
    """Labels with these values."""
    match_expressions: list[LabelSelectorRequirement] = Field(default_factory=list)
    """Expressions about labels; all must hold."""


class ObjectReference(ResourcePart):
    """core/v1 ObjectReference; which of its fields are read is said where it is used."""

    kind: str | None = None
    """Kind of the object."""
    namespace: str | None = None
    """Namespace of the object; absent means the same one."""
    name: str | None = None
    """Name of the object."""
    uid: str | None = None
    """Accepted, and not read."""
    api_version: str | None = None
    """Group and version of the object."""
    resource_version: str | None = None
    """Accepted, and not read."""
    field_path: str | None = None
    """Accepted, and not read."""


class LocalReference(ResourcePart):
    """The name of an object in the same namespace."""

    name: str | None = None
    """Name of the object."""


class Resource(ResourcePart):
    """A whole object."""

    api_version: str
    kind: str
    metadata: ObjectMeta

    @property
    def annotations(self) -> dict[str, str]:
        """Annotations of the object."""
        return self.metadata.annotations


class PassThrough(Resource, extra="allow"):
    """An object of a supporting kind: its identity is checked, its body is passed through."""


def without_server_fields(document: dict[str, Any]) -> dict[str, Any]:
    """A copy with only what its author decides: no `status`, none of `SERVER_FIELDS`."""
    authored = {name: copy.deepcopy(value) for name, value in document.items() if name != "status"}
    metadata = authored.get("metadata")
    if isinstance(metadata, dict):
        for name in SERVER_FIELDS:
            metadata.pop(name, None)
    return authored
