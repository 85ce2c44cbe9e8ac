"""The manifest: what a complete artifact consists of.

Invariant: the digest is over source, revision, filters and files alone, so the same artifact has
the same digest on every node, and a manifest that was changed or torn is noticed.
"""

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from inferbus_contracts.base import Document
from inferbus_contracts.canonical import digest
from inferbus_model_downloader.policy_files import Algorithm

_FORMAT = 1


class ManifestFile(Document):
    """One file."""

    path: str
    size_bytes: int
    algorithm: Algorithm
    checksum: str


class Manifest(Document):
    """All of an artifact."""

    key: str
    source: str
    revision: str
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    files: tuple[ManifestFile, ...]

    @property
    def total_bytes(self) -> int:
        """The size of all files."""
        return sum(file.size_bytes for file in self.files)

    @property
    def digest(self) -> str:
        """32 hexadecimal digits over the content of the manifest."""
        return digest(self.to_dict())


def seal(manifest: Manifest, created_ms: int) -> dict[str, Any]:
    """The JSON that stands in the file; `created_ms` is milliseconds since 1970."""
    return {
        "format": _FORMAT,
        "createdMs": created_ms,
        "digest": manifest.digest,
        "manifest": manifest.to_dict(),
    }


def unseal(sealed: Mapping[str, Any] | None) -> Manifest | None:
    """The manifest that was sealed; None when there is none or it isn't what was sealed."""
    if sealed is None or sealed.get("format") != _FORMAT:
        return None
    try:
        manifest = Manifest.model_validate(sealed.get("manifest"))
    except ValidationError:
        return None
    return manifest if manifest.digest == sealed.get("digest") else None


def damaged_files(manifest: Manifest, sizes_bytes: Mapping[str, int]) -> list[str]:
    """The paths that are missing or have another size; `sizes_bytes` is what is on disk."""
    return [file.path for file in manifest.files if sizes_bytes.get(file.path) != file.size_bytes]
