"""What has come of the answer to one request, and whoever waits for more of it.

Invariant: bytes are handed out once, in order, and the end of an answer only when it ended
properly; an answer that broke off raises what broke it, after the bytes that came before.
"""

import asyncio
from collections.abc import AsyncIterator, Callable

from inferbus_shared.http_client.failures import NoAnswerError

MOST_HELD_BYTES = 2**18
"""A streamed answer of which so much hasn't been taken is read no further."""


class Answer:
    """One answer; `status` is 0 until its head is there."""

    status = 0
    content_type = ""
    """In lower case, without parameters."""
    retry_after: str | None = None
    """The header of that name."""
    is_complete = False
    _failure: NoAnswerError | None = None
    _waiter: asyncio.Future[None] | None = None
    _held_bytes = 0

    def __init__(self, resume: Callable[[], None] | None = None) -> None:
        """With `resume` the answer is streamed: it is called when there is room again."""
        self._resume = resume
        self._parts: list[bytes] = []

    # What whoever asked does.

    async def whole(self) -> bytes:
        """The body; raises `NoAnswerError`."""
        while not self.is_complete:
            await self._news()
        return self._take()

    async def head(self) -> None:
        """Wait until `status` is known; raises `NoAnswerError`."""
        while not self.status:
            await self._news()

    async def chunks(self) -> AsyncIterator[bytes]:
        """The body as it comes; raises `NoAnswerError`."""
        while True:
            if self._parts:
                yield self._take()
            elif self.is_complete:
                return
            else:
                await self._news()

    async def beginning(self, most_bytes: int) -> bytes:
        """The body up to about so many bytes; raises `NoAnswerError`."""
        parts: list[bytes] = []
        size = 0
        async for chunk in self.chunks():
            parts.append(chunk)
            size += len(chunk)
            if size >= most_bytes:
                break
        return b"".join(parts)

    def _take(self) -> bytes:
        parts, self._parts = self._parts, []
        if self._resume is not None and self._held_bytes >= MOST_HELD_BYTES:
            self._resume()
        self._held_bytes = 0
        return parts[0] if len(parts) == 1 else b"".join(parts)

    async def _news(self) -> None:
        if self._failure is not None:
            raise self._failure
        self._waiter = asyncio.get_running_loop().create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    # What the connection does.

    @property
    def is_full(self) -> bool:
        """Nothing more should be read for now."""
        return self._resume is not None and self._held_bytes >= MOST_HELD_BYTES

    def add(self, body: bytes) -> None:
        """More of the body."""
        self._parts.append(body)
        self._held_bytes += len(body)

    def tell(self) -> None:
        """Something came: wake who waits for it."""
        if self.is_complete or self._resume is not None:
            self._wake()

    def fail(self, failure: NoAnswerError) -> None:
        """Nothing more comes."""
        if not self.is_complete:
            self._failure = self._failure or failure
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
