"""The knobs of the downloader, the same for the service and the command line."""

from pathlib import Path
from typing import ClassVar

from pydantic import Field
from pydantic_settings import SettingsConfigDict

from inferbus_contracts.services import Service
from inferbus_shared.settings import ServiceSettings


class DownloaderSettings(ServiceSettings):
    """Prefix `INFERBUS_MODEL_DOWNLOADER_`."""

    service: ClassVar[Service] = Service.MODEL_DOWNLOADER
    model_config = SettingsConfigDict(
        env_prefix="INFERBUS_MODEL_DOWNLOADER_",
        frozen=True,
        extra="ignore",
        use_attribute_docstrings=True,
    )

    node: str = Field(default="local", min_length=1)
    """The node whose requests are served."""
    cache_dir: Path | None = None
    """Where artifacts are kept. None: the service's is `~/.cache/inferbus/models`; the command
    line's lies beside the output folder, or in it when that exists already."""
    host_dir: Path = Path("/")
    """What `/` of `host://` paths stands for."""
    claims_dir: Path = Path("/")
    """Where claims are mounted: `pvc://<claim>/<path>` is looked for below."""
    credentials_dir: Path | None = None
    """Folder with a folder for each Secret, in which a file for each key holds its value."""

    max_workers: int = Field(default=8, ge=1, le=64)
    """Connections for one artifact."""
    parallel_requests: int = Field(default=8, ge=1, le=64)
    """Requests that the service works on at once; those that wait for one download count too."""
    chunk_bytes: int = Field(default=64 << 20, ge=4096)
    """The most that is asked for with one request, and lost by a kill."""
    reserve_bytes: int = Field(default=256 << 20, ge=0)
    """What a download leaves free on the disk of the cache."""

    stall_seconds: float = Field(default=30.0, gt=0)
    """A connection that is silent for so long has failed."""
    retry_attempts: int = Field(default=6, ge=1)
    """Failures in a row, without a byte in between, that end a download."""
    retry_base_ms: int = Field(default=1_000, ge=1)
    """The first pause; each further one is twice as long."""
    retry_cap_ms: int = Field(default=60_000, ge=1)
    """The longest pause of our own."""
    retry_patience_ms: int = Field(default=300_000, ge=0)
    """The longest pause that a source may ask for."""
    again_base_seconds: int = Field(default=30, ge=1)
    """After how long the service tries a failed request again; each time twice as long."""
    again_cap_seconds: int = Field(default=1_800, ge=1)
    """The longest such pause."""
