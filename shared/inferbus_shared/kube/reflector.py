"""One resource of the API server, kept in memory: listed once, then followed by watches.

Invariant: once `ready`, the view holds what the API server held at a moment not long ago, or
`problem` says why that moment lies back; it never misses a change for good, because whatever breaks
a watch is followed by going on where it stopped, or by a new list. An own write that is drawn in by
`observe` stays.
"""

import asyncio
import logging
import random
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Any, Generic

from inferbus_contracts.errors import Problem
from inferbus_contracts.keys import ObjectKey
from inferbus_shared.kube.client import KubeClient
from inferbus_shared.kube.follow import Follow
from inferbus_shared.kube.resources import ApiResource
from inferbus_shared.kube.view import Index, MalformedError, Read, T, View, identify

log = logging.getLogger("inferbus.kube")

Listener = Callable[[ObjectKey], None]


class Reflector(Generic[T]):
    """The objects of a resource, or of some namespaces of it."""

    def __init__(
        self,
        client: KubeClient,
        resource: ApiResource,
        *,
        read: Read[T],
        index: Index | None = None,
        namespaces: Sequence[str] = (),
        label_selector: str = "",
        name: str = "",
        chance: Callable[[], float] = random.random,
    ) -> None:
        """`read` makes of an object what is kept of it: keep it small.

        `read` and `index` may raise what code raises on another shape than it expects; the object
        is then left out and told (`malformed`). `index` gives an object's value for `by_index`.
        Without `namespaces` the whole cluster is followed; with them one watch each. `name` is that
        of the only object. `chance` in [0, 1) spreads the delays.
        """
        self.resource = resource
        self._metrics = client.metrics
        self._held = client.metrics.objects.labels(resource.kind)
        self._counted = 0
        self._view: View[T] = View(resource, read, index)
        self._listeners: list[Listener] = []
        self._all_synced = asyncio.Event()
        spaces = tuple(dict.fromkeys(namespaces)) if resource.namespaced else ()
        self._follows = {
            namespace: Follow(
                client, resource, namespace, label_selector, self._view, self, chance, name
            )
            for namespace in spaces or ("",)
        }

    def on_change(self, listener: Listener) -> None:
        """Call back with the key of every object that changed or went, after the view shows it."""
        self._listeners.append(listener)

    async def run(self) -> None:
        """Keep the view current, for ever."""
        async with asyncio.TaskGroup() as tasks:
            for follow in self._follows.values():
                tasks.create_task(follow.run())

    async def ready(self) -> None:
        """Wait until the view is complete, or the resource is known not to be served."""
        await self._all_synced.wait()

    @property
    def synced(self) -> bool:
        """Whether the view has been complete once."""
        return self._all_synced.is_set()

    @property
    def served(self) -> bool:
        """Whether the API server serves the resource; True as long as nothing says otherwise."""
        return all(follow.served for follow in self._follows.values())

    @property
    def problem(self) -> Problem | None:
        """Why the view isn't current; None when it is, and when the resource isn't served."""
        return next((one.problem for one in self._follows.values() if one.problem), None)

    @property
    def malformed(self) -> Mapping[str, Problem]:
        """Objects that can't be read, by `kind/namespace/name`."""
        return self._view.malformed

    @property
    def revision(self) -> int:
        """The newest revision that a list or a watch has come to."""
        return max(follow.revision for follow in self._follows.values())

    def revision_in(self, namespace: str) -> int:
        """Every change in a namespace up to this revision is shown; 0 where it isn't followed."""
        follow = self._follow_of(namespace)
        return follow.revision if follow else 0

    def __len__(self) -> int:
        return len(self._view)

    def get(self, key: ObjectKey) -> T | None:
        """What is kept of an object; None without it."""
        return self._view.get(key)

    def revision_of(self, key: ObjectKey) -> int:
        """The resourceVersion of an object in the view; 0 without it."""
        return self._view.revision_of(key)

    def items(self, namespace: str = "") -> Iterator[tuple[ObjectKey, T]]:
        """All objects, or those of a namespace, in key order, as of now."""
        return self._view.items(namespace)

    def by_index(self, value: Hashable) -> tuple[tuple[ObjectKey, T], ...]:
        """The objects of an index value, in key order; costs what they are, not what all are."""
        return self._view.by_index(value)

    def observe(self, document: Mapping[str, Any] | None) -> None:
        """Draw the answer to an own write in, so that the view is never older than that.

        What the watch has passed already changes nothing: it has told that state, or that the
        object has gone since. So do a `Status` and None, the answers to a delete that ended the
        object. Only for objects that the label selector takes.
        """
        if document is None or document.get("kind") == "Status":
            return
        try:
            identity = identify(self.resource, document)
            follow = self._follow_of(identity.key.namespace)
            if follow is None or identity.revision <= follow.revision:
                return
            kept = self._view.keep(identity, document)
        except MalformedError as error:
            self.unreadable(error)
            return
        if self._view.put(identity.key, kept):
            self.tell([identity.key])

    def _follow_of(self, namespace: str) -> Follow[T] | None:
        return self._follows.get("") or self._follows.get(namespace)

    def tell(self, keys: Sequence[ObjectKey]) -> None:
        """The view shows something new of these objects."""
        # Several reflectors may hold parts of one kind: each adds what it holds.
        self._held.inc(len(self._view) - self._counted)
        self._counted = len(self._view)
        for key in keys:
            for listener in self._listeners:
                listener(key)

    def unreadable(self, error: MalformedError) -> None:
        """An object can't be read; said once for each until it can."""
        if error.name not in self._view.malformed:
            log.warning("object left out", extra={"problem": str(error.problem)})
            self._metrics.malformed.labels(self.resource.kind).inc()
        self._view.malformed[error.name] = error.problem

    def synced_once(self) -> None:
        """A list is complete, or the resource isn't served."""
        if all(follow.synced for follow in self._follows.values()):
            self._all_synced.set()
