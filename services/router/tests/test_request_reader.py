"""What is accepted as a request, byte by byte, and what is refused (RFC 9112)."""

import uuid
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferbus_router.errors import RequestError
from inferbus_router.request import Request, RequestIds, is_usable_id
from inferbus_router.request_reader import RequestReader
from inferbus_router.upstream_request import upstream_request

MAX_HEAD, MAX_BODY = 4096, 65_536


def reader() -> RequestReader:
    return RequestReader(MAX_HEAD, MAX_BODY)


def read(data: bytes) -> Request:
    """The one request in the data."""
    parser = reader()
    parser.feed(data)
    (request,) = parser.complete
    return request


def post(body: bytes = b"{}", *lines: str, target: str = "/v1/x") -> bytes:
    head = "".join(f"{line}\r\n" for line in (f"POST {target} HTTP/1.1", "Host: a", *lines))
    return head.encode("latin-1") + b"Content-Length: %d\r\n\r\n" % len(body) + body


def chunked(*chunks: bytes, trailer: bytes = b"") -> bytes:
    body = b"".join(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks)
    return (
        b"POST /v1/x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
        + body
        + b"0\r\n"
        + trailer
        + b"\r\n"
    )


def refusal(data: bytes) -> RequestError:
    with pytest.raises(RequestError) as refused:
        reader().feed(data)
    return refused.value


def refusal_of_pieces(parser: RequestReader, pieces: Iterable[bytes]) -> RequestError:
    """What one of the pieces is refused with."""

    def feed_all() -> None:
        for piece in pieces:
            parser.feed(piece)

    with pytest.raises(RequestError) as refused:
        feed_all()
    return refused.value


def forwarded(request: Request) -> bytes:
    """The head as it goes upstream."""
    request.request_id = request.request_id or b"id-1"
    return b"".join(upstream_request(request, request.body, b"10.0.0.1:8000"))


@given(st.binary(max_size=300), st.lists(st.integers(1, 80), max_size=12))
def test_it_does_not_matter_how_the_bytes_are_cut(body: bytes, cuts: list[int]) -> None:
    data = post(body) + post(b"other") + chunked(body or b"x")
    parser, position = reader(), 0
    for cut in cuts:
        parser.feed(data[position : position + cut])
        position += cut
    for byte in data[position:]:
        parser.feed(bytes([byte]))

    assert [request.body for request in parser.complete] == [body, b"other", body or b"x"]


@given(st.lists(st.binary(max_size=50), min_size=1, max_size=30))
def test_requests_that_come_together_are_told_apart(bodies: list[bytes]) -> None:
    parser = reader()
    parser.feed(b"".join(post(body) for body in bodies))

    assert [request.body for request in parser.complete] == bodies
    assert all(request.keep_alive for request in parser.complete)


def test_a_request_sent_ahead_behind_chunks_ends_the_connection_after_the_first() -> None:
    parser = reader()
    parser.feed(chunked(b"first") + post(b"second"))
    parser.feed(post(b"third"))

    (request,) = parser.complete
    assert request.body == b"first"
    assert not request.keep_alive


def test_trailers_are_dropped() -> None:
    request = read(chunked(b"abc", trailer=b"X-Sum: 1\r\nHost: evil\r\n"))

    assert request.body == b"abc"
    assert b"evil" not in forwarded(request)


def test_what_goes_upstream_is_what_came_but_for_the_connections_own_headers() -> None:
    request = read(
        post(
            b"{}",
            "User-Agent: x/1",
            "X-Two: a",
            "Connection: keep-alive, X-Private",
            "x-private: secret",
            "Keep-Alive: timeout=5",
            "Proxy-Authorization: p",
            "TE: trailers",
            "Upgrade-Insecure-Requests: 1",
            "Accept-Encoding: gzip",
            "Accept: */*",
            "X-Two: b",
            "Authorization: Bearer k",
            "Content-Type: application/json",
            target="/v1/x?y=1",
        )
    )
    head = forwarded(request)
    lines = head.split(b"\r\n\r\n")[0].split(b"\r\n")

    assert lines[0] == b"POST /v1/x?y=1 HTTP/1.1"
    assert sorted(lines[1:]) == sorted(
        [
            b"User-Agent: x/1",
            b"X-Two: a",
            b"Upgrade-Insecure-Requests: 1",
            b"Accept: */*",
            b"X-Two: b",
            b"content-type: application/json",
            b"host: 10.0.0.1:8000",
            b"x-request-id: id-1",
            b"content-length: 2",
        ]
    )
    assert lines.index(b"X-Two: a") < lines.index(b"X-Two: b")
    assert head.endswith(b"\r\n\r\n{}")


def test_a_large_body_is_not_copied() -> None:
    request = read(post())
    request.request_id = b"i"
    payload = b"x" * 100_000
    parts = upstream_request(request, payload, b"h")

    assert len(parts) == 2
    assert parts[1] is payload


def test_an_absolute_target_is_taken_for_its_path() -> None:
    request = read(post(target="http://other/v1/y?z=1"))

    assert request.head.path == "/v1/y"
    assert forwarded(request).startswith(b"POST /v1/y?z=1 HTTP/1.1\r\n")


def test_http_1_0_goes_upstream_as_1_1_and_does_not_keep_the_connection() -> None:
    request = read(b"POST /v1/x HTTP/1.0\r\nContent-Length: 1\r\n\r\na")

    assert request.head.minor_version == 0
    assert not request.keep_alive
    assert forwarded(request).startswith(b"POST /v1/x HTTP/1.1\r\nhost: 10.0.0.1:8000\r\n")


@pytest.mark.parametrize(
    ("version", "line", "expected"),
    [
        ("1.1", "X: y", True),
        ("1.1", "Connection: close", False),
        ("1.0", "X: y", False),
        ("1.0", "Connection: keep-alive", True),
    ],
)
def test_who_keeps_the_connection(version: str, line: str, expected: bool) -> None:
    data = f"GET /v1/models HTTP/{version}\r\nHost: a\r\n{line}\r\n\r\n".encode()

    assert read(data).keep_alive is expected


SMUGGLED = {
    "length and coding": b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "coding and length": b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
    "two lengths": b"Content-Length: 1\r\nContent-Length: 2\r\n\r\nab",
    "one length twice": b"Content-Length: 1\r\nContent-Length: 1\r\n\r\na",
    "a list of lengths": b"Content-Length: 1, 1\r\n\r\na",
    "a signed length": b"Content-Length: +1\r\n\r\na",
    "a negative length": b"Content-Length: -1\r\n\r\na",
    "a length in hexadecimal": b"Content-Length: 0x1\r\n\r\na",
    "a length beyond any": b"Content-Length: 99999999999999999999999\r\n\r\na",
    "two codings": b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "a coding after chunked": b"Transfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n",
    "identity": b"Transfer-Encoding: identity\r\n\r\n",
    "an unknown coding": b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    "a space before the colon": b"Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
    "a folded line": b"X: a\r\n b\r\nContent-Length: 0\r\n\r\n",
    "a bare line feed": b"X: a\nContent-Length: 0\r\n\r\n",
    "a bare carriage return": b"X: a\rContent-Length: 9\r\n\r\n",
    "a zero byte": b"X: a\0b\r\n\r\n",
    "a header without a name": b": x\r\n\r\n",
    "a chunk size that is none": b"Transfer-Encoding: chunked\r\n\r\nzz\r\nab\r\n0\r\n\r\n",
    "a chunk size with a prefix": b"Transfer-Encoding: chunked\r\n\r\n0x2\r\nab\r\n0\r\n\r\n",
    "a chunk size beyond any": b"Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff1\r\n",
    "a chunk longer than it says": b"Transfer-Encoding: chunked\r\n\r\n2\r\nabc\r\n0\r\n\r\n",
    "a chunk size ended by a line feed": b"Transfer-Encoding: chunked\r\n\r\n2\nab\r\n0\r\n\r\n",
    "two hosts": b"Host: b\r\nContent-Length: 0\r\n\r\n",
}


@pytest.mark.parametrize("rest", SMUGGLED.values(), ids=SMUGGLED.keys())
def test_what_could_be_read_in_two_ways_is_refused(rest: bytes) -> None:
    error = refusal(b"POST /v1/x HTTP/1.1\r\nHost: a\r\n" + rest)

    assert error.status == 400
    assert error.code == "malformed_request"


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"POST /v1/x HTTP/1.1\r\n\r\n", 400),
        (b"POST /v1/x HTTP/1.1\r\nHost: \r\nHost: \r\n\r\n", 400),
        (b"POST /v1/x HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n", 400),
        (b"POST v1/x HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        (b"POST * HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        (b"POST /a\x01b HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        (b"POST /a b HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        (b"POST  /a HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        (b"POST ftp://x/y HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        (b"NONSENSE\r\n\r\n", 400),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400),
        (b"GET /\r\n\r\n", 400),
        (b"GET / HTTP/2.0\r\nHost: a\r\n\r\n", 505),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400),
        (b"CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        (post(b"", "Transfer-Encoding: gzip, chunked").replace(b"Content-Length: 0\r\n", b""), 501),
        (post(b"", "Expect: 200-ok"), 417),
        (post(b"", "Content-Encoding: gzip"), 415),
    ],
)
def test_what_is_refused_otherwise(data: bytes, status: int) -> None:
    assert refusal(data).status == status


def test_an_identity_encoding_is_none() -> None:
    assert read(post(b"{}", "Content-Encoding: identity")).body == b"{}"


def test_empty_lines_before_a_request_are_passed_over() -> None:
    assert read(b"\r\n\r\n" + post(b"x")).body == b"x"


@pytest.mark.parametrize("pieces", [1, 2, 5, MAX_HEAD])
def test_a_head_beyond_the_limit_is_refused_however_it_comes(pieces: int) -> None:
    data = post(b"", "X-Long: " + "a" * (2 * MAX_HEAD))
    size = len(data) // pieces + 1
    cut = [data[position : position + size] for position in range(0, len(data), size)]

    assert refusal_of_pieces(reader(), cut).status == 431


def test_a_header_that_never_ends_is_refused_before_it_does() -> None:
    parser = reader()
    parser.feed(b"POST /v1/x HTTP/1.1\r\nX: ")

    assert refusal_of_pieces(parser, [b"aaa"] * MAX_HEAD).status == 431


def test_a_head_within_the_limit_behind_a_large_body_is_accepted() -> None:
    parser = reader()
    parser.feed(post(b"x" * (MAX_BODY - 10)) + post(b"y"))

    assert [len(request.body) for request in parser.complete] == [MAX_BODY - 10, 1]


def test_a_body_beyond_the_limit_is_refused_as_soon_as_its_length_is_known() -> None:
    head = b"POST /v1/x HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % (MAX_BODY + 1)

    assert refusal(head).status == 413


def test_a_body_in_chunks_is_refused_when_it_is_beyond_the_limit() -> None:
    parser = reader()
    parser.feed(chunked(b"x")[:-5])
    piece = b"3e8\r\n" + b"x" * 1000 + b"\r\n"

    assert refusal_of_pieces(parser, [piece] * (MAX_BODY // 1000 + 2)).status == 413


@pytest.mark.parametrize("body", [b"", b"abc"])
@pytest.mark.parametrize("is_chunked", [False, True])
def test_an_offer_to_upgrade_is_ignored(body: bytes, is_chunked: bool) -> None:
    upgrade = (
        b"Host: a\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: x\r\n"
    )
    plain = chunked(*([body] if body else [])) if is_chunked else post(body)
    parser = reader()
    parser.feed(plain.replace(b"Host: a\r\n", upgrade))
    parser.feed(post(b"next"))

    first, second = parser.complete
    assert (first.body, second.body) == (body, b"next")
    assert b"h2c" not in forwarded(first)


def test_a_request_brings_its_id_or_gets_one() -> None:
    assert read(post(b"", "X-Request-ID: r1")).request_id == b"r1"
    assert read(post(b"")).request_id == b""
    assert read(post(b"", "X-Request-ID: a b")).request_id == b""


@pytest.mark.parametrize(
    ("value", "expected"),
    [(b"r1", True), (b"", False), (b"a b", False), (b"a\x7f", False), (b"x" * 129, False)],
)
def test_which_ids_are_usable(value: bytes, expected: bool) -> None:
    assert is_usable_id(value) is expected


def test_t037_made_ids_are_uuids_and_all_different() -> None:
    ids = [source.next() for source in (RequestIds(), RequestIds()) for _ in range(1000)]

    assert len(set(ids)) == len(ids)
    assert {uuid.UUID(each.decode()).version for each in ids} == {4}
    assert {uuid.UUID(each.decode()).variant for each in ids} == {uuid.RFC_4122}
