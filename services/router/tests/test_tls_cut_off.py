"""Engines behind TLS whose connection just ends: without the notice that TLS has for that.

Anybody on the way can end a connection so, and must not be able to pass off a part as the whole.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from services.router.tests.builders import endpoint
from services.router.tests.client import BrokenOffError, chat
from services.router.tests.conftest import RouterUnderTest, StartRouter

STREAM = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
EVENT = b'e\r\ndata: {"n":1}\n\n\r\n'


class CutOff:
    """A TLS engine that sends something and lets the connection go, underneath TLS."""

    def __init__(self) -> None:
        self.sends = b""
        self.port = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(self.sends)
        await writer.drain()
        writer.transport.abort()


@pytest.fixture
async def engine(certificate: tuple[Path, Path]) -> AsyncIterator[CutOff]:
    cut_off = CutOff()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    server = await asyncio.start_server(cut_off.serve, "127.0.0.1", 0, ssl=context)
    cut_off.port = server.sockets[0].getsockname()[1]
    yield cut_off
    server.close()


@pytest.fixture
async def certificate(tmp_path: Path) -> tuple[Path, Path]:
    """A certificate for 127.0.0.1 and its key."""
    found = tmp_path / "cert.pem", tmp_path / "key.pem"
    making = await asyncio.create_subprocess_exec(
        *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1"),
        *("-subj", "/CN=engine", "-addext", "subjectAltName=IP:127.0.0.1"),
        *("-keyout", str(found[1]), "-out", str(found[0])),
        stderr=asyncio.subprocess.DEVNULL,
    )
    if await making.wait():
        pytest.skip("openssl can't make a certificate here")
    return found


@pytest.fixture
async def trusting(
    start_router_under_test: StartRouter, engine: CutOff, certificate: tuple[Path, Path]
) -> RouterUnderTest:
    """A router in front of the engine."""
    router = await start_router_under_test(upstream_ca_file=certificate[0])
    router.serve(endpoint(engine.port), protocol="https")
    return router


@pytest.mark.parametrize(
    "sent", [STREAM + EVENT, b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort"]
)
async def test_rt_19_a_response_cut_off_is_not_taken_for_whole(
    trusting: RouterUnderTest, engine: CutOff, sent: bytes
) -> None:
    engine.sends = sent
    with pytest.raises(BrokenOffError):
        await (await trusting.client()).post(chat(stream=True))
    await trusting.settled()


async def test_a_whole_response_is_whole_though_no_notice_follows(
    trusting: RouterUnderTest, engine: CutOff
) -> None:
    engine.sends = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nwhole"
    client = await trusting.client()

    assert [(await client.post(chat())).body for _ in range(3)] == [b"whole"] * 3
    await trusting.settled()


async def test_nothing_at_all_is_a_bad_gateway(trusting: RouterUnderTest, engine: CutOff) -> None:
    engine.sends = b""

    assert (await (await trusting.client()).post(chat())).status == 502
    await trusting.settled()


async def test_rt_19_a_body_that_only_the_end_delimits_needs_the_notice(
    trusting: RouterUnderTest, engine: CutOff
) -> None:
    engine.sends = b"HTTP/1.1 200 OK\r\n\r\na part of it"
    with pytest.raises(BrokenOffError):
        await (await trusting.client()).post(chat())
    await trusting.settled()
