"""Getting a key set over HTTP, and what becomes of servers that don't give one."""

import pytest

from inferbus_router.jwks import fetch_document
from inferbus_router.token_keys import KeySetError
from services.router.tests.conftest import StartEngine
from services.router.tests.engine import Turn


async def test_a_document_is_had_in_full(start_engine: StartEngine) -> None:
    async def in_pieces(turn: Turn) -> None:
        await turn.start_stream("application/json")
        for piece in (b'{"keys"', b": []", b"}"):
            await turn.chunk(piece)
        await turn.chunk(b"")

    server = await start_engine(in_pieces)

    assert await fetch_document(f"http://127.0.0.1:{server.port}/keys") == b'{"keys": []}'


async def test_an_error_is_no_document(start_engine: StartEngine) -> None:
    async def refuses(turn: Turn) -> None:
        await turn.respond(status=403)

    server = await start_engine(refuses)
    with pytest.raises(KeySetError, match="answers 403"):
        await fetch_document(f"http://127.0.0.1:{server.port}/keys")


async def test_a_document_without_end_is_given_up(start_engine: StartEngine) -> None:
    async def endless(turn: Turn) -> None:
        await turn.start_stream("application/json")
        for _ in range(64):
            await turn.chunk(b" " * 65_536)

    server = await start_engine(endless)
    with pytest.raises(KeySetError, match="larger than"):
        await fetch_document(f"http://127.0.0.1:{server.port}/keys")


async def test_what_breaks_off_is_no_document(start_engine: StartEngine) -> None:
    async def breaks_off(turn: Turn) -> None:
        await turn.start_stream("application/json")
        await turn.chunk(b"{")
        turn.close(reset=True)

    server = await start_engine(breaks_off)
    with pytest.raises(KeySetError, match="can't be reached"):
        await fetch_document(f"http://127.0.0.1:{server.port}/keys")


@pytest.mark.parametrize("uri", ["http://127.0.0.1:1/keys", "no address", "ftp://host/keys", ""])
async def test_an_address_that_leads_nowhere_is_told(uri: str) -> None:
    with pytest.raises(KeySetError, match="can't be reached"):
        await fetch_document(uri)
