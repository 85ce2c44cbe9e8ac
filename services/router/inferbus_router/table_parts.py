"""The parts of a routing table as they are held: by key, compiled, with their digests.

Invariant: parts are never changed once made; what a message leaves alone is carried over as the
same object without being looked at, so that a change costs as much as what it changes.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

from inferbus_contracts.events.route import RoutePublished
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.table_digest import part_pair, table_digest

ContentT = TypeVar("ContentT")

Published = Iterable[tuple[ObjectKey, RoutePublished]]


@dataclass(frozen=True, slots=True)
class _Part(Generic[ContentT]):
    digest: str
    revision: int
    pair: bytes
    """What it contributes to the table's digest."""
    content: ContentT


class HeldParts(Generic[ContentT]):
    """All parts at one moment."""

    def __init__(
        self, compile_part: Callable[[ObjectKey, RoutePublished], ContentT | None]
    ) -> None:
        """None; `compile_part` gives a message's content, None for one that holds nothing."""
        self._compile = compile_part
        self._parts: dict[ObjectKey, _Part[ContentT]] = {}
        self._digest = ""
        self.revision = 0
        """The highest that was seen."""
        self.expected_digest = ""
        """Digest over all parts, as the newest message tells it; empty before the first."""

    def get(self, key: ObjectKey) -> ContentT | None:
        """The content of a part; None where there is none."""
        part = self._parts.get(key)
        return part.content if part else None

    @property
    def digest(self) -> str:
        """Digest over the parts that are held, as `RoutePublished` defines it."""
        if not self._digest:
            self._digest = table_digest(part.pair for part in self._parts.values())
        return self._digest

    def after(self, published: Published) -> tuple["HeldParts[ContentT]", Iterable[ObjectKey]]:
        """The parts after these messages, and the keys of those that may differ.

        A message that is older than the part held is passed over.
        """
        parts = HeldParts(self._compile)
        parts._parts = self._parts.copy()
        parts.revision, parts.expected_digest = self.revision, self.expected_digest
        touched: dict[ObjectKey, None] = {}
        for key, message in published:
            held = parts._parts.get(key)
            if held is None or message.revision >= held.revision:
                parts._take(key, message, held)
                touched[key] = None
        return parts, touched

    def replaced_by(
        self, published: Published
    ) -> tuple["HeldParts[ContentT]", Iterable[ObjectKey]]:
        """The parts of these messages alone, whatever the revisions of those held; as `after`.

        For a log that begins anew: its revisions need not go on where the old ones ended.
        """
        parts = HeldParts(self._compile)
        for key, message in published:
            parts._take(key, message, self._parts.get(key))
        return parts, self._parts.keys() | parts._parts.keys()

    def _take(self, key: ObjectKey, message: RoutePublished, known: _Part[ContentT] | None) -> None:
        """`known` is what is known of the key: its content is kept where its digest stayed."""
        if message.revision >= self.revision:
            self.revision, self.expected_digest = message.revision, message.table_digest
        if known is not None and known.digest == message.digest and not message.deleted:
            part = _Part(known.digest, message.revision, known.pair, known.content)
            self._parts[key] = part
            return
        content = None if message.deleted else self._compile(key, message)
        if content is None:
            self._parts.pop(key, None)
        else:
            pair = part_pair(key, message.digest)
            self._parts[key] = _Part(message.digest, message.revision, pair, content)
