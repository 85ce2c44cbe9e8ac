"""Reading a span of a file by HTTP.

The one place that knows what a status, a `Content-Range` and a broken connection mean. Invariant:
bytes are only handed on when the server says that they belong to the span that was asked for, of a
file of the size that was listed.
"""

import asyncio
import re
from collections.abc import AsyncGenerator, Mapping

import aiohttp

from inferbus_contracts.errors import ErrorCode, Problem, ProblemsError
from inferbus_model_downloader.policy_redaction import redacted
from inferbus_model_downloader.policy_retry import asked_wait_ms, is_transient
from inferbus_model_downloader.policy_spans import Span
from inferbus_model_downloader.ports import TransientError
from inferbus_shared.clock import real_now_ms

CONNECT_SECONDS = 15.0
_READ_BUFFER_BYTES = 1 << 20
_CONTENT_RANGE = re.compile(r"bytes (\d+)-(\d+)/(\d+|\*)")
_UNAUTHORIZED = frozenset({401, 403})
_GONE = frozenset({404, 410})


class RefusedError(ProblemsError):
    """The server will not give this address."""


def open_session(connections: int, stall_seconds: float) -> aiohttp.ClientSession:
    """A session for at most `connections` at a time; one silent for `stall_seconds` has failed.

    Proxies come from the environment. Credentials are dropped where a redirect leaves the host.
    """
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=connections),
        timeout=aiohttp.ClientTimeout(
            total=None, sock_connect=CONNECT_SECONDS, sock_read=stall_seconds
        ),
        read_bufsize=_READ_BUFFER_BYTES,
        trust_env=True,
        headers={"Accept-Encoding": "identity"},
    )


class RangedReader:
    """Reads spans of one address, and remembers where the server sent it to."""

    def __init__(self, session: aiohttp.ClientSession, name: str, size_bytes: int) -> None:
        """`name` is what problems call the file."""
        self._session = session
        self._name = name
        self._size_bytes = size_bytes
        self.location = ""
        """The address that answered last, after redirects."""

    async def read(
        self, address: str, headers: Mapping[str, str], span: Span
    ) -> AsyncGenerator[bytes, None]:
        """The bytes of `span`, perhaps fewer.

        Raises `RefusedError` (MODEL_UNAUTHORIZED, MODEL_NOT_FOUND, MODEL_SOURCE_UNREACHABLE),
        `ProblemsError` (MODEL_CORRUPT: not the file that was listed) or `TransientError`.
        """
        wanted = {**headers, "Range": f"bytes={span.start}-{span.stop - 1}"}
        try:
            async with self._session.get(address, headers=wanted) as response:
                skip = self._check(response, span)
                self.location = str(response.url)
                async for part in response.content.iter_any():
                    if skip >= len(part):
                        skip -= len(part)
                    else:
                        yield part[skip:]
                        skip = 0
        except (aiohttp.ClientError, TimeoutError, asyncio.IncompleteReadError) as error:
            reason = redacted(str(error)) or type(error).__name__
            raise TransientError(f"{self._name}: {reason}") from error

    def _check(self, response: aiohttp.ClientResponse, span: Span) -> int:
        """How many bytes of the body come before the span; raises unless it is the file."""
        if response.status == 206:
            match = _CONTENT_RANGE.fullmatch(response.headers.get("Content-Range", ""))
            if match is None or int(match[1]) != span.start:
                raise TransientError(
                    f"{self._name}: the answer is another range than was asked for"
                )
            self._check_size(match[3])
            return 0
        if response.status == 200:
            encoded = response.headers.get("Content-Encoding", "identity") != "identity"
            self._check_size("*" if encoded else response.headers.get("Content-Length", "*"))
            return span.start
        if response.status == 416:
            raise ProblemsError(self._corrupt("it is shorter"))
        if is_transient(response.status):
            headers = {name.lower(): value for name, value in response.headers.items()}
            raise TransientError(
                f"{self._name}: status {response.status}", asked_wait_ms(headers, real_now_ms())
            )
        raise refused(response.status, self._name, response.host)

    def _check_size(self, told: str) -> None:
        if told != "*" and int(told) != self._size_bytes:
            raise ProblemsError(self._corrupt(f"it has {told} bytes"))

    def _corrupt(self, what: str) -> Problem:
        return Problem(
            code=ErrorCode.MODEL_CORRUPT,
            message=f"a file is not what its source listed: {what}, listed are {self._size_bytes}",
            field=self._name,
            remedy="the source is broken or changed meanwhile; try again, or another mirror",
        )


def refused(status: int, name: str, host: str | None) -> RefusedError:
    """What a status that is neither success nor passing means for `name`."""
    if status in _UNAUTHORIZED:
        code = ErrorCode.MODEL_UNAUTHORIZED
        message = "the source doesn't let this node have it"
        remedy = (
            "check the name; for a private or gated model accept its terms, and give a token that "
            "may read it (HF_TOKEN)"
        )
    elif status in _GONE:
        code = ErrorCode.MODEL_NOT_FOUND
        message = "the source doesn't have it"
        remedy = "check the name and the revision; a private model also needs a token"
    else:
        code = ErrorCode.MODEL_SOURCE_UNREACHABLE
        message = "the source gave an answer that is of no use"
        remedy = "check the endpoint, and proxies on the way"
    return RefusedError(
        Problem(
            code=code,
            message=f"{message} (status {status} from {host or 'an unknown host'})",
            field=name,
            remedy=remedy,
        )
    )
