"""Following the key set of an identity provider: fetched at the start, again and again, and at once
when a token names a key that isn't in it.

Invariant: the last good set stays in force while the provider can't be reached; however many tokens
name unknown keys, there is one fetch at a time, and a pause after each.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from inferbus_router.token_keys import KeySetError, TokenKeys

log = logging.getLogger("inferbus.router")

_MOST_BYTES = 1 << 20

Fetch = Callable[[str], Awaitable[bytes]]
"""Gets a document; raises `KeySetError` where it can't."""


@dataclass(frozen=True, slots=True)
class KeySetTimes:
    """When a key set is fetched, in real seconds."""

    refresh_seconds: float = 3600
    """Without any reason."""
    least_gap_seconds: float = 10
    """Between two fetches that unknown keys ask for."""
    first_retry_seconds: float = 1
    """After a failure; doubled after each further one."""
    longest_retry_seconds: float = 60


class KeySetFollower:
    """The key set at one address."""

    def __init__(
        self, uri: str, fetch: Fetch, times: KeySetTimes, on_changed: Callable[[], None]
    ) -> None:
        """`on_changed` is called when there is another set."""
        self.keys: TokenKeys | None = None
        """None until the first was fetched."""
        self.failures = 0
        """Fetches that failed, since the last that didn't."""
        self._uri = uri
        self._fetch = fetch
        self._times = times
        self._on_changed = on_changed
        self._wanted = asyncio.Event()
        self._fetching = True
        self._last_seconds = 0.0
        self._task = asyncio.ensure_future(self._follow())

    def is_open(self) -> bool:
        """Whether a key that isn't known may turn out to be one: a fetch runs, or is begun by this
        call, or the last one failed.
        """
        if self._fetching or self.failures:
            return True
        now_seconds = asyncio.get_running_loop().time()
        if now_seconds - self._last_seconds < self._times.least_gap_seconds:
            return False
        self._fetching = True
        self._wanted.set()
        return True

    def stop(self) -> None:
        """Fetch no more."""
        self._task.cancel()

    async def _follow(self) -> None:
        times = self._times
        while True:
            self._fetching = True
            await self._refresh()
            self._fetching = False
            self._last_seconds = asyncio.get_running_loop().time()
            pause_seconds = times.refresh_seconds
            if self.failures:
                doubled = times.first_retry_seconds * 2.0 ** min(self.failures - 1, 30)
                pause_seconds = min(doubled, times.longest_retry_seconds)
            await self._pause(pause_seconds)

    async def _refresh(self) -> None:
        try:
            document = await self._fetch(self._uri)
            if self.keys is None or not self.keys.is_of(document):
                self.keys = TokenKeys(document)
                self._on_changed()
            self.failures = 0
        except KeySetError as error:
            self.failures += 1
            log.warning("the keys of %s can't be had: %s; it is tried again", self._uri, error)

    async def _pause(self, seconds: float) -> None:
        self._wanted.clear()
        try:
            async with asyncio.timeout(seconds):
                await self._wanted.wait()
        except TimeoutError:
            return


async def fetch_document(uri: str) -> bytes:
    """A document over HTTP, at most 1 MiB; raises `KeySetError`."""
    # only routers that check tokens pay for the library
    from aiohttp import ClientError, ClientSession, ClientTimeout

    try:
        async with (
            ClientSession(timeout=ClientTimeout(total=10)) as session,
            session.get(uri, headers={"accept": "application/json"}) as response,
        ):
            if response.status != 200:
                raise KeySetError(f"the server answers {response.status}")
            document = await response.content.read(_MOST_BYTES + 1)
            while len(document) <= _MOST_BYTES and (more := await response.content.read(65536)):
                document += more
    except (ClientError, TimeoutError, ValueError, OSError) as error:
        reason = str(error) or type(error).__name__
        raise KeySetError(f"the server can't be reached: {reason}") from None
    if len(document) > _MOST_BYTES:
        raise KeySetError(f"it is larger than {_MOST_BYTES} bytes")
    return document
