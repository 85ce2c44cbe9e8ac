"""What the service does with a request for an artifact.

Invariant: every request ends in `model.ready`, or in `model.failed` for each attempt, under ids
that follow from the request; answering it twice is answering it once.
"""

import asyncio
import logging
import os
import time
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

from inferbus_contracts.artifacts import parse_model_uri
from inferbus_contracts.base import EventData
from inferbus_contracts.envelope import event_id
from inferbus_contracts.errors import ErrorCode, Problem, ProblemsError
from inferbus_contracts.events.model import (
    ModelFailed,
    ModelProgressed,
    ModelReady,
    ModelRequested,
)
from inferbus_model_downloader.credentials import read_secret
from inferbus_model_downloader.effects_fetch import Downloader
from inferbus_model_downloader.metrics import DownloadMetrics
from inferbus_model_downloader.policy_again import again_seconds
from inferbus_model_downloader.policy_options import hub_options
from inferbus_model_downloader.policy_progress import Meter, Progress
from inferbus_model_downloader.policy_redaction import redacted_problem
from inferbus_model_downloader.policy_request import Artifact, FetchRequest
from inferbus_model_downloader.settings import DownloaderSettings
from inferbus_shared.bus.bus import Bus
from inferbus_shared.bus.fate import MAX_RETRIES, Reject, Retry, working
from inferbus_shared.bus.messages import Received
from inferbus_shared.clock import real_now_ms

log = logging.getLogger("inferbus.model_downloader")

T = TypeVar("T")

PROGRESS_SECONDS = 1.0
HAND_OVER_SECONDS = 5.0
"""Until a request that a stop interrupted is delivered again, to whoever serves the node then."""


class RequestHandler:
    """Serves the requests of one node; any number at a time."""

    def __init__(
        self,
        bus: Bus,
        downloader: Downloader,
        settings: DownloaderSettings,
        metrics: DownloadMetrics,
    ) -> None:
        self._bus = bus
        self._downloader = downloader
        self._settings = settings
        self._metrics = metrics
        self._stopping = asyncio.Event()

    async def handle(self, event: Received[EventData], message: Any) -> None:
        """Answer one `model.requested`; `message` is its delivery, told to wait meanwhile.

        Raises `Retry` when the attempt failed and another one may not, `Reject` for what isn't a
        request to this node.
        """
        request = event.data
        if not isinstance(request, ModelRequested) or request.node != self._settings.node:
            raise Reject(f"this is no request to node {self._settings.node}")
        started = time.monotonic()
        with self._metrics.active.track_inprogress():
            async with working(message):
                try:
                    artifact = await self._serve(event, request)
                except ProblemsError as error:
                    await self._tell_failed(event, request, error.problems[0])
                else:
                    await self._tell_ready(event, request, artifact)
                    self._metrics.seconds.observe(time.monotonic() - started)

    async def _serve(self, event: Received[EventData], request: ModelRequested) -> Artifact:
        wanted = self._fetch_request(event, request)
        progress = Progress()
        reporting = asyncio.create_task(self._report(event, request, progress))
        try:
            return await self._unless_stopping(self._downloader.fetch(wanted, progress))
        except ProblemsError as error:
            secrets = wanted.options.secrets
            raise ProblemsError(
                *(redacted_problem(problem, secrets) for problem in error.problems)
            ) from error
        finally:
            reporting.cancel()
            await asyncio.wait([reporting])
            self._metrics.fetched_bytes.inc(progress.received_bytes)

    def _fetch_request(self, event: Received[EventData], request: ModelRequested) -> FetchRequest:
        destination = Path(request.destination)
        if not destination.is_absolute():
            raise ProblemsError(_relative(request.destination))
        secret = read_secret(self._settings.credentials_dir, request.credentials)
        return FetchRequest(
            source=parse_model_uri(request.source),
            destination=destination,
            revision=request.revision,
            include=request.include,
            exclude=request.exclude,
            options=hub_options({**request.environment, **secret}, node=os.environ),
            prefer_cached=event.deliveries > 1,
        )

    async def _unless_stopping(self, work: Coroutine[Any, Any, T]) -> T:
        """Run `work`; a stop of the service ends it at once, and the request is delivered again.

        When the service stops, the bus waits for handlers and then cancels them one after the
        other; the first that is cancelled tells the others.
        """
        working_task = asyncio.ensure_future(work)
        stop_task = asyncio.ensure_future(self._stopping.wait())
        try:
            await asyncio.wait({working_task, stop_task}, return_when=asyncio.FIRST_COMPLETED)
            if working_task.done():
                return working_task.result()
            raise Retry(HAND_OVER_SECONDS, "the service stops")
        except asyncio.CancelledError:
            self._stopping.set()
            raise
        finally:
            stop_task.cancel()
            working_task.cancel()
            await asyncio.wait({working_task, stop_task})

    async def _report(
        self, event: Received[EventData], request: ModelRequested, progress: Progress
    ) -> None:
        """Tell how far the download is, once a second while that changes."""
        meter = Meter()
        told: tuple[int, bool] | None = None
        while True:
            await asyncio.sleep(PROGRESS_SECONDS)
            rate = meter.bytes_per_second(real_now_ms(), progress.done_bytes)
            state = (progress.done_bytes, rate > 0)
            if progress.total_bytes is None or state == told:
                continue
            told = state
            data = ModelProgressed(
                artifact=request.artifact,
                node=request.node,
                bytes_done=progress.done_bytes,
                bytes_total=progress.total_bytes,
                bytes_per_second=round(rate, 1),
            )
            try:
                await self._publish(event, data, f"{event.id}|{state}")
            except ProblemsError as error:
                log.warning("progress could not be told", extra={"reason": str(error)})

    async def _tell_ready(
        self, event: Received[EventData], request: ModelRequested, artifact: Artifact
    ) -> None:
        manifest = artifact.manifest
        ready = ModelReady(
            artifact=request.artifact,
            node=request.node,
            path=str(artifact.path),
            manifest_digest=manifest.digest,
            bytes=manifest.total_bytes,
            files=len(manifest.files),
        )
        await self._publish(event, ready, event.id)
        self._metrics.requests.labels("ready").inc()
        log.info(
            "artifact is ready",
            extra={"source": manifest.source, "revision": manifest.revision, "path": ready.path},
        )

    async def _tell_failed(
        self, event: Received[EventData], request: ModelRequested, problem: Problem
    ) -> None:
        again = again_seconds(
            problem,
            event.deliveries,
            self._settings.again_base_seconds,
            self._settings.again_cap_seconds,
            MAX_RETRIES,
        )
        retry_at_ms = (
            None
            if again is None
            else self._bus.clock.anchor.to_virtual(real_now_ms() + again * 1000)
        )
        failed = ModelFailed(
            artifact=request.artifact,
            node=request.node,
            problem=problem,
            retry_at_ms=retry_at_ms,
        )
        await self._publish(event, failed, f"{event.id}|{event.deliveries}")
        self._metrics.requests.labels(problem.code.value).inc()
        log.warning("artifact failed", extra={"source": request.source, "problem": str(problem)})
        if again is not None:
            raise Retry(again, str(problem))

    async def _publish(self, event: Received[EventData], data: EventData, cause: str) -> None:
        identity = event_id(data.event_type, event.key, cause)
        await self._bus.publish(self._bus.event(data, event.key, id=identity, cause=event))


def _relative(destination: str) -> Problem:
    return Problem(
        code=ErrorCode.BAD_ARGUMENT,
        message="the destination of a request must be an absolute path",
        field="destination",
        value=destination,
        remedy="the writer of the request is at fault",
    )
