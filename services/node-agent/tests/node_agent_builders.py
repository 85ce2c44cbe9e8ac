"""Pod objects for tests."""

import uuid
from typing import Any

Document = dict[str, Any]


def container(name: str = "main", *command: str, **fields: Any) -> Document:
    """A container; `fields` are those of core/v1."""
    written: Document = {"name": name, "image": "example/program:1"}
    if command:
        written["command"] = list(command)
    return written | fields


def pod(name: str, *containers: Document, **fields: Any) -> Document:
    """A pod object with a fresh uid; `metadata` is merged, everything else goes into `spec`."""
    metadata = {"name": name, "namespace": "default", "uid": str(uuid.uuid4())}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata | fields.pop("metadata", {}),
        "spec": {"containers": list(containers) or [container()], **fields},
    }


def deleted(document: Document, grace_seconds: int | None = None) -> Document:
    """The same pod object with its end asked for."""
    metadata = document["metadata"] | {"deletionTimestamp": "2026-01-01T00:00:00Z"}
    if grace_seconds is not None:
        metadata["deletionGracePeriodSeconds"] = grace_seconds
    return document | {"metadata": metadata}
