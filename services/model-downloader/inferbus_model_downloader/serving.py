"""The service: requests for this node from the bus, answered by one cache."""

from pathlib import Path

from inferbus_model_downloader.handlers import RequestHandler
from inferbus_model_downloader.metrics import DownloadMetrics
from inferbus_model_downloader.settings import DownloaderSettings
from inferbus_model_downloader.wiring import build_downloader
from inferbus_shared.bus.service import Runtime

DEFAULT_CACHE = Path("~/.cache/inferbus/models")


async def serve(runtime: Runtime[DownloaderSettings]) -> None:
    """Wire the handler to the requests for the node that the settings name."""
    settings = runtime.settings
    cache = (settings.cache_dir or DEFAULT_CACHE).expanduser().absolute()
    handler = RequestHandler(
        runtime.bus,
        build_downloader(settings, cache),
        settings,
        DownloadMetrics(runtime.registry),
    )
    # Each registration is a poll of its own, so that a small model doesn't wait for a large one.
    for _ in range(settings.parallel_requests):
        runtime.on_inbox(handler.handle, nodes=(settings.node,))
