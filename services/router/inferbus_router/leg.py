"""One half of a request that two endpoints serve: the way to one of them, and back.

Invariant: a leg raises the load of its endpoint when it is made and lowers it by the same when it
is over, once, whichever way it ends; a leg that is over holds no connection and hears of none.
"""

from inferbus_router.endpoint import Endpoint
from inferbus_router.policy_ask import Ask
from inferbus_router.policy_retry import Failure
from inferbus_router.relay import ResponseHead
from inferbus_router.upstream_protocol import ResponseReceiver, UpstreamProtocol


class Leg:
    """To one endpoint."""

    sent_ms = 0
    """0: nothing was sent yet."""
    is_over = False
    status = 0
    """Of the response; 0: it hasn't begun."""
    has_failed = False
    """The response never comes, or never ends."""
    _parts: tuple[bytes, ...] = ()
    _connection: UpstreamProtocol | None = None
    _awaits = False
    """A response is to come."""

    def __init__(
        self, endpoint: Endpoint, receiver: ResponseReceiver, ask: Ask, now_ms: int
    ) -> None:
        """`ask` is what the endpoint has to compute before it answers; the receiver hears of its
        response.
        """
        self.endpoint = endpoint
        self._receiver = receiver
        self._ask = ask
        self._dispatch = endpoint.started(ask, now_ms)

    def send(self, parts: tuple[bytes, ...], now_ms: int) -> None:
        """Send a request."""
        self._parts = parts
        self.sent_ms = now_ms
        self._awaits = True
        connection = self.endpoint.idle.take_newest()
        if connection is None:
            self.endpoint.connect(self)
        else:
            self.connected(connection)

    @property
    def still_wants_connection(self) -> bool:
        """False once it is over, or has one."""
        return self._awaits and self._connection is None

    def connected(self, connection: UpstreamProtocol) -> None:
        """Send the request on it."""
        self._connection = connection
        connection.send(self, self._parts)

    def connect_failed(self, detail: str) -> None:
        """There is no connection to the endpoint."""
        self.response_failed(Failure.CONNECT, detail)

    def response_received(self, head: ResponseHead | None, body: bytes, is_complete: bool) -> None:
        """Hand it on."""
        if is_complete:
            self._released()
        if head is not None:
            self.status = head.status
        self._receiver.response_received(head, body, is_complete)

    def response_failed(self, failure: Failure, detail: str) -> None:
        """Hand it on, but send again what a kept connection didn't take: it had been closed."""
        self._released()
        if failure is Failure.STALE:
            self._awaits = True
            self.endpoint.connect(self)
        else:
            self.has_failed = True
            self._receiver.response_failed(failure, detail)

    def _cut(self) -> None:
        connection = self._connection
        self._released()
        if connection is not None:
            connection.abandon()

    def _released(self) -> None:
        self._connection = None
        self._awaits = False

    def pause(self) -> None:
        """Take no more of the response for now."""
        if self._connection is not None:
            self._connection.pause()

    def resume(self) -> None:
        """Go on taking it."""
        if self._connection is not None:
            self._connection.resume()

    def first_token(self, now_ms: int) -> None:
        """Its prompt is processed."""
        self.endpoint.first_token(self._dispatch, now_ms)

    @property
    def is_awaited(self) -> bool:
        """Something was sent, and it isn't over."""
        return bool(self.sent_ms) and not self.is_over

    @property
    def has_spoken(self) -> bool:
        """Something is known of its endpoint."""
        return bool(self.status) or self.has_failed

    def succeeded(self) -> None:
        """The endpoint did what can be asked of it."""
        if self._end():
            self.endpoint.health.succeeded()

    def failed(self, now_ms: int) -> None:
        """The endpoint didn't."""
        if self._end():
            self.endpoint.health.failed(now_ms)
            self.endpoint.failed(self._ask)

    def abandoned(self) -> None:
        """It ended without a verdict."""
        if self._end():
            self.endpoint.health.abandoned()

    def _end(self) -> bool:
        """True the first time."""
        if self.is_over:
            return False
        self.is_over = True
        self._cut()
        self.endpoint.ended(self._dispatch)
        return True
