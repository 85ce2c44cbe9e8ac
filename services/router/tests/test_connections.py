"""Clients' connections: limits, deadlines, what HTTP leaves open, and how connections end."""

import asyncio
import os
import resource
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from services.router.tests.client import Client, chat, post_bytes
from services.router.tests.conftest import RouterUnderTest, StartEngine, StartRouter
from services.router.tests.engine import Gate, Turn
from tests.support.eventually import eventually


async def serving(
    start_router_under_test: StartRouter, start_engine: StartEngine, **settings: object
) -> RouterUnderTest:
    """A router with a working engine."""
    router = await start_router_under_test(**settings)
    router.serve((await start_engine()).entry())
    return router


async def test_a_body_in_chunks_reaches_the_engine_with_its_length(
    router: RouterUnderTest, start_engine: StartEngine
) -> None:
    engine = await start_engine()
    router.serve(engine.entry())
    client = await router.client()
    body = chat()
    await client.send(
        b"POST /v1/chat/completions HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n"
    )
    for position in range(0, len(body), 10):
        piece = body[position : position + 10]
        await client.send(b"%x;ext=1\r\n%b\r\n" % (len(piece), piece))
    await client.send(b"0\r\nX-Trailer: 1\r\n\r\n")

    assert (await client.response()).status == 200
    assert engine.turns[0].body == body
    assert engine.turns[0].headers["content-length"] == str(len(body))
    assert "transfer-encoding" not in engine.turns[0].headers


async def test_a_client_that_waits_for_a_go_ahead_gets_one(
    start_router_under_test: StartRouter, start_engine: StartEngine
) -> None:
    router = await serving(start_router_under_test, start_engine)
    client = await router.client()
    head, body = post_bytes(chat(), headers={"expect": "100-continue"}).split(b"\r\n\r\n")
    for _ in range(2):
        await client.send(head + b"\r\n\r\n")
        assert await client.reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        await client.send(body)
        assert (await client.response()).status == 200


async def test_a_body_that_comes_without_waiting_needs_no_go_ahead(
    start_router_under_test: StartRouter, start_engine: StartEngine
) -> None:
    router = await serving(start_router_under_test, start_engine)
    client = await router.client()

    assert (await client.post(chat(), headers={"expect": "100-continue"})).status == 200


async def test_a_body_that_is_too_large_is_refused_instead_of_asked_for(
    start_router_under_test: StartRouter, start_engine: StartEngine
) -> None:
    router = await serving(start_router_under_test, start_engine, max_body_bytes=1024)
    client = await router.client()
    head = post_bytes(b"x" * 1025, headers={"expect": "100-continue"}).split(b"\r\n\r\n")[0]
    await client.send(head + b"\r\n\r\n")
    response = await client.response()

    assert (response.status, response.error) == (413, "request_too_large")
    assert response.headers["connection"] == "close"


async def test_a_client_that_sends_too_much_can_still_read_why(
    start_router_under_test: StartRouter, start_engine: StartEngine
) -> None:
    """Closing at once would reset the connection and destroy the answer on its way."""
    router = await serving(start_router_under_test, start_engine, max_body_bytes=1024)
    client = await router.client()
    sending = asyncio.create_task(client.send(post_bytes(b"x" * 5_000_000)))
    response = await client.response()

    assert response.status == 413
    await sending
    assert await client.is_closed()


@pytest.mark.parametrize(
    ("data", "status", "code"),
    [
        (post_bytes(chat(), headers={"x": "a" * 70_000}), 431, "headers_too_large"),
        (b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\nhost: a\r\n\r\n", 431, "headers_too_large"),
        (b"garbage\r\n\r\n", 400, "malformed_request"),
        (
            b"POST /v1/x HTTP/1.1\r\nhost: a\r\ncontent-length: 4\r\n"
            b"transfer-encoding: chunked\r\n\r\n0\r\n\r\n",
            400,
            "malformed_request",
        ),
        (post_bytes(chat(), headers={"content-encoding": "gzip"}), 415, "unsupported_encoding"),
    ],
)
async def test_what_is_refused_is_told_and_ends_the_connection(
    router: RouterUnderTest, data: bytes, status: int, code: str
) -> None:
    client = await router.client()
    await client.send(data + post_bytes(chat()))
    response = await client.response()

    assert (response.status, response.error) == (status, code)
    assert response.headers["connection"] == "close"
    assert await client.is_closed(), "nothing behind it is served"
    metrics = await router.metrics()
    assert metrics["kthena_router_requests_total"] == 1


async def test_requests_before_a_broken_one_are_answered_first(
    router: RouterUnderTest, start_engine: StartEngine
) -> None:
    gate = Gate()
    engine = await start_engine(gate)
    router.serve(engine.entry())
    client = await router.client()
    await client.send(post_bytes(chat()) + post_bytes(chat()) + b"garbage\r\n\r\n")
    await eventually(lambda: engine.turns)
    gate.open()

    assert [(await client.response()).status for _ in range(3)] == [200, 200, 400]
    assert await client.is_closed()


async def test_a_smuggled_request_reaches_no_engine(
    router: RouterUnderTest, start_engine: StartEngine
) -> None:
    engine = await start_engine()
    router.serve(engine.entry())
    client = await router.client()
    hidden = post_bytes(chat("m", hidden=True))
    await client.send(
        b"POST /v1/x HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n"
        b"0\r\n\r\n" + hidden
    )

    assert (await client.response()).status == 400
    assert await client.is_closed()
    assert engine.turns == []


# Deadlines.


@pytest.mark.parametrize("sent", [b"POST /v1/", b"POST /v1/x HTTP/1.1\r\nhost: a\r\nx: "])
async def test_a_head_that_comes_too_slowly_is_given_up(
    start_router_under_test: StartRouter, sent: bytes
) -> None:
    router = await start_router_under_test(head_timeout_seconds=0.1)
    client = await router.client()
    loop = asyncio.get_running_loop()
    await client.send(sent)
    drip = [loop.call_later(0.02 * step, client.writer.write, b"y") for step in range(50)]
    response = await client.response()
    for timer in drip:
        timer.cancel()

    assert (response.status, response.error) == (408, "request_timeout")
    assert "head" in response.json["error"]["message"]


async def test_a_body_that_stops_coming_is_given_up(start_router_under_test: StartRouter) -> None:
    router = await start_router_under_test(body_timeout_seconds=0.1)
    client = await router.client()
    await client.send(post_bytes(chat())[:-5])
    response = await client.response()

    assert response.status == 408
    assert "body" in response.json["error"]["message"]


async def _tick(seconds: float) -> None:
    """A pause that is the thing under test: time between two pieces."""
    done = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().call_later(seconds, done.set_result, None)
    await done


async def test_a_connection_without_requests_is_closed(
    start_router_under_test: StartRouter, start_engine: StartEngine
) -> None:
    router = await serving(start_router_under_test, start_engine, keepalive_timeout_seconds=0.1)
    fresh, used = await router.client(), await router.client()
    assert (await used.post(chat())).status == 200

    assert await fresh.is_closed()
    assert await used.is_closed()
    await eventually(lambda: router.running.listener.connections == 0)


async def test_a_request_that_takes_longer_than_connections_are_kept_is_served(
    start_router_under_test: StartRouter, start_engine: StartEngine
) -> None:
    router = await start_router_under_test(
        keepalive_timeout_seconds=0.05, head_timeout_seconds=0.05, body_timeout_seconds=0.05
    )

    async def slow(turn: Turn) -> None:
        await _tick(0.4)
        await turn.respond()

    router.serve((await start_engine(slow)).entry())

    assert (await (await router.client()).post(chat())).status == 200


async def test_a_client_that_never_closes_is_closed(start_router_under_test: StartRouter) -> None:
    router = await start_router_under_test(closing_timeout_seconds=0.1)
    client = await router.client()
    await client.send(b"garbage\r\n\r\n")
    await client.response()

    await eventually(lambda: router.running.listener.connections == 0)


# How connections end.


@pytest.mark.parametrize(
    ("version", "connection", "kept"),
    [
        ("1.1", "keep-alive", True),
        ("1.1", "close", False),
        ("1.0", "close", False),
        ("1.0", "keep-alive", True),
    ],
)
async def test_who_decides_whether_the_connection_is_kept(
    start_router_under_test: StartRouter,
    start_engine: StartEngine,
    version: str,
    connection: str,
    kept: bool,
) -> None:
    router = await serving(start_router_under_test, start_engine)
    client = await router.client()
    data = post_bytes(chat(), headers={"connection": connection})
    await client.send(data.replace(b"HTTP/1.1", f"HTTP/{version}".encode()))
    response = await client.response()

    assert response.status == 200
    assert (response.headers.get("connection") != "close") is kept
    if kept:
        assert (await client.post(chat())).status == 200
    else:
        assert await client.is_closed()


async def test_a_client_that_only_closes_its_sending_half_after_the_answer_is_no_trouble(
    start_router_under_test: StartRouter, start_engine: StartEngine
) -> None:
    router = await serving(start_router_under_test, start_engine)
    client = await router.client()
    await client.post(chat())
    client.writer.write_eof()

    assert await client.is_closed()
    await eventually(lambda: router.running.listener.connections == 0)


async def test_a_page_is_served_to_a_client_that_closed_its_sending_half(
    router: RouterUnderTest,
) -> None:
    client = await router.client()
    client.writer.write(b"GET /healthz HTTP/1.1\r\nhost: a\r\n\r\n")
    client.writer.write_eof()

    assert (await client.response()).status == 200


async def test_connections_that_come_and_go_leave_nothing(
    start_router_under_test: StartRouter, start_engine: StartEngine
) -> None:
    router = await serving(start_router_under_test, start_engine)
    for ending in range(30):
        client = await Client.connect(router.port)
        if ending % 3 == 0:
            await client.post(chat())
        elif ending % 3 == 1:
            await client.send(b"POST /v1/x HTTP/1.1\r\nhost: a\r\ncontent-length: 10\r\n\r\nabc")
        reset = struct.pack("ii", 1, 0)
        sock: socket.socket = client.writer.get_extra_info("socket")
        if ending % 2:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, reset)
        client.abort()

    await eventually(lambda: router.running.listener.connections == 0)
    await router.settled()


async def test_a_router_that_may_open_no_more_waits_and_blames_no_endpoint(
    router: RouterUnderTest, start_engine: StartEngine
) -> None:
    router.serve((await start_engine()).entry())
    client = await router.client()
    (endpoint,) = router.running.router.state.fleet.endpoints()
    with no_more_files():
        await client.send(post_bytes(chat()))
        await eventually(lambda: endpoint.in_flight == 1)
    assert (await client.response()).status == 200
    assert endpoint.health.failures == 0


@contextmanager
def no_more_files() -> Iterator[None]:
    """This process can open nothing, for a while."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    lowest = os.dup(0)
    os.close(lowest)
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
