"""From a request for a remote model to a complete artifact in the cache.

Invariant: the source is asked only for what this node can't answer itself. A complete artifact of a
pinned revision needs no source; one of a branch is used as it was last when the source can't be
reached.
"""

import logging
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass

from inferbus_contracts.errors import ErrorCode, ProblemsError
from inferbus_model_downloader.effects_cache import Entry, find, recall, remember
from inferbus_model_downloader.effects_lock import exclusive
from inferbus_model_downloader.effects_staging import Staging, glance
from inferbus_model_downloader.effects_threads import in_thread
from inferbus_model_downloader.effects_transfer import Transfer, TransferLimits, resolve
from inferbus_model_downloader.policy_files import Snapshot, plan_files
from inferbus_model_downloader.policy_layout import CacheLayout
from inferbus_model_downloader.policy_manifest import seal
from inferbus_model_downloader.policy_progress import Progress
from inferbus_model_downloader.policy_request import FetchRequest, manifest_of
from inferbus_model_downloader.ports import Source

log = logging.getLogger("inferbus.model_downloader")


@dataclass(frozen=True, slots=True)
class RemoteFetch:
    """One request at work on one cache."""

    layout: CacheLayout
    limits: TransferLimits
    reserve_bytes: int
    now_ms: Callable[[], int]
    request: FetchRequest
    progress: Progress
    open_source: Callable[[], Source]

    async def run(self) -> Entry:
        """The complete artifact. Raises `ProblemsError`."""
        asked = self.request.key(self.request.wanted_revision)
        known = await in_thread(self._known, asked)
        if known and (self.request.prefer_cached or known.manifest.key == asked):
            return known
        source = self.open_source()
        try:
            entry = await self._from(source, known)
        finally:
            await source.close()
        await in_thread(remember, self.layout, asked, entry.manifest.key)
        return entry

    def _known(self, asked: str) -> Entry | None:
        return find(self.layout, asked) or recall(self.layout, asked)

    async def _from(self, source: Source, known: Entry | None) -> Entry:
        retry = self.limits.retry.impatient if known else self.limits.retry
        try:
            snapshot = await resolve(source, self.request.wanted_revision, retry)
        except ProblemsError as error:
            if known is None or error.problems[0].code is not ErrorCode.MODEL_SOURCE_UNREACHABLE:
                raise
            log.warning(
                "source cannot be reached, using what is here",
                extra={"source": self.request.source, "revision": known.manifest.revision},
            )
            return known
        key = self.request.key(snapshot.revision)
        return await in_thread(find, self.layout, key) or await self._exclusively(
            source, snapshot, key
        )

    async def _exclusively(self, source: Source, snapshot: Snapshot, key: str) -> Entry:
        """Download, or wait until another process has."""

        def waiting() -> None:
            seen = glance(self.layout.staging(key))
            if seen:
                self.progress.start(*seen, waiting=True)

        async with exclusive(self.layout.lock(key), waiting) as lock:
            entry = await in_thread(find, self.layout, key)
            if entry:
                return entry
            files = plan_files(snapshot.files, self.request.include, self.request.exclude)
            staging = Staging(self.layout.staging(key), files, lock, self.reserve_bytes)
            with closing(staging):
                await in_thread(staging.open)
                return await self._download(source, snapshot, staging)

    async def _download(self, source: Source, snapshot: Snapshot, staging: Staging) -> Entry:
        total_bytes = sum(file.size_bytes for file in staging.files)
        self.progress.start(total_bytes, staging.done_bytes)
        staging.require_space(total_bytes - staging.done_bytes)
        transfer = Transfer(source, snapshot, staging, self.limits, self.progress)
        checksums = await transfer.run()
        manifest = manifest_of(self.request, snapshot, staging.files, checksums)
        await in_thread(staging.publish, self.layout, manifest.key, seal(manifest, self.now_ms()))
        return Entry(self.layout.content(manifest.key), manifest)
