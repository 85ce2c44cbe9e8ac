"""A client's connection, byte by byte and millisecond by millisecond.

Whatever comes and however it is cut: each request that is whole is answered exactly once, in order,
or the connection ends after one error.
"""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.router.tests.protocol_world import (
    BODY_MS,
    CLOSING_MS,
    HEAD_MS,
    IDLE_MS,
    MAX_BODY_BYTES,
    MAX_HEAD_BYTES,
    ProtocolWorld,
)


def post(body: bytes = b"{}", *lines: bytes) -> bytes:
    return b"POST /v1/x HTTP/1.1\r\nHost: a\r\n%bContent-Length: %d\r\n\r\n%b" % (
        b"".join(line + b"\r\n" for line in lines),
        len(body),
        body,
    )


def chunked(*pieces: bytes) -> bytes:
    body = b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces)
    return b"POST /v1/x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n%b0\r\n\r\n" % body


def check(world: ProtocolWorld) -> None:
    """What holds at every moment in which nothing is being served."""
    answered = world.responses()
    assert len(answered) == len(world.requests) + len(world.refusals)
    assert len(world.refusals) <= 1
    assert all(status == 200 for status in answered[: len(world.requests)])
    assert all(status >= 400 for status in answered[len(world.requests) :])
    assert world.is_over or not world.refusals, "behind an error nothing is served"


# Fuzzing.

_PARTS = st.sampled_from(
    [
        b"\r\n",
        b"\n",
        b"\r",
        b"\r\n\r\n",
        b"0\r\n\r\n",
        b"1\r\na\r\n",
        b"ffffffffffffffff\r\n",
        b"Content-Length: 1\r\n",
        b"Content-Length: 99999\r\n",
        b"Transfer-Encoding: chunked\r\n",
        b"Transfer-Encoding: gzip, chunked\r\n",
        b"Transfer-Encoding:\x0bchunked\r\n",
        b"Expect: 100-continue\r\n",
        b"Connection: close\r\n",
        b"Connection: upgrade\r\nUpgrade: h2c\r\n",
        b" folded\r\n",
        b"Host: b\r\n",
        b"GET / HTTP/1.1\r\n",
        b"HTTP/1.1 200 OK\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"\x16\x03\x01",
        b"\x00",
        b"a" * (MAX_HEAD_BYTES + 1),
        post(),
        chunked(b"ab"),
    ]
)
_WHOLE = st.sampled_from(
    [
        post(),
        post(b""),
        post(b"x" * 100),
        post(b"{}", b"Connection: close"),
        post(b"{}", b"Expect: 100-continue"),
        post(b"x" * (MAX_BODY_BYTES + 1)),
        chunked(),
        chunked(b"a", b"bc"),
        b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET http://a/healthz HTTP/1.1\r\nHost: a\r\n\r\n",
        b"HEAD /healthz HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET / HTTP/1.0\r\n\r\n",
    ]
)


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    """A request with something cut out, put in or changed."""
    data = draw(_WHOLE)
    for _ in range(draw(st.integers(0, 3))):
        start = draw(st.integers(0, len(data)))
        end = draw(st.integers(start, min(len(data), start + 8)))
        data = data[:start] + draw(_PARTS | st.binary(max_size=4)) + data[end:]
    return data


_STREAMS = st.lists(mutated() | _WHOLE | _PARTS | st.binary(max_size=40), max_size=6).map(b"".join)
_CUTS = st.lists(st.integers(1, 200), max_size=20)


def pieces(data: bytes, cuts: list[int]) -> list[bytes]:
    """The bytes as they may arrive."""
    found = []
    for size in cuts:
        found.append(data[:size])
        data = data[size:]
    return [piece for piece in [*found, data] if piece]


@given(_STREAMS, _CUTS)
def test_whatever_comes_is_answered_once_or_ends_the_connection(
    data: bytes, cuts: list[int]
) -> None:
    world = ProtocolWorld()
    for piece in pieces(data, cuts):
        world.feed(piece)
        check(world)
    world.time.advance(10 * IDLE_MS)

    assert world.transport.is_gone, "nobody keeps a connection by saying nothing"
    assert (world.open, world.counting()) == (0, 0)


@given(_STREAMS, _CUTS, st.lists(st.booleans(), max_size=40))
def test_requests_that_take_time_are_answered_once_and_in_order(
    data: bytes, cuts: list[int], answers_now: list[bool]
) -> None:
    world = ProtocolWorld(at_once=False)
    order: list[bytes] = []
    steps = iter(answers_now)
    for piece in pieces(data, cuts):
        if world.transport.is_reading:
            world.feed(piece)
        assert len(world.held) <= 1, "one request at a time"
        if world.held and next(steps, False):
            order.append(world.held[0].request.request_id)
            world.answer_next()
    while world.held and not world.transport.is_gone:
        order.append(world.held[0].request.request_id)
        world.answer_next()

    assert order == [request.request_id for request in world.requests]
    check(world)


@given(_STREAMS, _CUTS)
def test_a_client_that_goes_away_is_told_to_whoever_serves_it_once(
    data: bytes, cuts: list[int]
) -> None:
    world = ProtocolWorld(at_once=False)
    for piece in pieces(data, cuts):
        if world.transport.is_reading:
            world.feed(piece)
    held = list(world.held)
    world.transport.abort()

    assert [request.left for request in held] == [1] * len(held)
    assert (world.open, world.counting()) == (0, 0)


@pytest.mark.slow
@settings(max_examples=10_000, deadline=None)
@given(_STREAMS, _CUTS)
def test_fuzzed_for_longer(data: bytes, cuts: list[int]) -> None:
    world = ProtocolWorld()
    for piece in pieces(data, cuts):
        world.feed(piece)
    check(world)


@given(st.lists(st.sampled_from([post(b"a"), post(b"bb"), post(b"")]), max_size=5), _CUTS)
def test_pipelined_requests_are_all_served(requests: list[bytes], cuts: list[int]) -> None:
    world = ProtocolWorld()
    for piece in pieces(b"".join(requests), cuts):
        world.feed(piece)

    assert world.responses() == [200] * len(requests)
    assert not world.is_over


# Smuggling: what two implementations could read in two ways.

_HIDDEN = b"POST /v1/hidden HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n"
_TE = b"Transfer-Encoding"
SMUGGLED = {
    "CL.TE": post(b"", _TE + b": chunked").replace(b"Content-Length: 0", b"Content-Length: 6"),
    "TE.CL": b"POST /v1/x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n"
    b"Content-Length: 4\r\n\r\n0\r\n\r\n",
    "TE.TE with another coding": post(b"", _TE + b": chunked", _TE + b": identity"),
    "TE.TE in one list": post(b"", _TE + b": identity, chunked"),
    "TE.TE obscured by a tab": post(b"", _TE + b":\tchunked\t, x"),
    "TE.TE obscured by a quote": post(b"", _TE + b': "chunked"'),
    "TE with a vertical tab": post(b"", _TE + b":\x0bchunked"),
    "TE folded": post(b"", _TE + b":\r\n chunked"),
    "TE with a space before the colon": post(b"", _TE + b" : chunked"),
    "TE behind a line feed": post(b"", b"X: y\n" + _TE + b": chunked"),
    "TE behind a carriage return": post(b"", b"X: y\r" + _TE + b": chunked"),
    "TE of HTTP/1.0": post(b"", _TE + b": chunked").replace(b"HTTP/1.1", b"HTTP/1.0"),
    "a line folded into the length": post(b"").replace(b"Length: 0", b"Length:\r\n 0"),
    "two lengths": post(b"", b"Content-Length: 6"),
    "a length with a plus": post(b"").replace(b"Length: 0", b"Length: +0"),
    "a length with an underscore": post(b"").replace(b"Length: 0", b"Length: 1_0"),
    "a length in other digits": post(b"").replace(b"Length: 0", "Length: ٠".encode()),
    "a bare line feed behind the head": post(b"").replace(b"\r\n\r\n", b"\n\n"),
    "two hosts": post(b"", b"Host: b"),
    "no host": post(b"").replace(b"Host: a\r\n", b""),
    "a line without a colon": post(b"", b"nothing"),
    "a header whose name is empty": post(b"", b": x"),
    "a space within the target": post(b"").replace(b"/v1/x", b"/v1/x y"),
    "a target of an authority": post(b"").replace(b"/v1/x", b"a:80"),
    "a target of another scheme": post(b"").replace(b"/v1/x", b"file:///v1/x"),
    "a chunk size too large for any number": chunked(b"a").replace(b"1\r\na", b"1" * 17 + b"\r\na"),
    "a negative chunk size": chunked(b"a").replace(b"1\r\na", b"-1\r\na"),
    "a chunk without its line end": chunked(b"a").replace(b"a\r\n0", b"ab\r\n0"),
    "a chunk ended by a line feed": chunked(b"a").replace(b"1\r\na", b"1\na"),
    "a chunk extension with a line feed": chunked(b"a").replace(b"1\r\na", b"1;x=\ny\r\na"),
    "a chunk extension with a carriage return": chunked(b"a").replace(b"1\r\na", b"1;x=\ry\r\na"),
}


@pytest.mark.parametrize("size", [1, 7, 1 << 20])
@pytest.mark.parametrize("data", SMUGGLED.values(), ids=SMUGGLED.keys())
def test_what_could_be_read_in_two_ways_is_refused_and_nothing_behind_it_is_served(
    data: bytes, size: int
) -> None:
    world = ProtocolWorld()
    data += _HIDDEN
    for position in range(0, len(data), size):
        world.feed(data[position : position + size])
    check(world)

    assert world.requests == []
    assert world.refusals[0].status == 400
    assert world.is_over


@pytest.mark.parametrize("size", [1, 7, 1 << 20])
def test_a_request_smuggled_as_a_body_stays_a_body(size: int) -> None:
    world = ProtocolWorld()
    for data in (post(_HIDDEN), chunked(_HIDDEN[:10], _HIDDEN[10:])):
        for position in range(0, len(data), size):
            world.feed(data[position : position + size])

    assert [request.body for request in world.requests] == [_HIDDEN, _HIDDEN]


def test_chunk_extensions_within_the_limits_are_passed_over() -> None:
    world = ProtocolWorld()
    world.feed(chunked(b"a").replace(b"1\r\na", b'1;name="value";flag\r\na'))

    assert [request.body for request in world.requests] == [b"a"]


@pytest.mark.parametrize(
    "endless",
    [
        pytest.param(b"1;" + b"x" * 64, id="extension"),
        pytest.param(b"0\r\n" + b"x: y\r\n" * 10, id="trailers"),
    ],
)
def test_what_stands_between_chunks_is_bounded(endless: bytes) -> None:
    """A client can't make the router read for ever what is never counted as body."""
    world = ProtocolWorld()
    world.feed(chunked().removesuffix(b"0\r\n\r\n") + endless)
    for _ in range(1000):
        world.feed(endless[-60:])
        if world.is_over:
            break

    assert [error.status for error in world.refusals] == [431]


# Deadlines.


def test_rt_33_a_head_has_its_time_from_its_first_byte() -> None:
    world = ProtocolWorld()
    world.feed(b"POST /v1/")
    for _ in range(9):
        world.time.advance(HEAD_MS // 10)
        world.feed(b"a")
    assert world.refusals == []
    world.time.advance(HEAD_MS // 10)

    assert world.responses() == [408]
    assert world.is_over


def test_rt_33_a_body_has_its_time_from_each_piece() -> None:
    world = ProtocolWorld()
    world.feed(post(b"x" * 30)[:-30])
    for _ in range(29):
        world.time.advance(BODY_MS - 1)
        world.feed(b"x")
    assert world.responses() == []
    world.feed(b"x")
    assert world.responses() == [200]

    world.feed(post(b"xx")[:-1])
    world.time.advance(BODY_MS)
    assert world.responses() == [200, 408]


@pytest.mark.parametrize("request_before", [False, True])
def test_rt_33_a_connection_without_a_request_is_closed(request_before: bool) -> None:
    world = ProtocolWorld()
    if request_before:
        world.feed(post())
    world.time.advance(2 * IDLE_MS)

    assert world.transport.is_gone
    assert world.refusals == []


def test_rt_33_no_deadline_of_the_client_runs_while_it_is_served() -> None:
    world = ProtocolWorld(at_once=False)
    world.feed(post() + b"POST /v1/")
    world.time.advance(100 * (IDLE_MS + BODY_MS + HEAD_MS))
    assert not world.is_over
    world.answer_next()
    world.time.advance(HEAD_MS)

    assert world.responses() == [200, 408], "the half head behind it has its own time then"


def test_rt_33_a_refused_client_that_goes_on_sending_is_cut_off() -> None:
    world = ProtocolWorld()
    world.feed(b"nonsense\r\n\r\n")
    assert world.is_over
    assert not world.transport.is_gone, "it may still read the answer"
    for _ in range(20):
        world.feed(b"x" * 1000)
        world.time.advance(CLOSING_MS // 20)

    assert world.transport.is_gone
    assert world.responses() == [400]


def test_a_client_that_sends_ahead_without_end_is_not_read_without_end() -> None:
    world = ProtocolWorld(at_once=False)
    world.feed(post() * 3)

    assert not world.transport.is_reading
    for _ in range(3):
        world.answer_next()
    assert world.transport.is_reading
    assert world.responses() == [200] * 3
