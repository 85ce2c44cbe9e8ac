"""The folder of manifests: which files are to be applied, and what goes with what they left out.

Pure. A file that is still being written must not be read: half of it would mean that the objects of
the other half are to be deleted. So a file counts once it has looked the same for one round, or
hasn't changed for that long.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from inferbus_contracts.api.objects import AppliedDocument
from inferbus_contracts.errors import ErrorCode, Problem
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.resources.annotations import MANIFEST
from inferbus_shared.objects.picture import StoredObject
from inferbus_spec_watcher.policy_objects import owners_of

FOLDER = "folder"
"""Manager of what the folder applies."""
COMMAND_LINE = "cli"
"""Manager of the only other hand of people."""


@dataclass(frozen=True, slots=True)
class Look:
    """What a file looks like from outside."""

    changed_at_ns: int
    size: int
    inode: int


def is_settled(look: Look, before: Look | None, now_ms: int, interval_ms: int) -> bool:
    """Whether nobody is writing the file any more; `before` is what it was one round ago."""
    return look == before or now_ms - look.changed_at_ns // 1_000_000 >= interval_ms


def marked(document: AppliedDocument, file: str) -> AppliedDocument:
    """The document with the file it comes from."""
    metadata = document.object.get("metadata") or {}
    annotations = {**(metadata.get("annotations") or {}), MANIFEST: file}
    body: dict[str, Any] = {**document.object}
    body["metadata"] = {**metadata, "annotations": annotations}
    return document.model_copy(update={"object": body})


def defined_elsewhere(
    file: str, keys: Iterable[ObjectKey], files: Mapping[str, Collection[ObjectKey]]
) -> list[Problem]:
    """A problem for each object of a file that another file of the folder defines already."""
    return [
        Problem(
            code=ErrorCode.DUPLICATE_NAME,
            message=f"the same object stands in {other} already",
            file=file,
            object=str(key),
            field="metadata.name",
            value=key.name,
            remedy="keep one of the two, or give one another name",
        )
        for key in keys
        for other, theirs in files.items()
        if other != file and key in theirs
    ]


@dataclass(frozen=True, slots=True)
class Manifests:
    """What the files of the folder define."""

    defined: frozenset[ObjectKey]
    """What stands in those that could be applied at least once."""
    unread: Collection[str]
    """Files that are there and couldn't be applied yet: what they defined before stays."""


def is_left_out(manifests: Manifests, key: ObjectKey, stored: StoredObject) -> bool:
    """Whether a stored object came from the folder and stands in none of its files.

    One that another applier has a part in stays.
    """
    owners = owners_of(stored.object)
    origin = (stored.object["metadata"].get("annotations") or {}).get(MANIFEST)
    if FOLDER not in owners or COMMAND_LINE in owners or origin is None:
        return False
    return key not in manifests.defined and origin not in manifests.unread
