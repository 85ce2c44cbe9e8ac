"""Talking to the fork server: a blocking and an asyncio way to move the bytes of one session.

Invariant: every command is answered exactly once, by its result or by `ProblemsError`; when the
connection breaks, the open ones are answered with NOT_RUNNING. Whether a command that was answered
so was carried out is not known: ask again, or look at the identity file.
"""

import asyncio
import socket
from collections import deque
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

from inferbus_contracts.errors import ErrorCode, Problem, ProblemsError
from inferbus_shared.processes.commands import Command
from inferbus_shared.processes.session import Answer, ChildEvent, Session, result_of
from inferbus_shared.processes.start import connect_socket
from inferbus_shared.processes.wire import receive

T = TypeVar("T")


def lost() -> ProblemsError:
    """What a command ends with when the fork server dies."""
    return ProblemsError(
        Problem(
            code=ErrorCode.NOT_RUNNING,
            message="the fork server has gone",
            remedy="connect again; processes that ran are still there",
        )
    )


class ForkServerClient:
    """Blocking; for a supervisor that does one thing after the other."""

    def __init__(self, socket_path: Path) -> None:
        """Connect; raises `ProblemsError` (NOT_RUNNING)."""
        self._socket = connect_socket(socket_path)
        self._session = Session()
        self._events: deque[ChildEvent] = deque()
        self._answers: dict[int, Answer] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Disconnect."""
        self._socket.close()

    def call(self, command: Command[T]) -> T:
        """Carry out a command and wait for its result; raises `ProblemsError`."""
        number, line = self._session.encode(command)
        try:
            sent = socket.send_fds(self._socket, [line], list(command.descriptors))
            if sent < len(line):  # even an empty write fails once the server has answered and left
                self._socket.sendall(line[sent:])
        except OSError as error:
            raise lost() from error
        while number not in self._answers:
            self._receive()
        return result_of(command, self._answers.pop(number))

    def next_event(self, timeout_seconds: float | None = None) -> ChildEvent | None:
        """The next event; None when there is none in time. Raises `ProblemsError` (NOT_RUNNING)."""
        self._socket.settimeout(timeout_seconds)
        try:
            while not self._events:
                self._receive()
        except (TimeoutError, BlockingIOError):
            return None
        finally:
            self._socket.settimeout(None)
        return self._events.popleft()

    def _receive(self) -> None:
        try:
            data, _ = receive(self._socket)
        except (TimeoutError, BlockingIOError):
            raise
        except OSError as error:
            raise lost() from error
        if not data:
            raise lost()
        for incoming in self._session.feed(data):
            if isinstance(incoming, Answer):
                self._answers[incoming.number] = incoming
            else:
                self._events.append(incoming)


class AsyncForkServerClient:
    """For a service with an event loop: any number of commands at once."""

    def __init__(
        self,
        socket_path: Path,
        on_event: Callable[[ChildEvent], None],
        on_lost: Callable[[], None],
    ) -> None:
        """Connect; `on_lost` is called once when the fork server goes away.

        Needs a running event loop. Raises `ProblemsError` (NOT_RUNNING).
        """
        self._socket = connect_socket(socket_path)
        self._socket.setblocking(False)
        self._session = Session()
        self._on_event = on_event
        self._on_lost = on_lost
        self._waiting: dict[int, asyncio.Future[Answer]] = {}
        self._sending = asyncio.Lock()
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._socket, self._readable)
        self._open = True

    @property
    def connected(self) -> bool:
        """Whether the fork server is still there."""
        return self._open

    async def call(self, command: Command[T]) -> T:
        """Carry out a command and wait for its result; raises `ProblemsError`."""
        if not self._open:
            raise lost()
        number, line = self._session.encode(command)
        future: asyncio.Future[Answer] = self._loop.create_future()
        self._waiting[number] = future
        try:
            async with self._sending:
                await self._send(line, list(command.descriptors))
            return result_of(command, await future)
        finally:
            self._waiting.pop(number, None)

    def close(self) -> None:
        """Disconnect; open commands fail."""
        self._end(lost())

    async def _send(self, line: bytes, descriptors: list[int]) -> None:
        """Descriptors go with the first byte, which is why the loop's own `sendall` won't do."""
        try:
            while self._open:
                try:
                    sent = socket.send_fds(self._socket, [line], descriptors)
                except BlockingIOError:
                    await self._writable()
                    continue
                if sent < len(line):
                    await self._loop.sock_sendall(self._socket, line[sent:])
                return
        except OSError:
            self._lose(lost())

    async def _writable(self) -> None:
        ready = asyncio.Event()
        self._loop.add_writer(self._socket, ready.set)
        try:
            await ready.wait()
        finally:
            self._loop.remove_writer(self._socket)

    def _readable(self) -> None:
        try:
            data, _ = receive(self._socket)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._lose(lost())
            return
        try:
            for incoming in self._session.feed(data):
                self._take(incoming)
        except ProblemsError as error:
            self._lose(error)

    def _take(self, incoming: Answer | ChildEvent) -> None:
        if isinstance(incoming, ChildEvent):
            self._on_event(incoming)
            return
        future = self._waiting.get(incoming.number)
        if future is not None and not future.done():
            future.set_result(incoming)

    def _lose(self, error: ProblemsError) -> None:
        if self._open:
            self._end(error)
            self._on_lost()

    def _end(self, error: ProblemsError) -> None:
        if not self._open:
            return
        self._open = False
        self._loop.remove_reader(self._socket)
        self._socket.close()
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(error)
