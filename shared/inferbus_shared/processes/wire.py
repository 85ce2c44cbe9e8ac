"""JSON lines over a unix socket, with descriptors passed beside them.

A message that says `"fds": n` owns the next n descriptors that arrive. Invariant: descriptors that
nobody took are closed, so that a broken peer leaks nothing.
"""

import array
import contextlib
import json
import os
import socket
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from inferbus_contracts.canonical import canonical_json
from inferbus_contracts.errors import ErrorCode, Problem, ProblemsError

PROTOCOL_VERSION = 1
MAX_LINE_BYTES = 4 * 1024 * 1024
MAX_DESCRIPTORS = 64
"""Per message; the kernel's own limit is 253."""
_SUN_PATH_BYTES = 107
_DESCRIPTOR_BYTES = array.array("i").itemsize
_READ_BYTES = 65536

Message = dict[str, Any]


def encode(message: Message) -> bytes:
    """One line."""
    return canonical_json(message) + b"\n"


def problem_message(error: ProblemsError) -> list[dict[str, Any]]:
    """The problems of an error as they stand in a reply."""
    return [problem.to_dict() for problem in error.problems]


class LineReader:
    """Turns what a socket delivers into messages; knows no socket itself."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._descriptors: deque[int] = deque()

    def feed(
        self, data: bytes, descriptors: Sequence[int] = ()
    ) -> Iterator[tuple[Message, list[int]]]:
        """Messages that are complete now, each with its descriptors (then owned by the caller).

        Raises `ProblemsError` (BAD_ARGUMENT) for a line that is no JSON object or too long.
        """
        self._descriptors.extend(descriptors)
        self._buffer += data
        while (end := self._buffer.find(b"\n")) >= 0:
            line = bytes(self._buffer[:end])
            del self._buffer[: end + 1]
            message = _decode(line)
            count = min(message.get("fds", 0), len(self._descriptors))
            yield message, [self._descriptors.popleft() for _ in range(count)]
        if len(self._buffer) > MAX_LINE_BYTES:
            raise _unreadable(f"a line of more than {MAX_LINE_BYTES} bytes")

    def close(self) -> None:
        """Close the descriptors that no message has taken."""
        close_all(self._descriptors)
        self._descriptors.clear()


def close_all(descriptors: Sequence[int] | deque[int]) -> None:
    """Close descriptors that may be closed already."""
    for descriptor in descriptors:
        with contextlib.suppress(OSError):
            os.close(descriptor)


def _decode(line: bytes) -> Message:
    try:
        message = json.loads(line)
    except ValueError:
        message = None
    if not isinstance(message, dict) or not isinstance(message.get("fds", 0), int):
        raise _unreadable(line[:200].decode(errors="replace"))
    return message


def _unreadable(value: str) -> ProblemsError:
    return ProblemsError(
        Problem(
            code=ErrorCode.BAD_ARGUMENT,
            message="what arrived on the fork server's socket is no line of JSON",
            value=value,
            remedy="use the client in inferbus_shared.processes of the same version",
        )
    )


@contextlib.contextmanager
def socket_address(path: Path) -> Iterator[str]:
    """An address for `path` that fits into sockaddr_un, however deep the directory is."""
    if len(os.fsencode(path)) <= _SUN_PATH_BYTES:
        yield str(path)
        return
    directory = os.open(path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{directory}/{path.name}"
    finally:
        os.close(directory)


def receive(connection: socket.socket) -> tuple[bytes, list[int]]:
    """What is there: bytes (none: the peer has gone) and descriptors. May raise BlockingIOError."""
    room = socket.CMSG_SPACE(MAX_DESCRIPTORS * _DESCRIPTOR_BYTES)
    data, ancillary, _, _ = connection.recvmsg(_READ_BYTES, room, socket.MSG_CMSG_CLOEXEC)
    descriptors = array.array("i")
    for level, kind, content in ancillary:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            descriptors.frombytes(content[: len(content) // _DESCRIPTOR_BYTES * _DESCRIPTOR_BYTES])
    return data, descriptors.tolist()
