"""What is complete in a cache.

Invariant: an artifact is found only when its manifest is whole and every file of it is there at its
size; nothing here asks a source or changes an artifact.
"""

import logging
from dataclasses import dataclass
from pathlib import Path

from inferbus_model_downloader.effects_files import SHARED_MODE, disk_problems
from inferbus_model_downloader.policy_layout import CacheLayout
from inferbus_model_downloader.policy_manifest import Manifest, damaged_files, unseal
from inferbus_shared.processes.files import read_json, write_json

log = logging.getLogger("inferbus.model_downloader")


@dataclass(frozen=True, slots=True)
class Entry:
    """One complete artifact."""

    content: Path
    manifest: Manifest


def find(layout: CacheLayout, key: str) -> Entry | None:
    """The artifact of that key if it is complete. Raises `ProblemsError` (PERMISSION_DENIED)."""
    with disk_problems(layout.root):
        manifest = unseal(read_json(layout.manifest(key)))
        if manifest is None:
            return None
        content = layout.content(key)
        sizes_bytes = {
            file.path: path.stat().st_size
            for file in manifest.files
            if (path := content / file.path).is_file()
        }
    damaged = damaged_files(manifest, sizes_bytes)
    if manifest.key != key or damaged:
        log.warning("artifact is damaged", extra={"artifact": key, "files": len(damaged)})
        return None
    return Entry(content, manifest)


def recall(layout: CacheLayout, request: str) -> Entry | None:
    """What the request of that digest led to last time, if it is still complete."""
    with disk_problems(layout.root):
        ref = read_json(layout.ref(request))
    key = ref.get("artifact") if ref else None
    return find(layout, key) if isinstance(key, str) and key.isalnum() else None


def remember(layout: CacheLayout, request: str, key: str) -> None:
    """Note what a request led to, for a start without its source."""
    with disk_problems(layout.root):
        path = layout.ref(request)
        known = read_json(path)
        if known != {"artifact": key}:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_json(path, {"artifact": key}, mode=SHARED_MODE)
