"""TLS and proxies on the way to a server."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import pytest

from inferbus_shared.http_client.failures import NoAnswerError
from shared.tests.http_client.certificates import NAME, Certificate
from shared.tests.http_client.peers import (
    OK,
    Peer,
    Visit,
    answering,
    client_to,
    get,
    peer,
)

ESTABLISHED = b"HTTP/1.1 200 Connection established\r\n\r\n"


async def test_tls_to_a_server_of_another_name_over_a_kept_connection(
    certificate: Certificate,
) -> None:
    async with (
        peer(answering(OK), certificate.server) as server,
        client_to(server.url, tls=certificate.client, server_name=NAME) as client,
    ):
        assert [await get(client) for _ in range(3)] == [b"ok"] * 3
        assert server.visits == 1


async def test_a_certificate_for_somebody_else_is_refused(certificate: Certificate) -> None:
    async with (
        peer(answering(OK), certificate.server) as server,
        client_to(server.url, tls=certificate.client) as client,
    ):
        with pytest.raises(NoAnswerError, match="certificate"):
            await get(client)


async def test_a_certificate_that_nobody_trusts_is_refused(certificate: Certificate) -> None:
    async with (
        peer(answering(OK), certificate.server) as server,
        client_to(server.url, server_name=NAME) as client,
    ):
        with pytest.raises(NoAnswerError, match="certificate"):
            await get(client)


async def test_the_clients_certificate_lets_it_in(certificate: Certificate) -> None:
    async with peer(answering(OK), certificate.strict_server) as server:
        async with client_to(server.url, tls=certificate.client, server_name=NAME) as client:
            with pytest.raises(NoAnswerError):
                await get(client)
        async with client_to(server.url, tls=certificate.known_client, server_name=NAME) as client:
            assert await get(client) == b"ok"


async def test_a_server_that_speaks_no_tls_is_told(certificate: Certificate) -> None:
    async with peer(answering(OK)) as server:
        url = server.url.replace("http://", "https://")
        async with client_to(url, tls=certificate.client, connect_timeout_seconds=0.2) as client:
            with pytest.raises(NoAnswerError, match=r"no connection within 0\.2 s"):
                await get(client)


@asynccontextmanager
async def proxy(
    answer: bytes = ESTABLISHED, tls: ssl.SSLContext | None = None
) -> AsyncIterator[Peer]:
    """Connects to who it is asked for, whatever it answers."""

    async def serve(visit: Visit) -> None:
        request = await visit.request()
        running.requests.append(request)
        await visit.say(answer[:9], answer[9:])
        host, port = request.split(b" ")[1].split(b":")
        reader, writer = await asyncio.open_connection(host.decode(), int(port))
        try:
            await asyncio.gather(_pass(visit.reader, writer), _pass(reader, visit.writer))
        finally:
            writer.transport.abort()

    async with peer(serve, tls) as running:
        yield running


async def _pass(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(2**16):
        writer.write(data)
        await writer.drain()
    writer.close()


async def test_https_goes_through_a_tunnel(certificate: Certificate) -> None:
    async with peer(answering(OK), certificate.server) as server, proxy() as between:
        through = between.url.replace("http://", "http://user:pass@")
        async with client_to(
            server.url, tls=certificate.client, server_name=NAME, proxy=through
        ) as client:
            assert [await get(client) for _ in range(2)] == [b"ok"] * 2
        to = urlsplit(server.url).netloc.encode()
        assert between.requests == [
            b"CONNECT %b HTTP/1.1\r\nHost: %b\r\n"
            b"Proxy-Authorization: Basic dXNlcjpwYXNz\r\n\r\n" % (to, to)
        ]


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (b"HTTP/1.1 407 Who are you\r\nContent-Length: 0\r\n\r\n", "407 Who are you"),
        (b"SSH-2.0-OpenSSH_9.2\r\n\r\n", "SSH"),
        (b"x" * 2**17, "the proxy answered"),
    ],
)
async def test_a_proxy_that_refuses_is_told(
    certificate: Certificate, answer: bytes, told: str
) -> None:
    async with (
        peer(answering(OK), certificate.server) as server,
        proxy(answer) as between,
        client_to(server.url, tls=certificate.client, proxy=between.url) as client,
    ):
        with pytest.raises(NoAnswerError, match=told):
            await get(client)
        assert server.visits == 0


async def test_a_proxy_that_hangs_up_is_told(certificate: Certificate) -> None:
    async def serve(visit: Visit) -> None:
        await visit.request()

    async with (
        peer(serve) as between,
        client_to("https://h:1", tls=certificate.client, proxy=between.url) as client,
    ):
        with pytest.raises(NoAnswerError, match="the proxy closed the connection"):
            await get(client)


async def test_plain_http_is_asked_of_the_proxy_itself() -> None:
    async with peer(answering(OK)) as between, client_to("http://h:1", proxy=between.url) as client:
        assert await get(client) == b"ok"
