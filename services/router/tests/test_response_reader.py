"""What is taken for a response of an engine, and how it reaches the client."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferbus_router.relay import Relay, ResponseHead, read_response_head
from inferbus_router.response_reader import ResponseReader


def fed(*pieces: bytes) -> tuple[ResponseReader, str]:
    """A reader after these pieces, and the first problem."""
    reader = ResponseReader()
    reader.begin()
    for piece in pieces:
        if problem := reader.feed(piece):
            return reader, problem
    return reader, ""


def response(body: bytes = b"{}", *lines: str, status: str = "200 OK") -> bytes:
    head = "".join(f"{line}\r\n" for line in (f"HTTP/1.1 {status}", *lines))
    return head.encode("latin-1") + b"Content-Length: %d\r\n\r\n" % len(body) + body


@given(st.binary(max_size=300), st.lists(st.integers(1, 60), max_size=12))
def test_it_does_not_matter_how_the_bytes_are_cut(body: bytes, cuts: list[int]) -> None:
    data, pieces = response(body, "X: y"), []
    for cut in cuts:
        pieces.append(data[:cut])
        data = data[cut:]
    reader, problem = fed(*(piece for piece in (*pieces, data) if piece))

    assert not problem
    assert reader.is_complete
    assert reader.is_reusable
    assert reader.take_body() == body


def test_a_head_means_the_same_whatever_the_connection_brought_before() -> None:
    chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
    answers = (chunked, response(b"x"), response(b"xyz"), response(b"x"), chunked)
    reader = ResponseReader()
    said = []
    for answer in (*answers, *answers, response(b"x", status="404 Not Found")):
        reader.begin()
        assert not reader.feed(answer)
        assert reader.head is not None
        said.append((reader.head.status, reader.head.content_length, reader.head.is_chunked))

    once = [(200, None, True), (200, 1, False), (200, 3, False), (200, 1, False), (200, None, True)]
    assert said == [*once, *once, (404, 1, False)]


def test_interim_responses_are_passed_over() -> None:
    interim = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"
    for pieces in ([interim + response(b"x")], [interim, response(b"x")]):
        reader, problem = fed(*pieces)
        assert not problem
        assert reader.head is not None
        assert (reader.head.status, reader.take_body()) == (200, b"x")
        assert reader.is_complete


@pytest.mark.parametrize(
    "data",
    [
        b"garbage",
        b"garbage\r\n\r\n",
        b"HTTP/1.1 200 OK\nContent-Length: 0\n\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
        b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nabc",
        b"HTTP/1.1 101 Switching\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 xx OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + b"a" * 300_000,
    ],
)
def test_what_is_no_response_is_a_problem(data: bytes) -> None:
    reader, problem = fed(data)

    assert problem
    assert not reader.is_complete


@pytest.mark.parametrize("behind", [b"HTTP/1.1 200 OK\r\n\r\n", b"H", b"x"])
def test_what_comes_behind_the_response_makes_the_connection_unusable(behind: bytes) -> None:
    reader, problem = fed(response(b"{}") + behind)

    assert reader.is_complete
    assert reader.take_body() == b"{}"
    assert problem


@pytest.mark.parametrize(
    ("data", "reusable"),
    [
        (response(b"", "Connection: close"), False),
        (response(b"").replace(b"1.1", b"1.0"), False),
        (response(b"", "Connection: keep-alive").replace(b"1.1", b"1.0"), True),
        (b"HTTP/1.1 204 No Content\r\n\r\n", True),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", True),
    ],
)
def test_which_connections_can_be_kept(data: bytes, reusable: bool) -> None:
    reader, problem = fed(data)

    assert not problem
    assert reader.is_complete
    assert reader.is_reusable is reusable


def test_a_body_until_the_connection_closes_is_not_complete_before() -> None:
    reader, problem = fed(b"HTTP/1.0 200 OK\r\nX: y\r\n\r\nabc", b"def")

    assert not problem
    assert not reader.is_complete
    assert reader.head is not None
    assert reader.head.ends_with_connection
    assert reader.take_body() == b"abcdef"


# To the client.


def head_of(*lines: str, status: int = 200) -> ResponseHead:
    text = "".join(f"\r\n{line}" for line in lines)
    return read_response_head(status, f"HTTP/1.0 {status} Fine{text}".encode("latin-1"))


def relayed(relay: Relay, *pieces: bytes, keep_alive: bool = True) -> bytes:
    out = relay.head(b"id-1", keep_alive)
    return out + b"".join(relay.body(piece) for piece in pieces) + relay.end()


def test_headers_reach_the_client_but_for_the_connections_own() -> None:
    head = head_of(
        "Server: x",
        "Content-Type: Text/Plain; charset=utf-8",
        "Set-Cookie: a",
        "Set-Cookie: b",
        "Connection: keep-alive",
        "Keep-Alive: timeout=5",
        "X-Request-Id: engine",
        "Content-Length: 2",
        "Trailer: x",
        status=404,
    )
    out = relayed(Relay(head, 1, drop_usage=False), b"ab")
    lines = out.split(b"\r\n\r\n")[0].split(b"\r\n")

    assert lines[0] == b"HTTP/1.1 404 Fine"
    assert sorted(lines[1:]) == [
        b"Server: x",
        b"Set-Cookie: a",
        b"Set-Cookie: b",
        b"content-length: 2",
        b"content-type: Text/Plain; charset=utf-8",
        b"x-request-id: id-1",
    ]
    assert lines.index(b"Set-Cookie: a") < lines.index(b"Set-Cookie: b")
    assert out.endswith(b"\r\n\r\nab")


def test_a_body_of_unknown_length_comes_in_chunks() -> None:
    out = relayed(Relay(head_of("Transfer-Encoding: chunked"), 1, False), b"ab", b"c" * 20)

    assert b"\r\ntransfer-encoding: chunked\r\n" in out
    assert b"content-length" not in out
    assert out.endswith(b"\r\n\r\n2\r\nab\r\n14\r\n" + b"c" * 20 + b"\r\n0\r\n\r\n")


def test_to_http_1_0_it_ends_with_the_connection() -> None:
    relay = Relay(head_of("Transfer-Encoding: chunked"), 0, drop_usage=False)
    out = relayed(relay, b"ab", keep_alive=False)

    assert relay.must_close
    assert b"\r\nconnection: close\r\n" in out
    assert b"chunked" not in out
    assert out.endswith(b"\r\n\r\nab")


@pytest.mark.parametrize("status", [204, 304])
def test_a_response_without_a_body_is_not_given_one(status: int) -> None:
    relay = Relay(head_of(status=status), 1, drop_usage=False)

    assert not relay.must_close
    assert relayed(relay).endswith(b"x-request-id: id-1\r\n\r\n")


def test_a_stream_that_may_lose_an_event_has_no_length() -> None:
    head = head_of("Content-Type: text/event-stream", "Content-Length: 9")

    assert b"transfer-encoding: chunked" in Relay(head, 1, drop_usage=True).head(b"i", True)


def test_an_empty_piece_does_not_end_a_chunked_body() -> None:
    relay = Relay(head_of("Content-Type: text/event-stream"), 1, drop_usage=True)

    assert relay.body(b"data: par") == b""
    assert relay.body(b"tial\n\n") == b"f\r\ndata: partial\n\n\r\n"


def test_rt_19_a_broken_stream_says_so_and_is_not_ended() -> None:
    relay = Relay(head_of("Content-Type: text/event-stream"), 1, drop_usage=False)
    relay.body(b"data: 1\n\ndata: par")
    last = relay.failure(b'{"error": {}}')

    assert b'event: error\ndata: {"error": {}}\n\n' in last
    assert not last.endswith(b"0\r\n\r\n")


@pytest.mark.parametrize(
    "lines",
    [
        ("Content-Type: application/json", "Transfer-Encoding: chunked"),
        ("Content-Type: text/event-stream", "Content-Length: 100"),
    ],
)
def test_where_nothing_can_be_said_nothing_is(lines: tuple[str, ...]) -> None:
    assert Relay(head_of(*lines), 1, drop_usage=False).failure(b"{}") == b""


def test_a_compressed_stream_is_only_passed_on() -> None:
    head = head_of("Content-Type: text/event-stream", "Content-Encoding: gzip")
    relay = Relay(head, 1, drop_usage=True)

    assert relay.body(b"\x1f\x8b") == b"2\r\n\x1f\x8b\r\n"
    assert not relay.is_event_stream
