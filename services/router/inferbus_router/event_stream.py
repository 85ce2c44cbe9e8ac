"""An engine's event stream on its way to the client: what is counted in it, and the one event that
may be taken out.

Where the router itself asked for usage, the event that carries nothing else is not the client's
(routing spec 2.5). Events are forwarded as they come, but whole: what stands behind the last blank
line waits for its end, up to a bound, so that an event can be taken out, or an error put behind
the last one. Invariant: the forwarded bytes are the engine's bytes without that event, in order
and unchanged.
"""

import re
from typing import Any

import orjson

from inferbus_router.typed_events import TypedEvents
from inferbus_router.usage import UsageReader

_COUNTS = b'_tokens"'
"""Every usage object holds it, and hardly anything else in a stream does."""
_MESSAGE_STOP = b"message_stop"
_DONE = b"data: [DONE]\n\n"
_ENDS = (b"\n\n", b"\r\n\r\n", b"\r\r")
_EVENT_END = re.compile(b"|".join(_ENDS))
_MOST_WAITING_BYTES = 256 * 1024


class EventStream(UsageReader):
    """One response of content type text/event-stream."""

    def __init__(self, drop_usage: bool) -> None:
        self.events = 0
        """Data events forwarded, until the caller resets it: about one per token."""
        self.is_finished = False
        """The event that ends the response was forwarded: nothing that matters comes any more."""
        self._drop_usage = drop_usage
        self._waiting = b""
        self._typed: TypedEvents | None = None
        """None: no event had a type so far."""

    def feed(self, data: bytes) -> bytes:
        """The next piece of the stream; returns what goes to the client now."""
        events = self._whole_events(data)
        kept = self._inspected(events) if self._may_tell(events) else events
        if events.endswith(_DONE):
            self.is_finished = True
        self.events += kept.count(b"data:")
        return kept if self._drop_usage else events

    def end(self) -> bytes:
        """What still waited when the stream ended without the end of an event."""
        rest, self._waiting = self._waiting, b""
        return rest

    def _whole_events(self, data: bytes) -> bytes:
        if self._waiting:
            data = self._waiting + data
            self._waiting = b""
        if data.endswith(b"\n\n"):
            return data
        end = max((data.rfind(mark) + len(mark) for mark in _ENDS if mark in data), default=0)
        if len(data) - end > _MOST_WAITING_BYTES:
            return data
        self._waiting = data[end:]
        return data[:end]

    def _may_tell(self, events: bytes) -> bool:
        """Whether something in it is worth to be parsed."""
        if _COUNTS in events:
            return True
        return self._typed is not None and self._typed.is_message and _MESSAGE_STOP in events

    def _inspected(self, events: bytes) -> bytes:
        """`events` without the one that carries usage alone."""
        kept = []
        position = 0
        for end in _EVENT_END.finditer(events):
            event = events[position : end.end()]
            position = end.end()
            if not (self._may_tell(event) and self._is_only_usage(event)):
                kept.append(event)
        kept.append(events[position:])
        return b"".join(kept)

    def _is_only_usage(self, event: bytes) -> bool:
        """Read the usage in an event; True where it has no choices beside it."""
        document = _document(event)
        if document is None:
            return False
        kind = document.get("type")
        if not isinstance(kind, str):
            return self.read(document.get("usage")) and document.get("choices") == []
        typed = self._typed = self._typed or TypedEvents()
        typed.read(kind, document, self)
        self.is_finished = typed.is_finished
        return False


def _document(event: bytes) -> dict[str, Any] | None:
    lines = (line for line in event.splitlines() if line.startswith(b"data:"))
    data = b"\n".join(line[5:].removeprefix(b" ") for line in lines)
    try:
        document = orjson.loads(data)
    except orjson.JSONDecodeError:
        return None  # not ours to judge: it is forwarded as it is, and counts nothing
    return document if isinstance(document, dict) else None


def failure_event(body: bytes) -> bytes:
    """The event that tells the client of a stream that its engine failed; `body` is an error
    object.
    """
    return b"event: error\ndata: " + body + b"\n\n"
