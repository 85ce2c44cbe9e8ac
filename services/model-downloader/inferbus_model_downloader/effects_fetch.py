"""One request, whatever its source: have the model and show it where it was asked for.

Invariant: what is on the node already is shown in place; only what is not goes through the cache.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from inferbus_model_downloader.effects_local import LocalSource
from inferbus_model_downloader.effects_place import show, show_each
from inferbus_model_downloader.effects_remote import RemoteFetch
from inferbus_model_downloader.effects_threads import in_thread
from inferbus_model_downloader.effects_transfer import TransferLimits
from inferbus_model_downloader.policy_files import Checksum, plan_files, top_names
from inferbus_model_downloader.policy_layout import CacheLayout
from inferbus_model_downloader.policy_manifest import Manifest
from inferbus_model_downloader.policy_progress import Progress
from inferbus_model_downloader.policy_request import Artifact, FetchRequest, manifest_of
from inferbus_model_downloader.ports import Source


@dataclass(frozen=True, kw_only=True, slots=True)
class Downloader:
    """One cache, and everything that can be asked of it."""

    cache: Path
    limits: TransferLimits
    reserve_bytes: int
    """What a download leaves free on the disk."""
    host_dir: Path
    """What `/` of `host` paths stands for."""
    claims_dir: Path
    """Where claims are mounted."""
    now_ms: Callable[[], int]
    """Stamps manifests: milliseconds since 1970."""
    open_source: Callable[[FetchRequest], Source]
    """The source of a request; called inside a running event loop."""

    async def fetch(self, request: FetchRequest, progress: Progress) -> Artifact:
        """Have the artifact, downloading it if need be, and show it at its destination.

        Raises `ProblemsError`; what was downloaded stays for the next attempt.
        """
        if request.source.is_local:
            manifest = await in_thread(self._show_local, request)
        else:
            manifest = await self._show_remote(request, progress)
        progress.start(manifest.total_bytes, manifest.total_bytes)
        return Artifact(request.destination, manifest)

    async def _show_remote(self, request: FetchRequest, progress: Progress) -> Manifest:
        layout = CacheLayout(self.cache)
        entry = await RemoteFetch(
            layout,
            self.limits,
            self.reserve_bytes,
            self.now_ms,
            request,
            progress,
            lambda: self.open_source(request),
        ).run()
        names = top_names(file.path for file in entry.manifest.files)
        await in_thread(show, entry.content, request.destination, names, cache=layout.artifacts)
        return entry.manifest

    def _show_local(self, request: FetchRequest) -> Manifest:
        local = LocalSource(request.source, self.host_dir, self.claims_dir)
        snapshot = local.snapshot()
        files = plan_files(snapshot.files, request.include, request.exclude)
        if local.is_file:
            show_each({local.path.name: local.path}, request.destination)
        elif len(files) < len(snapshot.files):
            show_each({file.path: local.path / file.path for file in files}, request.destination)
        else:
            show(local.path, request.destination, top_names(file.path for file in files))
        checksums: list[Checksum] = [file.checksum for file in files if file.checksum]
        return manifest_of(request, snapshot, files, checksums)
