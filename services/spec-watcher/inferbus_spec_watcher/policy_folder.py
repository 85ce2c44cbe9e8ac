"""The folder of manifests: which files are to be applied, and what goes with what they left out.

Pure. A file that is still being written must not be read: half of it would mean that the objects of
the other half are to be deleted. So a file counts once it has looked the same for one round, or
hasn't changed for that long.
"""

from collections.abc import Iterable, Iterator, Mapping
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


@dataclass(frozen=True, slots=True)
class Look:
    """What a file looks like from outside."""

    changed_at_ns: int
    size: int
    inode: int


def is_settled(look: Look, before: Look | None, now_ns: int, interval_ns: int) -> bool:
    """Whether nobody is writing the file any more."""
    return look == before or now_ns - look.changed_at_ns >= interval_ns


def marked(document: AppliedDocument, file: str) -> AppliedDocument:
    """The document with the file it comes from."""
    metadata = document.object.get("metadata") or {}
    annotations = {**(metadata.get("annotations") or {}), MANIFEST: file}
    body: dict[str, Any] = {**document.object}
    body["metadata"] = {**metadata, "annotations": annotations}
    return document.model_copy(update={"object": body})


def defined_elsewhere(
    file: str, keys: Iterable[ObjectKey], files: Mapping[str, frozenset[ObjectKey]]
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


def left_out(
    objects: Iterable[tuple[ObjectKey, StoredObject]],
    files: Mapping[str, frozenset[ObjectKey]],
    unread: frozenset[str],
) -> Iterator[tuple[ObjectKey, StoredObject]]:
    """Objects that came from the folder and stand in none of its files.

    `files` holds what each file defines, `unread` the files that are there but can't be read just
    now: what they defined stays. An object that another applier has a part in stays too.
    """
    defined = frozenset[ObjectKey]().union(*files.values())
    for key, stored in objects:
        origin = (stored.object["metadata"].get("annotations") or {}).get(MANIFEST)
        ours = FOLDER in owners_of(stored.object) and origin is not None
        if ours and key not in defined and origin not in unread and not _is_shared(stored):
            yield key, stored


def _is_shared(stored: StoredObject) -> bool:
    """The command line's manager is the only other hand of people."""
    return "cli" in owners_of(stored.object)
