"""What somebody wants to have where, and what that led to. Values only."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from inferbus_contracts.artifacts import ModelUri, artifact_digest
from inferbus_model_downloader.policy_files import Checksum, Snapshot, SourceFile
from inferbus_model_downloader.policy_manifest import Manifest, ManifestFile
from inferbus_model_downloader.policy_options import HubOptions


@dataclass(frozen=True, kw_only=True, slots=True)
class FetchRequest:
    """A model, and the folder that shall show it."""

    source: ModelUri
    destination: Path
    """Absolute."""
    revision: str | None = None
    include: Sequence[str] = ()
    exclude: Sequence[str] = ()
    options: HubOptions = field(default_factory=HubOptions)
    prefer_cached: bool = False
    """A branch means what it meant last time, if that is complete."""

    @property
    def wanted_revision(self) -> str | None:
        """The revision asked for, or else the one that the options name."""
        return self.revision or self.options.revision

    def key(self, revision: str | None) -> str:
        """The digest of what is wanted, at a revision."""
        return artifact_digest(self.source, revision, self.include, self.exclude)


@dataclass(frozen=True, slots=True)
class Artifact:
    """A complete artifact, where it was asked for."""

    path: Path
    manifest: Manifest


def manifest_of(
    request: FetchRequest,
    snapshot: Snapshot,
    files: Sequence[SourceFile],
    checksums: Sequence[Checksum],
) -> Manifest:
    """The manifest of `files`, whose contents gave `checksums`."""
    return Manifest(
        key=request.key(snapshot.revision),
        source=str(request.source),
        revision=snapshot.revision,
        include=tuple(sorted(set(request.include))),
        exclude=tuple(sorted(set(request.exclude))),
        files=tuple(
            ManifestFile(
                path=file.path,
                size_bytes=file.size_bytes,
                algorithm=checksum.algorithm,
                checksum=checksum.value,
            )
            for file, checksum in zip(files, checksums, strict=True)
        ),
    )
