"""A client connection without sockets or time: bytes in, bytes out, and a clock that tests turn."""

import asyncio
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import httptools

from inferbus_router.errors import RequestError
from inferbus_router.http_messages import Page
from inferbus_router.request import Request, RequestIds
from inferbus_router.server_protocol import RunningRequest, ServerProtocol
from inferbus_router.timekeeper import Deadlines, Timekeeper

T = TypeVar("T")

HEAD_MS, BODY_MS, IDLE_MS, CLOSING_MS = 100, 200, 1_000, 300
MAX_HEAD_BYTES, MAX_BODY_BYTES = 1_024, 4_096


class ManualTime(Timekeeper):
    """Deadlines pass when the test says so."""

    def __init__(self) -> None:
        self.passed_ms = 1_000
        self.now_ms = lambda: self.passed_ms
        self.wakes_at_ms = -1
        self._deadlines = []

    def advance(self, elapsed_ms: int) -> None:
        """Let that much time pass, millisecond by millisecond where something is due."""
        end_ms = self.passed_ms + elapsed_ms
        while (due_ms := self._next_due_ms()) is not None and due_ms <= end_ms:
            self.passed_ms = max(self.passed_ms, due_ms)
            for deadlines in list(self._deadlines):
                deadlines.run_passed(self.passed_ms)
        self.passed_ms = end_ms

    def _next_due_ms(self) -> int | None:
        due = [each.next_due_ms() for each in self._deadlines]
        return min((one for one in due if one is not None), default=None)


class FakeTransport(asyncio.Transport):
    """Keeps what is written."""

    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self.is_reading = True
        self.ended = False
        """The sending half is closed, or all of it."""
        self.is_gone = False
        self.on_gone: Callable[[], None] = lambda: None

    def write(self, data: Any) -> None:
        assert not self.ended or not data, "nothing is written behind the end"
        self.written += bytes(data)

    def writelines(self, parts: Any) -> None:
        for part in parts:
            self.write(part)

    def write_eof(self) -> None:
        self.ended = True

    def close(self) -> None:
        self._go()

    def abort(self) -> None:
        self._go()

    def is_closing(self) -> bool:
        return self.is_gone

    def pause_reading(self) -> None:
        self.is_reading = False

    def resume_reading(self) -> None:
        self.is_reading = True

    def get_write_buffer_size(self) -> int:
        return 0

    def _go(self) -> None:
        self.ended = True
        if not self.is_gone:
            self.is_gone = True
            self.on_gone()


class HeldRequest:
    """A request that is answered when the test says so; a `RunningRequest`."""

    def __init__(self, client: ServerProtocol, request: Request) -> None:
        self.request = request
        self.left = 0
        self._client = client

    def answer(self) -> None:
        self._client.answer(self.request, answer())

    def client_left(self) -> None:
        self.left += 1

    def client_paused(self) -> None: ...

    def client_resumed(self) -> None: ...


def answer() -> Page:
    """What every request gets."""
    return Page(200, b"{}")


class ProtocolWorld:
    """One connection, the `Surroundings` it lives in, and the handler behind it."""

    draining = False
    closes_idle = False
    max_head_bytes = MAX_HEAD_BYTES
    max_body_bytes = MAX_BODY_BYTES

    def __init__(self, at_once: bool = True) -> None:
        """`at_once`: requests are answered when they come, otherwise by `answer_next`."""
        self.handler = self
        self.request_ids = RequestIds()
        self.time = ManualTime()
        self.head_deadlines = self._deadlines(HEAD_MS)
        self.body_deadlines = self._deadlines(BODY_MS)
        self.closing_deadlines = self._deadlines(CLOSING_MS)
        self.idle_deadlines: Deadlines[ServerProtocol] = self.time.deadlines(
            IDLE_MS, ServerProtocol.idle_for_long
        )
        self.requests: list[Request] = []
        """Every request that was handed on."""
        self.held: list[HeldRequest] = []
        self.refusals: list[RequestError] = []
        self.open = 0
        self._at_once = at_once
        self.transport = FakeTransport()
        self.connection = ServerProtocol(self)
        self.transport.on_gone = lambda: self.connection.connection_lost(None)
        self.connection.connection_made(self.transport)

    def _deadlines(self, limit_ms: int) -> Deadlines[ServerProtocol]:
        return self.time.deadlines(limit_ms, ServerProtocol.deadline_passed)

    # The surroundings.

    def now_ms(self) -> int:
        return self.time.now_ms()

    def opened(self, connection: ServerProtocol) -> None:
        self.open += 1

    def closed(self, connection: ServerProtocol) -> None:
        self.open -= 1

    # The handler.

    def handle(self, client: ServerProtocol, request: Request) -> RunningRequest | None:
        self.requests.append(request)
        if self._at_once:
            client.answer(request, answer())
            return None
        self.held.append(HeldRequest(client, request))
        return self.held[-1]

    def refused(self, request: Request | None, error: RequestError) -> None:
        self.refusals.append(error)

    # What tests do.

    def feed(self, data: bytes) -> None:
        """Bytes from the client, as long as the router listens."""
        if not self.transport.is_gone:
            self.connection.data_received(data)

    def answer_next(self) -> None:
        """Answer the request that is being served."""
        self.held.pop(0).answer()

    def responses(self) -> list[int]:
        """The statuses of what was answered; fails where it isn't whole, strict HTTP."""
        methods = [request.head.method for request in self.requests]
        return statuses(self.transport.written, methods)

    @property
    def is_over(self) -> bool:
        """Nothing more will be answered on this connection."""
        return self.transport.ended

    def counting(self) -> int:
        """Deadlines that run for the connection."""
        kinds = (
            self.head_deadlines,
            self.body_deadlines,
            self.idle_deadlines,
            self.closing_deadlines,
        )
        return sum(len(kind.items()) for kind in kinds)


def statuses(data: bytes, methods: Iterable[bytes]) -> list[int]:
    """The statuses of whole responses to requests of these methods; interim ones left out."""
    found: list[int] = []
    asked = iter(methods)
    while data:
        head, separator, rest = data.partition(b"\r\n\r\n")
        assert separator, f"half a head: {data!r}"
        length = next(
            (
                int(line.partition(b":")[2])
                for line in head.split(b"\r\n")
                if line.lower().startswith(b"content-length:")
            ),
            0,
        )
        status = _status_of(head + separator)
        if status >= 200 and next(asked, b"") == b"HEAD":
            length = 0
        assert len(rest) >= length, f"half a body: {data!r}"
        data = rest[length:]
        if status >= 200:
            found.append(status)
    return found


def _status_of(head: bytes) -> int:
    parser = httptools.HttpResponseParser(object())
    parser.feed_data(head)
    return parser.get_status_code()
