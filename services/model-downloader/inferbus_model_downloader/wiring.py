"""From settings to a downloader: used by the service and by the command line."""

from pathlib import Path

from inferbus_model_downloader.effects_fetch import Downloader
from inferbus_model_downloader.effects_transfer import TransferLimits
from inferbus_model_downloader.policy_request import FetchRequest
from inferbus_model_downloader.policy_retry import RetryPolicy
from inferbus_model_downloader.ports import Source
from inferbus_model_downloader.settings import DownloaderSettings
from inferbus_model_downloader.sources import open_source
from inferbus_shared.clock import real_now_ms


def build_downloader(
    settings: DownloaderSettings, cache: Path, max_workers: int | None = None
) -> Downloader:
    """A downloader on `cache`; `max_workers` wins over the setting."""
    connections = max_workers or settings.max_workers

    def source_of(request: FetchRequest) -> Source:
        return open_source(request.source, request.options, connections, settings.stall_seconds)

    return Downloader(
        cache=cache,
        limits=TransferLimits(
            connections=connections,
            chunk_bytes=settings.chunk_bytes,
            retry=RetryPolicy(
                attempts=settings.retry_attempts,
                base_ms=settings.retry_base_ms,
                cap_ms=settings.retry_cap_ms,
                patience_ms=settings.retry_patience_ms,
            ),
        ),
        reserve_bytes=settings.reserve_bytes,
        host_dir=settings.host_dir,
        claims_dir=settings.claims_dir,
        now_ms=real_now_ms,
        open_source=source_of,
    )
