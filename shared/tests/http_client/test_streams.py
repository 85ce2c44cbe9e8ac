"""Answers that are taken as they come."""

import asyncio
import contextlib

import pytest

from inferbus_shared.http_client.answer import MOST_HELD_BYTES
from inferbus_shared.http_client.client import HttpClient
from inferbus_shared.http_client.connection import Connection
from inferbus_shared.http_client.failures import NoAnswerError
from shared.tests.http_client.peers import (
    OK,
    PATIENT_SECONDS,
    REQUEST,
    Visit,
    Wire,
    answering,
    client_to,
    get,
    peer,
)
from tests.support.eventually import eventually

HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
LAST = b"0\r\n\r\n"


def chunk(body: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(body), body)


async def take(client: HttpClient, silence_seconds: float, into: list[bytes]) -> None:
    async with client.stream(REQUEST, silence_seconds) as answer:
        async for part in answer.chunks():
            into.append(part)


async def test_chunks_come_as_they_are_sent_and_the_end_is_the_end() -> None:
    go = asyncio.Event()

    async def serve(visit: Visit) -> None:
        await visit.request()
        await visit.say(HEAD + chunk(b"one"))
        await go.wait()
        await visit.say(chunk(b"two"), LAST)

    async with (
        peer(serve) as server,
        client_to(server.url) as client,
        client.stream(REQUEST, PATIENT_SECONDS) as answer,
    ):
        chunks = aiter(answer.chunks())
        assert await anext(chunks) == b"one"
        go.set()
        assert b"".join([rest async for rest in chunks]) == b"two"


async def test_a_stream_that_breaks_off_gives_what_came_and_then_fails() -> None:
    async def serve(visit: Visit) -> None:
        await visit.request()
        await visit.say(HEAD, chunk(b"one"), b"5\r\nha")

    seen: list[bytes] = []
    async with peer(serve) as server, client_to(server.url) as client:
        with pytest.raises(NoAnswerError):
            await take(client, PATIENT_SECONDS, seen)
    assert b"".join(seen) == b"oneha"


async def test_a_silent_stream_fails() -> None:
    async def serve(visit: Visit) -> None:
        await visit.request()
        await visit.say(HEAD, chunk(b"one"))
        await visit.request()

    async with peer(serve) as server, client_to(server.url) as client:
        with pytest.raises(NoAnswerError, match="nothing came"):
            await take(client, 0.05, [])


async def test_streams_take_no_connection_from_requests() -> None:
    async def serve(visit: Visit) -> None:
        while await visit.request():
            await visit.say(HEAD if visit.number <= 3 else OK)

    async with (
        peer(serve) as server,
        client_to(server.url, max_connections=1) as client,
        contextlib.AsyncExitStack() as stack,
    ):
        for _ in range(3):
            await stack.enter_async_context(client.stream(REQUEST, PATIENT_SECONDS))
        assert await get(client) == b"ok"
        assert server.open == 4


async def test_a_stream_that_is_left_ends_its_connection() -> None:
    async with peer(answering(HEAD)) as server, client_to(server.url) as client:
        async with client.stream(REQUEST, PATIENT_SECONDS):
            assert server.open == 1
        await eventually(lambda: server.open == 0)


async def test_a_slow_reader_gets_everything() -> None:
    body, total = b"x" * 2**16, 100

    async def serve(visit: Visit) -> None:
        await visit.request()
        await visit.say(HEAD, *[chunk(body)] * total, LAST)

    async with (
        peer(serve) as server,
        client_to(server.url) as client,
        client.stream(REQUEST, PATIENT_SECONDS) as answer,
    ):
        size = 0
        async for part in answer.chunks():
            size += len(part)
            await asyncio.sleep(0)
    assert size == total * len(body) > 20 * MOST_HELD_BYTES


async def test_what_nobody_takes_isnt_read_and_isnt_taken_for_silence() -> None:
    wire = Wire()
    connection = Connection(lambda _: None)
    connection.connection_made(wire)
    answer = connection.ask(REQUEST, 0.01, streamed=True)
    connection.data_received(HEAD + chunk(b"x" * (MOST_HELD_BYTES - 1)))
    assert not wire.is_paused
    connection.data_received(chunk(b"yz"))
    assert wire.is_paused
    loop = asyncio.get_running_loop()
    later = loop.time() + 0.05
    await eventually(lambda: loop.time() > later)

    assert not wire.is_aborted
    chunks = aiter(answer.chunks())
    assert len(await anext(chunks)) == MOST_HELD_BYTES + 1
    assert not wire.is_paused
    with pytest.raises(NoAnswerError, match="nothing came"):
        await anext(chunks)
    assert wire.is_aborted


async def test_the_beginning_of_an_endless_answer_is_enough() -> None:
    async def serve(visit: Visit) -> None:
        await visit.request()
        await visit.say(HEAD)
        while True:
            await visit.say(chunk(b"x" * 2**16))

    async with (
        peer(serve) as server,
        client_to(server.url) as client,
        client.stream(REQUEST, PATIENT_SECONDS) as answer,
    ):
        assert 2**20 <= len(await answer.beginning(2**20)) <= 2**20 + 2 * MOST_HELD_BYTES
