"""One watch: the changes that a selection sees, as the lines that go to its client.

An object that begins to match is ADDED, one that no longer does is DELETED, whatever the write was.
"""

import asyncio
from collections import deque
from typing import Any

import orjson

from tests.fakes.kubernetes.catalog import Resource
from tests.fakes.kubernetes.reading import Selection
from tests.fakes.kubernetes.status import ApiError, expired
from tests.fakes.kubernetes.store import Change, Store, Stored

INITIAL_EVENTS_END = "k8s.io/initial-events-end"


class Watch:
    """Lines wait in `lines`; `wake` is set when there is something to send or `ended` changed."""

    def __init__(self, store: Store, resource: Resource, selection: Selection) -> None:
        self.resource = resource
        self.selection = selection
        self.lines: deque[bytes] = deque()
        self.wake = asyncio.Event()
        self.ended = False
        self.cut = False
        self.stalled = False
        self.bookmarks = False
        self._store = store
        self._after = 0
        self._collection = store.collection(resource)

    def begin(self, revision: int | None) -> None:
        """Send what happened after `revision`, or everything there is, and follow from there.

        A revision that is yet to come is waited for in silence.
        """
        if revision is None:
            for key in self._collection.sorted_keys():
                each = self._collection.objects[key]
                if self.selection.takes(each):
                    self._send("ADDED", each)
        else:
            self._after = revision
            for change in self._collection.since(revision):
                self._offer(change)
        self._collection.listeners.add(self._offer)

    def close(self) -> None:
        self._collection.listeners.discard(self._offer)

    def send_bookmark(self, *, initial_end: bool = False) -> None:
        """Say which revision this watch has seen everything up to."""
        meta: dict[str, Any] = {"resourceVersion": str(self._store.revision)}
        if initial_end:
            meta["annotations"] = {INITIAL_EVENTS_END: "true"}
        document = {
            "kind": self.resource.kind,
            "apiVersion": self.resource.api_version,
            "metadata": {**meta, "creationTimestamp": None},
        }
        self.send_line(orjson.dumps({"type": "BOOKMARK", "object": document}))

    def send_error(self, error: ApiError) -> None:
        self.send_line(orjson.dumps({"type": "ERROR", "object": error.status()}))
        self.end()

    def send_line(self, line: bytes) -> None:
        self.lines.append(line + b"\n")
        self.wake.set()

    def end(self, *, cut: bool = False) -> None:
        """Close the stream after what waits; `cut`: at once, in the middle of it."""
        self.ended, self.cut = True, cut
        self.wake.set()

    def expire(self) -> None:
        self.send_error(expired(1, self._store.revision))

    def _offer(self, change: Change | None) -> None:
        if change is None:
            self.end()
            return
        if change.revision <= self._after:
            return
        before = change.old is not None and self.selection.takes(change.old)
        now = change.new is not None and self.selection.takes(change.new)
        if now:
            self._send("MODIFIED" if before else "ADDED", change.last)
        elif before:
            last = change.last
            if change.new is not None and change.old is not None:
                last = change.old.at(change.revision)
            self._send("DELETED", last)

    def _send(self, kind: str, each: Stored) -> None:
        head = f'{{"type":"{kind}","object":'.encode()
        self.send_line(head + self.resource.prefix + each.rest + b"}")
