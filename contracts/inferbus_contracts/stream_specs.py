"""What can stand on the server, as data: streams and what they source, durables.

Pure. Which ones there are is `topology`'s to say.
"""

from dataclasses import dataclass

from inferbus_contracts.services import Service


@dataclass(frozen=True, kw_only=True)
class SourceSpec:
    """Events copied from another stream; `destination` is a subject transform or None."""

    stream: str
    filter: str
    destination: str | None = None


@dataclass(frozen=True, kw_only=True)
class StreamSpec:
    """One stream as it should be."""

    name: str
    subjects: tuple[str, ...] = ()
    sources: tuple[SourceSpec, ...] = ()
    max_age_seconds: int = 0
    """0: no age."""
    max_per_subject: int = -1
    duplicate_window_seconds: int = 120
    atomic: bool = False
    """Accepts atomic batches."""
    timers: bool = False
    """Accepts scheduled messages."""
    rollup: bool = False
    message_ttl: bool = False
    deletion_marker_ttl_seconds: int = 0
    refuse_when_full: bool = False
    """A full stream refuses new messages; otherwise it drops its oldest."""
    share: float | None = 0.05
    """The most it may take of the storage limit, 0 to 1; None: as much as there is."""
    repeated: bool = False
    """Its writers say the same again every few seconds, so the last of it may be lost with the
    server: it isn't waited for until it is on disk."""


@dataclass(frozen=True, kw_only=True)
class DurableSpec:
    """One durable pull consumer as it should be."""

    name: str
    stream: str
    service: Service
    filter: str
    ordered: bool = True
    """One event under way at a time: the order of the log is the order of work."""


@dataclass(frozen=True, kw_only=True)
class Topology:
    """Everything that stands on the server."""

    streams: tuple[StreamSpec, ...]
    durables: tuple[DurableSpec, ...]
