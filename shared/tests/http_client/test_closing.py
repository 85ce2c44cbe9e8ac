"""However a client ends, nothing of it stays open: a loop that closes warns of what does."""

import asyncio
import contextlib
import gc
import socket
import threading
import warnings
from collections.abc import Awaitable, Callable, Iterator

import pytest
import uvloop

from inferbus_shared.http_client.client import HttpClient
from inferbus_shared.http_client.failures import NoAnswerError
from shared.tests.http_client.certificates import NAME, Certificate
from shared.tests.http_client.peers import (
    OK,
    PATIENT_SECONDS,
    REQUEST,
    Visit,
    answering,
    client_to,
    get,
    peer,
)
from tests.support.eventually import eventually

LOOPS = pytest.mark.parametrize(
    "new_loop", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"]
)
ROUNDS = (*range(12), 15, 20, 30, 50, 100, 200, 500)
"""After how many rounds of the loop somebody loses patience: in every step of a connect."""

Scenario = Callable[[HttpClient, int], Awaitable[None]]


async def cancelled(client: HttpClient, rounds: int) -> None:
    """Whoever asked gives up."""
    asking = asyncio.create_task(get(client))
    for _ in range(rounds):
        await asyncio.sleep(0)
    asking.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await asking


async def closed(client: HttpClient, rounds: int) -> None:
    """The client is closed while somebody asks."""
    asking = asyncio.create_task(get(client))
    for _ in range(rounds):
        await asyncio.sleep(0)
    await client.close()
    with contextlib.suppress(NoAnswerError):
        assert await asking == b"ok"


async def closed_and_cancelled(client: HttpClient, rounds: int) -> None:
    """Both at once, as when a service stops."""
    asking = asyncio.create_task(get(client))
    for _ in range(rounds):
        await asyncio.sleep(0)
    asking.cancel()
    await client.close()
    with contextlib.suppress(asyncio.CancelledError, NoAnswerError):
        await asking


SCENARIOS = pytest.mark.parametrize("scenario", [cancelled, closed, closed_and_cancelled])


def left_open(
    new_loop: Callable[[], asyncio.AbstractEventLoop],
    scenario: Scenario,
    url: str,
    certificate: Certificate,
    proxy: str | None = None,
) -> list[str]:
    """What is warned of after the loop has ended right behind the client."""

    async def run(rounds: int) -> None:
        async with client_to(url, tls=certificate.client, server_name=NAME, proxy=proxy) as client:
            await scenario(client, rounds)

    gc.collect()
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for rounds in ROUNDS:
            with asyncio.Runner(loop_factory=new_loop) as runner:
                runner.run(run(rounds))
        gc.collect()
    return [str(one.message) for one in told]


@pytest.fixture
def silent() -> Iterator[str]:
    """Takes connections and says nothing: no handshake of TLS ends there, no proxy answers."""
    with socket.create_server(("127.0.0.1", 0), backlog=500) as listening:
        yield f"127.0.0.1:{listening.getsockname()[1]}"


@pytest.fixture(scope="module")
def answering_url(certificate: Certificate) -> Iterator[str]:
    """A server with TLS in a thread of its own, whose transports aren't looked at."""
    ready = threading.Event()
    found: list[str] = []
    loops: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []

    async def serve() -> None:
        async with peer(answering(OK), certificate.server) as server:
            end = asyncio.Event()
            found.append(server.url)
            loops.append((asyncio.get_running_loop(), end))
            ready.set()
            await end.wait()

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    ready.wait()
    yield found[0]
    loop, end = loops[0]
    loop.call_soon_threadsafe(end.set)
    thread.join()


@LOOPS
@SCENARIOS
def test_a_handshake_that_never_ends(
    new_loop: Callable[[], asyncio.AbstractEventLoop],
    scenario: Scenario,
    silent: str,
    certificate: Certificate,
) -> None:
    assert left_open(new_loop, scenario, f"https://{silent}", certificate) == []


@LOOPS
@SCENARIOS
def test_a_proxy_that_never_answers(
    new_loop: Callable[[], asyncio.AbstractEventLoop],
    scenario: Scenario,
    silent: str,
    certificate: Certificate,
) -> None:
    assert left_open(new_loop, scenario, "https://h:1", certificate, f"http://{silent}") == []


@LOOPS
@SCENARIOS
def test_a_server_that_answers(
    new_loop: Callable[[], asyncio.AbstractEventLoop],
    scenario: Scenario,
    answering_url: str,
    certificate: Certificate,
) -> None:
    assert left_open(new_loop, scenario, answering_url, certificate) == []


async def test_closing_ends_what_is_under_way_and_what_is_kept() -> None:
    async def serve(visit: Visit) -> None:
        await visit.request()
        await visit.say(OK)
        await visit.reader.read()

    async with peer(serve) as server, client_to(server.url) as client:
        await asyncio.gather(get(client), get(client))
        asking = asyncio.create_task(get(client))
        async with client.stream(REQUEST, PATIENT_SECONDS):
            await eventually(lambda: server.open == 3)
            await client.close()
            with pytest.raises(NoAnswerError, match="the client was closed"):
                await asking
        await eventually(lambda: server.open == 0)
        with pytest.raises(NoAnswerError, match="the client was closed"):
            await get(client)


async def test_a_client_that_was_never_used_closes() -> None:
    async with client_to("http://127.0.0.1:1"):
        pass
