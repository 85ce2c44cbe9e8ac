"""A connection to an engine, byte by byte: its response ends exactly once, whatever it sends.

Either it is whole, or it failed; then nothing more is told, and a connection is kept for another
request only where nobody could take it for something else.
"""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inferbus_router.policy_retry import Failure
from inferbus_router.relay import ResponseHead
from inferbus_router.upstream_protocol import UpstreamProtocol
from services.router.tests.protocol_world import FakeTransport

REQUEST = (b"POST / HTTP/1.1\r\n\r\n",)


class Receiver:
    """Writes down what it is told; a `ResponseReceiver`."""

    def __init__(self) -> None:
        self.heads: list[ResponseHead] = []
        self.body = b""
        self.endings: list[str] = []

    def response_received(self, head: ResponseHead | None, body: bytes, is_complete: bool) -> None:
        assert not self.endings, "it had ended"
        assert (head is None) is bool(self.heads), "the head comes once, and first"
        if head is not None:
            self.heads.append(head)
        self.body += body
        if is_complete:
            self.endings.append("whole")

    def response_failed(self, failure: Failure, detail: str) -> None:
        assert not self.endings, "it had ended"
        assert detail
        self.endings.append(failure.name)


class Wire:
    """A connection, and its owner."""

    def __init__(self) -> None:
        self.released = 0
        self.lost = 0
        self.connection = UpstreamProtocol(self)
        self.transport = FakeTransport()
        self.transport.on_gone = lambda: self.connection.connection_lost(None)
        self.connection.connection_made(self.transport)

    def release(self, connection: UpstreamProtocol) -> None:
        self.released += 1

    def closed(self, connection: UpstreamProtocol) -> None:
        self.lost += 1

    def ask(self) -> Receiver:
        receiver = Receiver()
        self.connection.send(receiver, REQUEST)
        return receiver

    def feed(self, data: bytes) -> None:
        if data and not self.transport.is_gone:
            self.connection.data_received(data)

    def end(self, error: Exception | None = None) -> None:
        """The engine closes, or resets, the connection."""
        if not self.transport.is_gone:
            self.transport.is_gone = True
            self.connection.connection_lost(error)


def response(body: bytes = b"{}", *lines: bytes, status: int = 200) -> bytes:
    head = b"".join(b"%b\r\n" % line for line in lines)
    return b"HTTP/1.1 %d X\r\n%bContent-Length: %d\r\n\r\n%b" % (status, head, len(body), body)


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n"
UNTIL_CLOSE = b"HTTP/1.1 200 OK\r\n\r\nabc"
INTERIM = b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n"
_WHOLE = st.sampled_from(
    [
        response(),
        response(b"x" * 500),
        response(b"", status=204),
        response(b"", b"Connection: close"),
        response(b"no", status=503),
        CHUNKED,
        UNTIL_CLOSE,
        INTERIM + response(),
        b"HTTP/1.1 100 Continue\r\n\r\n" + CHUNKED,
        b"HTTP/1.0 200 OK\r\n\r\nold",
    ]
)
_PARTS = st.sampled_from(
    [
        b"\r\n",
        b"\n",
        b"0\r\n\r\n",
        b"ffffffffffffffffff\r\n",
        b"Content-Length: 1\r\n",
        b"Content-Length: 5\r\n",
        b"Transfer-Encoding: chunked\r\n",
        b"Transfer-Encoding: gzip\r\n",
        b"HTTP/1.1 101 Switching\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n",
        b"HTTP/1.1 100 Continue\r\nContent-Length: 5\r\n\r\n",
        b"HTTP/9.9 999 ?\r\n\r\n",
        b"\x00\xff",
        INTERIM,
        response(),
    ]
)


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    """A response with something cut out, put in or changed."""
    data = draw(_WHOLE)
    for _ in range(draw(st.integers(0, 3))):
        start = draw(st.integers(0, len(data)))
        end = draw(st.integers(start, min(len(data), start + 6)))
        data = data[:start] + draw(_PARTS | st.binary(max_size=3)) + data[end:]
    return data


_STREAMS = st.lists(mutated() | _WHOLE | st.binary(max_size=30), min_size=1, max_size=3).map(
    b"".join
)
_CUTS = st.lists(st.integers(1, 100), max_size=15)


def exchange(data: bytes, cuts: list[int], reset: bool) -> tuple[Wire, Receiver]:
    """One request, what the engine sends to it, and the end of the connection."""
    wire = Wire()
    receiver = wire.ask()
    for size in [*cuts, len(data)]:
        wire.feed(data[:size])
        data = data[size:]
        if receiver.endings == ["whole"]:
            break
    kept = wire.released
    assert kept <= 1
    assert not kept or receiver.endings == ["whole"]
    assert not (kept and wire.transport.is_gone), "what is kept is open"
    wire.end(ConnectionResetError() if reset else None)
    assert len(receiver.endings) == 1
    assert wire.lost == 1
    return wire, receiver


@given(_STREAMS, _CUTS, st.booleans())
def test_whatever_an_engine_sends_its_response_ends_once(
    data: bytes, cuts: list[int], reset: bool
) -> None:
    exchange(data, cuts, reset)


@pytest.mark.slow
@settings(max_examples=10_000, deadline=None)
@given(_STREAMS, _CUTS, st.booleans())
def test_fuzzed_for_longer(data: bytes, cuts: list[int], reset: bool) -> None:
    exchange(data, cuts, reset)


@given(_WHOLE, _CUTS)
def test_a_whole_response_is_the_same_however_it_is_cut(data: bytes, cuts: list[int]) -> None:
    _, whole = exchange(data, [], reset=False)
    _, cut = exchange(data, cuts, reset=False)

    assert (cut.body, cut.endings) == (whole.body, ["whole"])
    assert cut.heads[0].status == whole.heads[0].status >= 200


@given(_WHOLE, st.integers(0, 1000))
def test_a_response_that_is_cut_off_is_not_taken_for_whole(data: bytes, at: int) -> None:
    """But for one whose end is the end of the connection: that can't be told."""
    end = at % len(data)
    _, receiver = exchange(data[:end], [], reset=True)
    whole_length = len(data.rstrip(b"\r\n")) if b"chunked" not in data else len(data)

    assert receiver.endings != ["whole"] or end >= whole_length


@pytest.mark.parametrize("behind", [b"x", response(b"evil"), INTERIM, b"\x00"])
@pytest.mark.parametrize("together", [True, False])
def test_more_than_was_announced_costs_the_connection_and_nobody_else(
    behind: bytes, together: bool
) -> None:
    wire = Wire()
    receiver = wire.ask()
    for piece in [response(b"good") + behind] if together else [response(b"good"), behind]:
        wire.feed(piece)

    assert (receiver.body, receiver.endings) == (b"good", ["whole"])
    assert wire.transport.is_gone
    assert wire.lost == 1


def test_responses_of_a_kept_connection_are_told_apart() -> None:
    wire = Wire()
    bodies = []
    for number in range(5):
        receiver = wire.ask()
        wire.feed(INTERIM * number + response(b"%d" % number))
        bodies.append(receiver.body)

    assert bodies == [b"0", b"1", b"2", b"3", b"4"]
    assert wire.released == 5


@pytest.mark.parametrize(
    ("used", "sent", "expected"),
    [
        (True, b"", Failure.STALE),
        (True, b"H", Failure.BROKEN),
        (True, INTERIM, Failure.BROKEN),
        (False, b"", Failure.BROKEN),
    ],
)
def test_only_a_kept_connection_that_said_nothing_may_have_been_stale(
    used: bool, sent: bytes, expected: Failure
) -> None:
    wire = Wire()
    if used:
        wire.ask()
        wire.feed(response())
    receiver = wire.ask()
    wire.feed(sent)
    wire.end()

    assert receiver.endings == [expected.name]
