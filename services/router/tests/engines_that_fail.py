"""Scripts of engines that fail before their response begins."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager

from services.router.tests.engine import Script, Turn, answers


@contextmanager
def refusing_port() -> Iterator[int]:
    """A port that refuses connections: bound, so that nobody else gets it, and not listening."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield bound.getsockname()[1]


def fails_first(count: int, failure: Script) -> Script:
    """Fails that many times, then works."""
    failures = 0

    async def script(turn: Turn) -> None:
        nonlocal failures
        failures += 1
        await (failure if failures <= count else answers)(turn)

    return script


async def unavailable(turn: Turn) -> None:
    """503, and when to come back."""
    await turn.respond({"detail": "busy"}, status=503, Retry_After="7")


async def closes(turn: Turn) -> None:
    """Nothing."""
    turn.close()


async def thinks(turn: Turn) -> None:
    """Nothing either, for as long as the router stays."""
    await turn.gone()
