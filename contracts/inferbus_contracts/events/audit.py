"""Seals over ranges of the log. Written by the console alone."""

from typing import ClassVar

from inferbus_contracts.base import EventData


class AuditSealed(EventData):
    """The hash chain over one range of a stream."""

    event_type: ClassVar[str] = "audit.sealed"

    stream: str
    first_sequence: int
    last_sequence: int
    messages: int
    hash: str
    """SHA-256 over the previous seal's hash and (subject, id, body) of each message in order."""
    previous_hash: str
