"""The parts of the routers' table, and what must be published for routers to have them.

Invariant: after every publication the routers that took it hold a whole table. In a batch servers
stand before the routes that lead to them, and go after them; a gateway comes when its routes are
there, and goes before them; each part has the next revision, and all carry the digest of the table
that the publication leads to.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from inferbus_contracts.canonical import digest
from inferbus_contracts.events.route import (
    GatewayEntry,
    RouteEntry,
    RoutePublished,
    ServerEntry,
)
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.resources import kinds
from inferbus_contracts.table_digest import part_pair, table_digest

MAX_BATCH = 1000
"""The most messages that are stored together."""

GONE_DIGEST = ""
"""The digest of a tombstone; it has no place in the table's digest."""


Entry = RouteEntry | ServerEntry | GatewayEntry

_COMING = {
    kinds.MODEL_SERVER: 0,
    kinds.INFERENCE_POOL: 0,
    kinds.EXTERNAL_MODEL_PROVIDER: 0,
    kinds.GATEWAY: 2,
}
"""Kinds in the order they are published in; routes come between."""


@dataclass(frozen=True, slots=True)
class Part:
    """One route, server or gateway, whole."""

    entry: Entry
    digest: str

    @classmethod
    def of(cls, entry: Entry) -> "Part":
        """The part with its digest: that of the entry's JSON, without absent fields."""
        return cls(entry, digest(entry.to_dict()))


@dataclass(frozen=True, slots=True)
class Change:
    """A part that differs from what is published; None removes it."""

    key: ObjectKey
    part: Part | None


@dataclass(frozen=True, slots=True)
class Batch:
    """Messages that are stored together or not at all."""

    messages: tuple[tuple[ObjectKey, RoutePublished], ...]
    table: "PublishedTable"
    """What is published once the batch is stored."""


class PublishedTable:
    """What routers were told: digests of parts, the last revision, the position in the log."""

    __slots__ = ("_digests", "_pairs", "position", "revision", "table_digest", "told_digest")

    def __init__(
        self,
        digests: dict[ObjectKey, str],
        pairs: dict[ObjectKey, bytes],
        revision: int,
        position: int,
    ) -> None:
        """`digests` by key, those of tombstones empty; `pairs` without tombstones, as `part_pair`;
        `position` is the log's last sequence.
        """
        self._digests = digests
        self._pairs = pairs
        self.revision = revision
        self.position = position
        self.table_digest = self.told_digest = table_digest(pairs.values())
        """The second is what the newest message says of the table, which may be another where a
        publication of several batches was broken off.
        """

    @classmethod
    def read(
        cls, published: Iterable[tuple[ObjectKey, RoutePublished]], position: int
    ) -> "PublishedTable":
        """From the last message of every part.

        The revision goes on from the log's position where that is further: routers never see it
        fall, even after the log was emptied.
        """
        digests: dict[ObjectKey, str] = {}
        revision, newest, told = position, -1, ""
        for key, message in published:
            digests[key] = GONE_DIGEST if message.deleted else message.digest
            revision = max(revision, message.revision)
            if message.revision > newest:
                newest, told = message.revision, message.table_digest
        pairs = {key: part_pair(key, part) for key, part in digests.items() if part}
        table = cls(digests, pairs, revision, position)
        table.told_digest = told or table.table_digest
        return table

    @property
    def parts(self) -> int:
        """Parts that routers hold."""
        return len(self._pairs)

    def keys(self) -> list[ObjectKey]:
        """Everything that was ever published."""
        return list(self._digests)

    def changes(self, wanted: Mapping[ObjectKey, Part | None]) -> list[Change]:
        """What of `wanted` isn't published yet, in the order it must be published in."""
        differing = [
            Change(key, part)
            for key, part in wanted.items()
            if (part.digest if part else GONE_DIGEST) != self._digests.get(key, GONE_DIGEST)
        ]
        return sorted(differing, key=_publication_order)

    def retelling(self, wanted: Mapping[ObjectKey, Part | None]) -> list[Change]:
        """A part to be published as it is, where the newest message speaks of another table.

        For when nothing else has to be: routers would miss parts for ever that aren't wanted any
        more.
        """
        if self.told_digest == self.table_digest:
            return []
        unchanged = (Change(key, part) for key, part in sorted(wanted.items()) if part)
        return [*islice(unchanged, 1)]

    def batches(self, changes: Sequence[Change]) -> Iterator[Batch]:
        """The messages of these changes, in batches of `MAX_BATCH` at most, and the tables between.

        All tell the digest of the table they lead to together, so that nobody takes what is between
        for the whole.
        """
        table, whole = self, self._after(changes).table_digest
        for first in range(0, len(changes), MAX_BATCH):
            batch = table.batch(changes[first : first + MAX_BATCH], whole)
            table = batch.table
            yield batch

    def batch(self, changes: Sequence[Change], whole: str = "") -> Batch:
        """The messages of these changes (1 to `MAX_BATCH`), and the table after them.

        `whole` is the digest they tell; that of the table after them unless given.
        """
        table = self._after(changes)
        messages = tuple(
            (change.key, _message(change.part, revision, whole or table.table_digest))
            for revision, change in enumerate(changes, self.revision + 1)
        )
        return Batch(messages, table)

    def _after(self, changes: Sequence[Change]) -> "PublishedTable":
        digests, pairs = self._digests.copy(), self._pairs.copy()
        for change in changes:
            key = change.key
            digests[key] = change.part.digest if change.part else GONE_DIGEST
            if change.part:
                pairs[key] = part_pair(key, change.part.digest)
            else:
                pairs.pop(key, None)
        count = len(changes)
        return PublishedTable(digests, pairs, self.revision + count, self.position + count)


def _publication_order(change: Change) -> tuple[int, ObjectKey]:
    place = _COMING.get(change.key.kind, 1)
    return (place if change.part is not None else 5 - place, change.key)


def _message(part: Part | None, revision: int, digest_of_table: str) -> RoutePublished:
    entry = part.entry if part else None
    return RoutePublished(
        revision=revision,
        digest=part.digest if part else GONE_DIGEST,
        table_digest=digest_of_table,
        deleted=part is None,
        route=entry if isinstance(entry, RouteEntry) else None,
        server=entry if isinstance(entry, ServerEntry) else None,
        gateway=entry if isinstance(entry, GatewayEntry) else None,
    )
