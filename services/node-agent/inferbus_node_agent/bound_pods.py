"""Pods of one node out of a picture of all pods, whoever keeps the picture.

Invariant: whoever reads the news knows, after each of them, exactly the pods that the picture binds
to the node. A pod whose name now belongs to another pod is told as gone first.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from typing import Protocol

from inferbus_contracts.keys import ObjectKey
from inferbus_node_agent.ports import Document, PodApplied, PodNews, PodRemoved, PodSnapshot


class PodPicture(Protocol):
    """Pod objects that are kept current; silent while that isn't possible."""

    async def ready(self) -> None:
        """Wait until the picture is complete."""
        ...

    def on_change(self, listener: Callable[[ObjectKey], None]) -> None:
        """Call back with the key of every pod that changed or went."""
        ...

    def pods(self) -> Iterable[tuple[ObjectKey, Document]]:
        """All of them."""
        ...

    def pod(self, key: ObjectKey) -> Document | None:
        """One; None when there is none."""
        ...


class BoundPods:
    """A `PodSource`: the pods that a picture binds to one node."""

    def __init__(self, picture: PodPicture, node: str) -> None:
        self._picture = picture
        self._node = node
        self._told: dict[ObjectKey, Document] = {}
        self._news: asyncio.Queue[PodNews] = asyncio.Queue()

    async def watch(self) -> AsyncIterator[PodNews]:
        """A snapshot, then changes."""
        await self._picture.ready()
        self._told = {key: pod for key, pod in self._picture.pods() if self._is_here(pod)}
        self._picture.on_change(self._changed)
        yield PodSnapshot(list(self._told.values()))
        while True:
            yield await self._news.get()

    def _changed(self, key: ObjectKey) -> None:
        before, now = self._told.get(key), self._picture.pod(key)
        here = now if now is not None and self._is_here(now) else None
        if before is not None and (here is None or _uid(here) != _uid(before)):
            del self._told[key]
            self._news.put_nowait(PodRemoved(_uid(before)))
        if here is not None and here != before:
            self._told[key] = here
            self._news.put_nowait(PodApplied(here))

    def _is_here(self, pod: Document) -> bool:
        return bool(pod.get("spec", {}).get("nodeName") == self._node)


def _uid(pod: Document) -> str:
    return str(pod["metadata"]["uid"])
