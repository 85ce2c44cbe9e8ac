"""One half of a request that two endpoints serve: the way to one of them.

Invariant: a leg raises the load of its endpoint when it is made and lowers it by the same when it
is over, once, whichever way it ends; a leg that is over holds no connection and hears of none.
"""

from inferbus_router.endpoint import Endpoint
from inferbus_router.policy_retry import Failure
from inferbus_router.upstream_protocol import ResponseReceiver, UpstreamProtocol


class Leg:
    """To one endpoint."""

    sent_ms = 0
    """0: nothing was sent yet."""
    is_over = False
    status = 0
    """Of a response that is a refusal."""
    _parts: tuple[bytes, ...] = ()
    _connection: UpstreamProtocol | None = None
    _awaits = False
    """A response is to come."""
    _prompt_waits = True
    """The response hasn't begun: the prompt counts as unprocessed."""

    def __init__(self, endpoint: Endpoint, receiver: ResponseReceiver, prompt_tokens: int) -> None:
        """`prompt_tokens` are what the endpoint has to compute before it answers; the receiver
        hears of its response.
        """
        self.endpoint = endpoint
        self._receiver = receiver
        self._prompt_tokens = prompt_tokens
        endpoint.started(prompt_tokens)

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

    def send_again(self) -> None:
        """Send the same on a new connection: the one that was kept had been closed."""
        self._awaits = True
        self.endpoint.connect(self)

    @property
    def still_wants_connection(self) -> bool:
        """False once it is over, or has one."""
        return self._awaits and self._connection is None

    def connected(self, connection: UpstreamProtocol) -> None:
        """Send the request on it."""
        self._connection = connection
        connection.send(self._receiver, self._parts)

    def connect_failed(self, detail: str) -> None:
        """There is no connection to the endpoint."""
        self._receiver.response_failed(Failure.CONNECT, detail)

    def released(self) -> None:
        """The connection went back to its endpoint, or is gone."""
        self._connection = None
        self._awaits = False

    def cut(self) -> None:
        """Close the connection: nothing more of the response is wanted."""
        connection = self._connection
        self.released()
        if connection is not None:
            connection.abandon()

    def pause(self) -> None:
        """Take no more of the response for now."""
        if self._connection is not None:
            self._connection.pause()

    def resume(self) -> None:
        """Go on taking it."""
        if self._connection is not None:
            self._connection.resume()

    def first_byte(self) -> None:
        """The response has begun: the prompt is processed."""
        if self._prompt_waits:
            self._prompt_waits = False
            self.endpoint.first_byte(self._prompt_tokens)

    def succeeded(self) -> None:
        """The endpoint did what can be asked of it."""
        if self._end():
            self.endpoint.health.succeeded()

    def failed(self, now_ms: int) -> None:
        """The endpoint didn't."""
        if self._end():
            self.endpoint.health.failed(now_ms)

    def abandoned(self) -> None:
        """It ended without a verdict."""
        if self._end():
            self.endpoint.health.abandoned()

    def _end(self) -> bool:
        """True the first time."""
        if self.is_over:
            return False
        self.is_over = True
        self.cut()
        self.first_byte()
        self.endpoint.ended()
        return True
