"""Model artifacts on their way to a node."""

from typing import ClassVar

from pydantic import Field

from inferbus_contracts.base import EventData
from inferbus_contracts.errors import Problem


class ModelRequested(EventData):
    """A node needs an artifact. Keyed by artifact and node."""

    event_type: ClassVar[str] = "model.requested"

    artifact: str
    """Digest of source, revision and filters: what the cache is keyed by."""
    node: str
    source: str
    """URI, e.g. `hf://Qwen/Qwen2.5-0.5B-Instruct` or `host:///models/x`."""
    revision: str | None = None
    include: list[str] = Field(default_factory=list)
    """Glob patterns of the files to fetch; empty means all."""
    exclude: list[str] = Field(default_factory=list)
    destination: str
    """Directory that shows the artifact when it is complete."""
    credentials: str | None = None
    """Name of the Secret document that holds them; never the value."""
    environment: dict[str, str] = Field(default_factory=dict)
    """Plain settings such as HF_ENDPOINT."""
    requested_by: str = ""
    """Key of the workload that waits for it."""


class ModelProgressed(EventData):
    """How far a download is; at most one a second."""

    event_type: ClassVar[str] = "model.progressed"

    artifact: str
    node: str
    bytes_done: int
    bytes_total: int | None = None
    bytes_per_second: float = 0.0


class ModelReady(EventData):
    """The artifact is complete and may be used."""

    event_type: ClassVar[str] = "model.ready"

    artifact: str
    node: str
    path: str
    manifest_digest: str
    bytes: int
    files: int


class ModelFailed(EventData):
    """The download ended without the artifact."""

    event_type: ClassVar[str] = "model.failed"

    artifact: str
    node: str
    problem: Problem
    retry_at_ms: int | None = None
    """When it is tried again; None when only a new request does."""
