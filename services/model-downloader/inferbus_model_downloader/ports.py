"""What the download is written against: a source that can be listed and read in ranges.

A further kind of source is one adapter with this shape and one line in `sources.py`.
"""

from collections.abc import AsyncGenerator
from typing import Protocol

from inferbus_model_downloader.policy_files import Snapshot, SourceFile
from inferbus_model_downloader.policy_spans import Span


class TransientError(Exception):
    """The source failed in a way that may pass: the same request may be made again."""

    def __init__(self, reason: str, asked_wait_ms: int | None = None) -> None:
        """`asked_wait_ms`: how long the source asks to be left alone."""
        super().__init__(reason)
        self.asked_wait_ms = asked_wait_ms


class Source(Protocol):
    """A place a model is fetched from, as one request sees it.

    Every method raises `TransientError`, or `ProblemsError` where asking again is of no use; texts
    of either carry no secrets.
    """

    async def resolve(self, revision: str | None) -> Snapshot:
        """What the source holds at `revision` (None: its default), all of it."""
        ...

    def read(self, snapshot: Snapshot, file: SourceFile, span: Span) -> AsyncGenerator[bytes, None]:
        """The bytes of a span in order, in pieces of any size; it may end early."""
        ...

    async def close(self) -> None:
        """Let go of connections."""
        ...
