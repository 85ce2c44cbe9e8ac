"""What comes back over a connection, and what becomes of the connection."""

import asyncio
import itertools
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferbus_shared.http_client.connection import Connection
from inferbus_shared.http_client.failures import NoAnswerError, NotSentError
from inferbus_shared.http_client.send_by import sent_by
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
    post,
)
from tests.support.eventually import eventually

CHUNKED = (
    b"HTTP/1.1 100 Continue\r\n\r\n"
    b"HTTP/1.1 103 Early Hints\r\nContent-Length: 9\r\nLink: <x>\r\n\r\n"
    b"HTTP/1.1 429 Too Many\r\nContent-Type: Text/Plain; charset=utf-8\r\nRetry-After: 7\r\n"
    b"Transfer-Encoding: chunked\r\nTrailer: X\r\n\r\n"
    b"3\r\nabc\r\n2;ext=1\r\nde\r\n0\r\nContent-Type: no/thing\r\n\r\n"
)


@given(st.lists(st.integers(0, len(CHUNKED)), max_size=8))
async def test_an_answer_is_the_same_however_its_bytes_arrive(cuts: list[int]) -> None:
    connection = Connection(lambda _: None)
    connection.connection_made(Wire())
    answer = connection.ask(REQUEST, PATIENT_SECONDS)
    places = [0, *sorted(cuts), len(CHUNKED)]
    for start, end in itertools.pairwise(places):
        if end > start:
            connection.data_received(CHUNKED[start:end])
    assert await answer.whole() == b"abcde"
    assert (answer.status, answer.content_type, answer.retry_after) == (429, "text/plain", "7")
    assert connection.is_idle
    connection.connection_lost(None)


async def test_a_connection_is_kept_for_the_next_request() -> None:
    async with peer(answering(OK)) as server, client_to(server.url) as client:
        assert [await get(client) for _ in range(5)] == [b"ok"] * 5
        assert server.visits == 1


@pytest.mark.parametrize(
    "said",
    [
        b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok",
        b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok",
        OK + b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nother",
        OK + b"junk",
    ],
    ids=["close", "1.0", "two answers", "junk behind"],
)
async def test_a_connection_that_cant_be_trusted_isnt_used_again(said: bytes) -> None:
    async with peer(answering(said)) as server, client_to(server.url) as client:
        assert [await get(client) for _ in range(3)] == [b"ok"] * 3
        assert server.visits == 3


async def test_an_answer_that_says_no_length_ends_with_its_connection() -> None:
    async def serve(visit: Visit) -> None:
        await visit.request()
        await visit.say(b"HTTP/1.1 200 OK\r\n\r\n", b"all ", b"of it")
        visit.writer.close()

    async with peer(serve) as server, client_to(server.url) as client:
        assert await get(client) == b"all of it"


@pytest.mark.parametrize(
    "said",
    [
        b"",
        b"HTTP/1.1 200",
        b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n",
        b"\x15\x03\x01\x00\x02\x02\x46",
        b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n",
    ],
    ids=["nothing", "half a line", "half", "no last chunk", "no HTTP", "101"],
)
async def test_what_is_no_whole_answer_fails_and_isnt_asked_for_again(said: bytes) -> None:
    async def serve(visit: Visit) -> None:
        await visit.request()
        await visit.say(said)

    async with peer(serve) as server, client_to(server.url) as client:
        with pytest.raises(NoAnswerError):
            await get(client)
        assert server.visits == 1


async def test_a_head_without_end_is_given_up() -> None:
    async def serve(visit: Visit) -> None:
        await visit.request()
        await visit.say(b"HTTP/1.1 200 OK\r\n")
        while True:
            await visit.say(b"X: " + b"y" * 2**14 + b"\r\n")

    async with peer(serve) as server, client_to(server.url) as client:
        with pytest.raises(NoAnswerError, match="head of the answer is larger"):
            await get(client)


async def leaves_on_the_second_request(visit: Visit) -> None:
    await visit.request()
    await visit.say(OK)
    if visit.number == 1:
        await visit.request()
        return
    await visit.request()
    await visit.say(OK)


async def test_a_kept_connection_that_fails_is_replaced_for_what_may_be_repeated() -> None:
    async with peer(leaves_on_the_second_request) as server, client_to(server.url) as client:
        assert await get(client) == b"ok"
        assert await get(client) == b"ok"
        assert server.visits == 2


async def test_what_may_not_be_repeated_isnt_sent_twice() -> None:
    async with peer(leaves_on_the_second_request) as server, client_to(server.url) as client:
        assert await post(client) == b"ok"
        with pytest.raises(NoAnswerError, match="isn't known"):
            await post(client)
        assert server.visits == 1


async def test_an_answer_that_began_isnt_asked_for_again() -> None:
    async def serve(visit: Visit) -> None:
        await visit.request()
        await visit.say(OK)
        await visit.request()
        await visit.say(b"HTTP/1.1 200 OK\r\n")

    async with peer(serve) as server, client_to(server.url) as client:
        await get(client)
        with pytest.raises(NoAnswerError):
            await get(client)
        assert server.visits == 1


async def test_silence_ends_a_request_and_its_connection() -> None:
    async def serve(visit: Visit) -> None:
        while await visit.request():
            await visit.say(OK if visit.number > 1 else b"HTTP/1.1 200 OK\r\n")

    async with peer(serve) as server, client_to(server.url) as client:
        with pytest.raises(NoAnswerError, match=r"nothing came for 0\.05 s"):
            await get(client, silence_seconds=0.05)
        assert await get(client) == b"ok"
        assert server.visits == 2


async def test_a_kept_connection_heeds_the_shorter_limit_of_a_later_request() -> None:
    async def serve(visit: Visit) -> None:
        await visit.request()
        await visit.say(OK)
        await visit.request()
        await asyncio.Event().wait()

    async with peer(serve) as server, client_to(server.url) as client:
        await get(client)
        with pytest.raises(NoAnswerError, match="nothing came"):
            await get(client, silence_seconds=0.05)


async def test_a_request_that_was_answered_before_it_was_read_ends_its_connection() -> None:
    async def serve(visit: Visit) -> None:
        await visit.reader.readuntil(b"\r\n\r\n")
        await visit.say(OK)
        await visit.reader.read()

    async with peer(serve) as server, client_to(server.url) as client:
        large = b"x" * 2**25
        assert await post(client, large) == b"ok"
        assert await post(client, large) == b"ok"
        assert server.visits == 2


async def test_no_more_connections_than_allowed_and_everybody_gets_a_turn() -> None:
    most = 0

    async def serve(visit: Visit) -> None:
        nonlocal most
        while await visit.request():
            most = max(most, server.open)
            await visit.say(OK)

    async with peer(serve) as server, client_to(server.url, max_connections=3) as client:
        answers = await asyncio.gather(*(get(client) for _ in range(40)))
        assert answers == [b"ok"] * 40
        assert 1 <= most <= 3
        assert server.visits <= 3


async def test_a_failed_connect_gives_its_place_to_the_next() -> None:
    async with peer(answering(OK)) as gone:
        pass
    async with client_to(gone.url, max_connections=1) as client:
        failed = await asyncio.gather(*(get(client) for _ in range(5)), return_exceptions=True)
    assert all(gone.url.removeprefix("http://") in str(one) for one in failed), failed


async def test_who_gives_up_gives_its_place_to_the_next() -> None:
    asked = asyncio.Event()

    async def serve(visit: Visit) -> None:
        await visit.request()
        asked.set()
        if visit.number > 1:
            await visit.say(OK)
        await visit.request()

    async with peer(serve) as server, client_to(server.url, max_connections=1) as client:
        first = asyncio.create_task(get(client))
        second = asyncio.create_task(get(client))
        await asked.wait()
        first.cancel()
        assert await second == b"ok"
        assert server.visits == 2
        await eventually(lambda: server.open == 1, what="the connection given up is closed")


async def test_what_is_too_late_to_send_is_never_sent() -> None:
    """Also over a connection that is kept, where nothing is waited for on the way."""
    heard: list[bytes] = []

    async def serve(visit: Visit) -> None:
        while request := await visit.request():
            heard.append(request[:4])
            await visit.say(OK)

    async with peer(serve) as server, client_to(server.url) as client:
        assert await get(client) == b"ok"
        with sent_by(time.monotonic() - 1), pytest.raises(NotSentError):
            await post(client)
        with sent_by(time.monotonic() + PATIENT_SECONDS):
            assert await get(client) == b"ok"
        assert heard == [b"GET ", b"GET "]
