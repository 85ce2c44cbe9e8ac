"""Lines out of a stream of bytes, without copying a line more than once.

Invariant: what is handed on is one complete line, or the unfinished last one when the stream ends.
"""

from collections.abc import AsyncIterator

from inferbus_shared.kube.problems import not_the_api_server

MAX_LINE_BYTES = 2**25
"""No object is this large: etcd takes 1.5 MiB, and its text in JSON is not twenty times that."""


async def lines_of(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The lines without their ends; empty ones are left out.

    Raises `KubeError` when a line exceeds `MAX_LINE_BYTES`: that is no watch.
    """
    pending: list[bytes] = []
    held_bytes = 0
    async for chunk in chunks:
        *complete, rest = chunk.split(b"\n")
        for line in complete:
            if pending:
                line = b"".join((*pending, line))
                pending.clear()
                held_bytes = 0
            if line.strip():
                yield line
        if rest:
            pending.append(rest)
            held_bytes += len(rest)
            if held_bytes > MAX_LINE_BYTES:
                raise not_the_api_server(200, "a line without end", pending[0])
    last = b"".join(pending)
    if last.strip():
        yield last
