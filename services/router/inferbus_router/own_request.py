"""Requests that the router makes for itself, over the same connections as those of clients.

Invariant: an answer is whole and within its limit, or there is an `OwnRequestError`; nothing of it
counts as load of the endpoint.
"""

import asyncio

from inferbus_router.endpoint import Endpoint
from inferbus_router.policy_retry import Failure
from inferbus_router.relay import ResponseHead
from inferbus_router.upstream_protocol import UpstreamProtocol


class OwnRequestError(Exception):
    """No whole answer; the message says why."""


async def ask(
    endpoint: Endpoint, head: bytes, body: bytes, timeout_seconds: float, most_bytes: int
) -> bytes:
    """The body of the answer; `head` is the request's without its Host and length.

    Raises `OwnRequestError` where there is none in time, it is longer than `most_bytes`, or its
    status isn't 2xx.
    """
    request = b"%b\r\nhost: %b\r\ncontent-length: %d\r\n\r\n%b" % (
        head,
        endpoint.host,
        len(body),
        body,
    )
    asking = _Asking(endpoint, request, most_bytes)
    try:
        async with asyncio.timeout(timeout_seconds):
            asking.start(may_reuse=True)
            return await asking.answer
    except TimeoutError:
        raise OwnRequestError(f"no answer within {timeout_seconds:g} seconds") from None
    finally:
        asking.stop()


class _Asking:
    """One request; seeks a connection and receives the response."""

    def __init__(self, endpoint: Endpoint, request: bytes, most_bytes: int) -> None:
        self.answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._endpoint = endpoint
        self._request = request
        self._most_bytes = most_bytes
        self._connection: UpstreamProtocol | None = None
        self._status = 0
        self._body = bytearray()

    def start(self, may_reuse: bool) -> None:
        connection = self._endpoint.idle.take_newest() if may_reuse else None
        if connection is None:
            self._endpoint.connect(self)
        else:
            self.connected(connection)

    def stop(self) -> None:
        self.answer.cancel()
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.abandon()

    @property
    def still_wants_connection(self) -> bool:
        return not self.answer.done()

    def connected(self, connection: UpstreamProtocol) -> None:
        self._connection = connection
        connection.send(self, (self._request,))

    def connect_failed(self, detail: str) -> None:
        self._fail(detail)

    def response_received(self, head: ResponseHead | None, body: bytes, is_complete: bool) -> None:
        if is_complete:
            self._connection = None
        if head is not None:
            self._status = head.status
        self._body += body
        if len(self._body) > self._most_bytes:
            self._fail(f"the answer is longer than {self._most_bytes} bytes")
            self.stop()
        elif is_complete and not self.answer.done():
            if 200 <= self._status < 300:
                self.answer.set_result(bytes(self._body))
            else:
                self._fail(f"the answer has status {self._status}")

    def response_failed(self, failure: Failure, detail: str) -> None:
        self._connection = None
        if failure is Failure.STALE and not self.answer.done():
            self.start(may_reuse=False)
        else:
            self._fail(detail)

    def _fail(self, detail: str) -> None:
        if not self.answer.done():
            self.answer.set_exception(OwnRequestError(detail))
