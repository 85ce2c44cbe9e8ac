"""The objects of a cluster: a picture over one list and watch for each kind.

Invariant: the picture is never older than this instance's own writes, and what it doesn't hold is
gone only where `sees` says so: of a kind that isn't served for a moment, or of a namespace that
isn't looked at, nothing is known.
"""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from inferbus_contracts.errors import Problem
from inferbus_contracts.keys import NO_NAMESPACE, ObjectKey
from inferbus_contracts.resources.kinds import (
    AUTOSCALING_POLICY,
    AUTOSCALING_POLICY_BINDING,
    CONFIG_MAP,
    CORE_SERVICE,
    HORIZONTAL_POD_AUTOSCALER,
    KINDS,
    LEADER_WORKER_SET,
)
from inferbus_shared.kube.client import KubeClient
from inferbus_shared.kube.reflector import Reflector
from inferbus_shared.kube.resources import resource_of
from inferbus_spec_watcher.policy_cluster_objects import (
    ClusterObject,
    bound_policy,
    read_object,
    refusal,
)

FOLLOWED = (
    *(kind.token for kind in KINDS.values() if not kind.supporting),
    CORE_SERVICE,
    HORIZONTAL_POD_AUTOSCALER,
    LEADER_WORKER_SET,
)
"""The platform's own kinds, and what becomes a child of them."""

Listener = Callable[[ObjectKey], None]


class KubernetesStore:
    """All objects of a cluster that matter here, to read."""

    def __init__(
        self,
        client: KubeClient,
        *,
        configuration: Sequence[ObjectKey] = (),
    ) -> None:
        """`configuration` names the only ConfigMaps that are read."""
        self._client = client
        self._namespaces = frozenset(client.settings.namespaces)
        self._configuration = frozenset(configuration)
        self._deleted: dict[ObjectKey, str] = {}
        self._listeners: list[Listener] = []
        self._reflectors = {
            kind: self._follow(kind, client.settings.namespaces) for kind in FOLLOWED
        }
        if configuration:
            places = sorted({key.namespace for key in configuration})
            self._reflectors[CONFIG_MAP] = self._follow(CONFIG_MAP, places)

    def _follow(self, kind: str, namespaces: Sequence[str]) -> Reflector[ClusterObject]:
        resource = resource_of(kind)
        reflector = Reflector(
            self._client, resource, read=partial(read_object, resource), namespaces=namespaces
        )
        reflector.on_change(self._changed)
        return reflector

    def on_change(self, listener: Listener) -> None:
        """Call back with the key of every object that changed or went, or is a fact now or none."""
        self._listeners.append(listener)

    async def ready(self) -> None:
        """Wait until every kind was listed, or is known not to be served."""
        await asyncio.gather(*(one.ready() for one in self._reflectors.values()))

    async def run(self) -> None:
        """Keep the picture current until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for reflector in self._reflectors.values():
                tasks.create_task(reflector.run())

    def get(self, key: ObjectKey) -> ClusterObject | None:
        """An object, or None."""
        reflector = self._reflectors.get(key.kind)
        found = reflector.get(key) if reflector is not None and self._is_read(key) else None
        return None if found is None or self._deleted.get(key) == found.uid else found

    def keys(self) -> tuple[ObjectKey, ...]:
        """The keys of all objects, in order."""
        return tuple(key for key, _ in self.items())

    def items(self, kind: str = "") -> Iterator[tuple[ObjectKey, ClusterObject]]:
        """Objects of a kind, or all, in key order."""
        for one in sorted(self._reflectors) if not kind else (kind,):
            reflector = self._reflectors.get(one)
            for key, _ in reflector.items() if reflector is not None else ():
                found = self.get(key)
                if found is not None:
                    yield key, found

    def last_revision(self, key: ObjectKey) -> int:
        """The resourceVersion of an object; 0 without it."""
        found = self.get(key)
        return found.revision if found else 0

    def refusal(self, key: ObjectKey) -> tuple[Problem, ...]:
        """Why an object is no fact: what the API server let in, admission may refuse."""
        found = self.get(key)
        return () if found is None else refusal(key, found, self.get)

    def sees(self, key: ObjectKey) -> bool:
        """Whether an object of this key would be in the picture if there were one."""
        reflector = self._reflectors.get(key.kind)
        is_looked_at = key.namespace == NO_NAMESPACE or key.namespace in self._namespaces
        return reflector is not None and reflector.served and (is_looked_at or not self._namespaces)

    def serves(self, kind: str) -> bool:
        """Whether the API server serves a kind that is followed."""
        return self._reflectors[kind].served

    @property
    def problems(self) -> Mapping[str, Problem]:
        """Why the picture of a kind isn't current, by kind; empty when all are."""
        found = {kind: one.problem for kind, one in self._reflectors.items()}
        return {kind: problem for kind, problem in found.items() if problem is not None}

    def observe(self, key: ObjectKey, document: Mapping[str, Any]) -> None:
        """Draw the answer to an own write in."""
        self._reflectors[key.kind].observe(document)

    def forget(self, key: ObjectKey, uid: str) -> None:
        """The object of this uid is gone, though the watch hasn't told so yet."""
        found = self.get(key)
        if found is not None and found.uid == uid:
            self._deleted[key] = uid
            self._tell(key)

    async def refresh(self, key: ObjectKey) -> None:
        """Look at an object as it stands now; raises `ProblemsError` when that can't be."""
        found = await self._client.get(resource_of(key.kind), key.namespace, key.name)
        known = self.get(key)
        if found is not None:
            self.observe(key, found)
        elif known is not None:
            self.forget(key, known.uid)

    def _is_read(self, key: ObjectKey) -> bool:
        return key.kind != CONFIG_MAP or key in self._configuration

    def _changed(self, key: ObjectKey) -> None:
        uid = self._deleted.get(key)
        if uid is not None:
            found = self._reflectors[key.kind].get(key)
            if found is None or found.uid != uid:
                del self._deleted[key]
        self._tell(key)
        if key.kind == AUTOSCALING_POLICY:
            self._tell_bindings(key)

    def _tell_bindings(self, policy: ObjectKey) -> None:
        """A binding is a fact as long as its policy is there."""
        bindings = self._reflectors[AUTOSCALING_POLICY_BINDING].items(policy.namespace)
        for key, stored in bindings:
            if bound_policy(key, stored) == policy:
                self._tell(key)

    def _tell(self, key: ObjectKey) -> None:
        if self._is_read(key):
            for listener in self._listeners:
                listener(key)
