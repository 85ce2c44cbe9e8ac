"""Where everything stands below a cache folder.

    artifacts/<key>/manifest.json   written last: an artifact without it does not exist
    artifacts/<key>/content/…       the files, never changed again
    staging/<key>/…                 a download under way, or one to resume
    locks/<key>                     held by the one process that downloads
    refs/<digest of a request>      which artifact a branch stood for when it was last asked for

Invariant: a key is a digest, so no name from outside ever becomes a path here.
"""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class CacheLayout:
    """The paths of one cache."""

    root: Path

    @property
    def artifacts(self) -> Path:
        """The folder of complete artifacts."""
        return self.root / "artifacts"

    def artifact(self, key: str) -> Path:
        """The folder that is renamed into place as a whole."""
        return self.artifacts / key

    def content(self, key: str) -> Path:
        """What an engine is shown."""
        return self.artifact(key) / "content"

    def manifest(self, key: str) -> Path:
        """The mark that an artifact is complete."""
        return self.artifact(key) / "manifest.json"

    def staging(self, key: str) -> "StagingLayout":
        """Where an artifact is put together."""
        return StagingLayout(self.root / "staging" / key)

    def lock(self, key: str) -> Path:
        """The lock file; never removed, since a new file would be a second lock."""
        return self.root / "locks" / key

    def ref(self, request: str) -> Path:
        """What a request led to."""
        return self.root / "refs" / request


@dataclass(frozen=True, slots=True)
class StagingLayout:
    """The paths of one download."""

    root: Path

    @property
    def plan(self) -> Path:
        """The files and their sizes; a download with another plan starts over."""
        return self.root / "plan.json"

    @property
    def journal(self) -> Path:
        """What has been written and checked."""
        return self.root / "journal"

    @property
    def tree(self) -> Path:
        """Becomes the artifact's folder."""
        return self.root / "tree"

    @property
    def content(self) -> Path:
        """The files."""
        return self.tree / "content"

    @property
    def manifest(self) -> Path:
        """Written when all files are there and right."""
        return self.tree / "manifest.json"
