"""The objects of one resource in memory, by key, by namespace and by an index value.

Pure. Invariant: an object never gives way to an older state of itself, in whatever order a list, a
watch and the answers to own writes arrive. Resource versions of one resource are compared as
numbers. (Kubernetes API concepts, "Resource versions"; KEP-5504)
"""

import sys
from collections.abc import Callable, Hashable, Iterator, Mapping, Set
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from inferbus_contracts.errors import Problem, ProblemsError
from inferbus_contracts.keys import ObjectKey
from inferbus_shared.kube.problems import malformed
from inferbus_shared.kube.resources import ApiResource

T = TypeVar("T")

Document = Mapping[str, Any]
Read = Callable[[Document], T]
Index = Callable[[Document], Hashable | None]

_UNREADABLE = (ProblemsError, LookupError, TypeError, ValueError, AttributeError, ArithmeticError)
"""What code raises that meets another shape than it expects."""


class MalformedError(Exception):
    """An object without identity, or that `read` can't read; `name` is what it is known by."""

    def __init__(self, name: str, problem: Problem) -> None:
        super().__init__(str(problem))
        self.name = name
        self.problem = problem


@dataclass(frozen=True, slots=True)
class Identity:
    """Which object at which revision."""

    key: ObjectKey
    revision: int


def identify(resource: ApiResource, document: object) -> Identity:
    """The identity of an object as the API server shows it; raises `MalformedError`."""
    metadata = document.get("metadata") if isinstance(document, Mapping) else None
    if not isinstance(metadata, Mapping):
        raise MalformedError("", malformed(resource.kind, "", "it has no metadata", document))
    namespace, name = metadata.get("namespace"), metadata.get("name")
    label = f"{resource.kind}/{namespace or '?'}/{name or '?'}"
    needed = ["name", "uid", "resourceVersion"] + ["namespace"] * resource.namespaced
    for field in needed:
        value = metadata.get(field)
        if not isinstance(value, str) or not value:
            reason = f"metadata.{field} is no text"
            raise MalformedError(label, malformed(resource.kind, label, reason, value))
    version = metadata["resourceVersion"]
    if not (version.isascii() and version.isdigit()):
        reason = "metadata.resourceVersion is no number"
        raise MalformedError(label, malformed(resource.kind, label, reason, version))
    place = sys.intern(namespace) if isinstance(namespace, str) else ""
    return Identity(resource.key(place, str(name)), int(version))


@dataclass(frozen=True, slots=True)
class Kept(Generic[T]):
    """What is kept of an object."""

    revision: int
    value: T
    indexed: Hashable | None


class View(Generic[T]):
    """What is known of a resource's objects."""

    def __init__(self, resource: ApiResource, read: Read[T], index: Index | None = None) -> None:
        self._resource = resource
        self._read = read
        self._index = index
        self._spaces: dict[str, dict[ObjectKey, Kept[T]]] = {}
        self._by_index: dict[Hashable, dict[ObjectKey, None]] = {}
        self.malformed: dict[str, Problem] = {}
        """What can't be read, by what it is known by, until it can or is gone."""

    def __len__(self) -> int:
        return sum(map(len, self._spaces.values()))

    def get(self, key: ObjectKey) -> T | None:
        """What is kept of an object; None without it."""
        kept = self._kept(key)
        return kept.value if kept else None

    def revision_of(self, key: ObjectKey) -> int:
        """The revision of an object in the view; 0 without it."""
        kept = self._kept(key)
        return kept.revision if kept else 0

    def _kept(self, key: ObjectKey) -> Kept[T] | None:
        return self._spaces.get(key.namespace, {}).get(key)

    def items(self, namespace: str = "") -> Iterator[tuple[ObjectKey, T]]:
        """All objects, or those of a namespace, in key order, as of now."""
        spaces = [namespace] if namespace else sorted(self._spaces)
        found = [item for one in spaces for item in sorted(self._spaces.get(one, {}).items())]
        return iter([(key, kept.value) for key, kept in found])

    def by_index(self, value: Hashable) -> tuple[tuple[ObjectKey, T], ...]:
        """The objects of an index value, in key order; costs what they are, not what all are."""
        keys = sorted(self._by_index.get(value, ()))
        return tuple((key, self._spaces[key.namespace][key].value) for key in keys)

    def keep(self, identity: Identity, document: Document) -> Kept[T]:
        """What will be kept of an object; raises `MalformedError` when it can't be read."""
        known = self._kept(identity.key)
        if known and known.revision == identity.revision:
            return known
        try:
            indexed = self._index(document) if self._index else None
            return Kept(identity.revision, self._read(document), indexed)
        except _UNREADABLE as error:
            reason = f"{type(error).__name__}: {error}"
            name = str(identity.key)
            raise MalformedError(name, malformed(self._resource.kind, name, reason)) from error

    def put(self, key: ObjectKey, kept: Kept[T], *, whatever_is_known: bool = False) -> bool:
        """Draw an object in; whether that changed the view. Older than known, it doesn't."""
        known = self._kept(key)
        if known is kept:
            return False
        if known and known.revision >= kept.revision and not whatever_is_known:
            return False
        if known:
            self._unindex(key, known)
        self._spaces.setdefault(key.namespace, {})[key] = kept
        if kept.indexed is not None:
            self._by_index.setdefault(kept.indexed, {})[key] = None
        self.malformed.pop(str(key), None)
        return True

    def remove(self, key: ObjectKey, revision: int) -> bool:
        """An object is gone since `revision`; whether that changed the view.

        What the view knows to be newer stays: it was created again since.
        """
        self.malformed.pop(str(key), None)
        known = self._kept(key)
        if known is None or known.revision > revision:
            return False
        self._drop(key, known)
        return True

    def clear(self, namespace: str = "") -> list[ObjectKey]:
        """Forget all objects, or those of a namespace; the keys of what was there."""
        keys = [key for key, _ in self.items(namespace)]
        for key in keys:
            self._drop(key, self._spaces[key.namespace][key])
        self.malformed.clear()
        return keys

    def keys(self, namespace: str = "") -> list[ObjectKey]:
        """The keys of all objects, or those of a namespace, in no order."""
        spaces = [self._spaces.get(namespace, {})] if namespace else self._spaces.values()
        return [key for space in spaces for key in space]

    def forget_malformed(self, namespace: str, still: Set[str]) -> None:
        """Of what can't be read, in a namespace or all, only `still` is there."""
        begin = f"{self._resource.kind}/{namespace}/" if namespace else ""
        for name in [name for name in self.malformed if name.startswith(begin)]:
            if name not in still:
                del self.malformed[name]

    def _drop(self, key: ObjectKey, known: Kept[T]) -> None:
        self._unindex(key, known)
        space = self._spaces[key.namespace]
        del space[key]
        if not space:
            del self._spaces[key.namespace]

    def _unindex(self, key: ObjectKey, known: Kept[T]) -> None:
        if known.indexed is None:
            return
        others = self._by_index[known.indexed]
        others.pop(key, None)
        if not others:
            del self._by_index[known.indexed]


class Relist(Generic[T]):
    """A list that is being read, page by page, and then takes the view's place at once."""

    def __init__(self, view: View[T], resource: ApiResource, namespace: str = "") -> None:
        self._view = view
        self._resource = resource
        self._namespace = namespace
        self._listed: dict[ObjectKey, Kept[T]] = {}
        self._unreadable: set[ObjectKey] = set()
        self._malformed: set[str] = set()

    def begin(self) -> None:
        """The list begins anew."""
        self._listed.clear()
        self._unreadable.clear()
        self._malformed.clear()

    def add(self, document: Document) -> None:
        """One object of the list; raises `MalformedError`, and then the list goes on without it."""
        try:
            identity = identify(self._resource, document)
            self._unreadable.add(identity.key)
            self._listed[identity.key] = self._view.keep(identity, document)
            self._unreadable.discard(identity.key)
        except MalformedError as error:
            self._malformed.add(error.name)
            raise

    def finish(self, revision: int, *, went_back: bool = False) -> list[ObjectKey]:
        """The list is complete as of `revision`; the keys of what changed.

        What isn't listed is gone, unless the view has it from a later write. An object that can't
        be read is not gone: the view goes on with what it was last. `went_back`: the server's
        history is another than before (restored from a backup), and nothing known counts.
        """
        changed = [
            key
            for key, kept in self._listed.items()
            if self._view.put(key, kept, whatever_is_known=went_back)
        ]
        self._view.forget_malformed(self._namespace, self._malformed)
        for key in self._view.keys(self._namespace):
            if key in self._listed or key in self._unreadable:
                continue
            if went_back or self._view.revision_of(key) <= revision:
                self._view.remove(key, max(revision, self._view.revision_of(key)))
                changed.append(key)
        return changed
