"""The objects and their history: one revision counter, one log per resource, watches fed from it.

What is stored never changes: a write replaces an object by another and appends one change, with a
revision that is greater than every one before. Objects are kept as JSON without apiVersion and
kind, so that lists of thousands are joined, not serialised.
"""

import bisect
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import orjson

from tests.fakes.kubernetes.catalog import Resource

Document = dict[str, Any]

LOG_LIMIT = 200_000


class Stored(NamedTuple):
    """An object at one revision. `fields` are those that field selectors may ask for."""

    namespace: str
    name: str
    uid: str
    revision: int
    labels: dict[str, str]
    fields: dict[str, str]
    rest: bytes

    def document(self, resource: Resource) -> Document:
        """A fresh copy, apiVersion and kind first."""
        found: Document = orjson.loads(resource.prefix + self.rest)
        return found

    def json(self, resource: Resource) -> bytes:
        return resource.prefix + self.rest

    def at(self, revision: int) -> "Stored":
        """The same object with another resourceVersion, as deletions report it."""
        document = orjson.loads(b"{" + self.rest)
        document["metadata"]["resourceVersion"] = str(revision)
        return self._replace(revision=revision, rest=orjson.dumps(document)[1:])


class Change(NamedTuple):
    """One write: `old` is None for a creation; `new` is None for a removal, `last` says it all."""

    revision: int
    old: Stored | None
    new: Stored | None
    last: Stored


Key = tuple[str, str]


class Collection:
    """One resource's objects, their log, and who watches it."""

    def __init__(self) -> None:
        self.objects: dict[Key, Stored] = {}
        self.log: list[Change] = []
        self.listeners: set[Callable[[Change | None], None]] = set()
        self._order: list[Key] | None = None

    def sorted_keys(self) -> list[Key]:
        if self._order is None:
            self._order = sorted(self.objects)
        return self._order

    def record(self, change: Change) -> None:
        key = (change.last.namespace, change.last.name)
        if change.new is None:
            del self.objects[key]
            self._order = None
        else:
            if key not in self.objects:
                self._order = None
            self.objects[key] = change.new
        self.log.append(change)
        for listener in tuple(self.listeners):
            listener(change)

    def since(self, revision: int) -> Iterator[Change]:
        yield from self.log[bisect.bisect_right(self.log, revision, key=lambda c: c.revision) :]

    def at(self, revision: int) -> dict[Key, Stored]:
        """The objects as they were: what came after is undone, newest first."""
        objects = dict(self.objects)
        for change in reversed(self.log):
            if change.revision <= revision:
                break
            key = (change.last.namespace, change.last.name)
            if change.old is None:
                del objects[key]
            else:
                objects[key] = change.old
        return objects

    def close(self) -> None:
        """The resource is no longer served: whoever watches it is told that this is the end."""
        for listener in tuple(self.listeners):
            listener(None)


class Store:
    """All collections, by (group, plural)."""

    def __init__(self) -> None:
        self.revision = 1
        self.compacted = 0
        self._collections: dict[tuple[str, str], Collection] = {}

    def collection(self, resource: Resource) -> Collection:
        return self._collections.setdefault((resource.group, resource.plural), Collection())

    def get(self, resource: Resource, namespace: str, name: str) -> Stored | None:
        return self.collection(resource).objects.get((namespace, name))

    def put(self, resource: Resource, document: Document, old: Stored | None) -> Stored:
        """Store `document`, which becomes the store's: its resourceVersion is set here."""
        self.revision += 1
        new = stored(resource, document, self.revision)
        self._record(resource, Change(self.revision, old, new, new))
        return new

    def remove(self, resource: Resource, old: Stored) -> Stored:
        """Remove an object; answers its last state, at the removal's revision."""
        self.revision += 1
        last = old.at(self.revision)
        self._record(resource, Change(self.revision, old, None, last))
        return last

    def _record(self, resource: Resource, change: Change) -> None:
        collection = self.collection(resource)
        collection.record(change)
        if len(collection.log) > LOG_LIMIT:
            self.compact(collection.log[LOG_LIMIT // 2].revision)

    def compact(self, revision: int) -> None:
        """Forget the history up to `revision`: watches and pages from before it end with 410."""
        self.compacted = max(self.compacted, revision)
        for collection in self._collections.values():
            collection.log = list(collection.since(revision))

    def drop(self, resource: Resource) -> None:
        """The resource goes, with its objects."""
        collection = self.collection(resource)
        for old in list(collection.objects.values()):
            self.remove(resource, old)
        collection.close()
        del self._collections[resource.group, resource.plural]


def stored(resource: Resource, document: Document, revision: int) -> Stored:
    """`document` as an object of the store, at `revision`."""
    metadata = document["metadata"]
    metadata["resourceVersion"] = str(revision)
    rest = {key: value for key, value in document.items() if key not in ("apiVersion", "kind")}
    return Stored(
        namespace=metadata.get("namespace", ""),
        name=metadata["name"],
        uid=metadata["uid"],
        revision=revision,
        labels=metadata.get("labels") or {},
        fields=_fields(resource, document),
        rest=orjson.dumps(rest)[1:],
    )


def _fields(resource: Resource, document: Document) -> dict[str, str]:
    fields = {
        "metadata.name": document["metadata"]["name"],
        "metadata.namespace": document["metadata"].get("namespace", ""),
    }
    for path in resource.fields:
        value: Any = document
        for name in path.split("."):
            value = value.get(name) if isinstance(value, dict) else None
        fields[path] = "" if value is None else _text(value)
    return fields


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
