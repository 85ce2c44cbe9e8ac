"""One client of the fork server, without ever waiting for it.

What the client doesn't read yet is kept, up to a limit: a client that stops reading is cut off and
asks again when it comes back, instead of holding up everybody else.
"""

import contextlib
import selectors
import socket
from collections.abc import Callable

from inferbus_contracts.errors import ProblemsError
from inferbus_shared.processes.wire import LineReader, Message, encode, receive

MAX_UNREAD_BYTES = 8 * 1024 * 1024

OnMessage = Callable[["ClientConnection", Message, list[int]], None]


class ClientConnection:
    """A non-blocking connection registered with a selector under its `on_ready`."""

    def __init__(
        self,
        connection: socket.socket,
        selector: selectors.BaseSelector,
        on_message: OnMessage,
        on_close: Callable[["ClientConnection"], None],
    ) -> None:
        self._socket = connection
        self._selector = selector
        self._on_message = on_message
        self._on_close = on_close
        self._reader = LineReader()
        self._unsent = bytearray()
        self._closed = False
        connection.setblocking(False)
        selector.register(connection, selectors.EVENT_READ, self.on_ready)

    def on_ready(self, events: int) -> None:
        """Read and write what can be, then answer."""
        if events & selectors.EVENT_WRITE:
            self._flush()
        if events & selectors.EVENT_READ and not self._closed:
            self._read()

    def send(self, message: Message) -> None:
        """Queue a message; a client that is too far behind is closed."""
        if self._closed:
            return
        self._unsent += encode(message)
        self._flush()
        if len(self._unsent) > MAX_UNREAD_BYTES:
            self.close()

    def close(self) -> None:
        """Forget the client."""
        if self._closed:
            return
        self._closed = True
        self._selector.unregister(self._socket)
        self._reader.close()
        self._socket.close()
        self._on_close(self)

    def _read(self) -> None:
        try:
            data, descriptors = receive(self._socket)
        except BlockingIOError:
            return
        except OSError:
            data, descriptors = b"", []
        if not data:
            self.close()
            return
        try:
            for message, owned in self._reader.feed(data, descriptors):
                self._on_message(self, message, owned)
        except ProblemsError:
            # The peer doesn't speak the protocol: nothing that follows could be understood either.
            self.close()

    def _flush(self) -> None:
        while self._unsent:
            try:
                sent = self._socket.send(self._unsent)
            except BlockingIOError:
                break
            except OSError:
                self.close()
                return
            del self._unsent[:sent]
        events = selectors.EVENT_READ | (selectors.EVENT_WRITE if self._unsent else 0)
        with contextlib.suppress(KeyError):
            self._selector.modify(self._socket, events, self.on_ready)
