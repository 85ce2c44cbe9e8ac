"""The objects of a cluster: a picture over one list and watch for each kind.

Invariant: the picture is never older than this instance's own writes, and what it doesn't hold is
gone unless it is `unseen`: of a kind that isn't served for a moment, or of a namespace that isn't
looked at, nothing is known.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from inferbus_contracts.errors import ErrorCode, Problem, ProblemsError
from inferbus_contracts.keys import NO_NAMESPACE, ObjectKey
from inferbus_contracts.resources.kinds import (
    AUTOSCALING_POLICY,
    AUTOSCALING_POLICY_BINDING,
    CONFIG_MAP,
    CORE_SERVICE,
    HORIZONTAL_POD_AUTOSCALER,
    INGRESS_KINDS,
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
    *INGRESS_KINDS,
)
"""The platform's own kinds, what becomes a child of them, and what says how requests come in."""

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
        self._deleted: dict[ObjectKey, str] = {}
        self._listeners: list[Listener] = []
        namespaces = client.settings.namespaces
        self._kinds = {kind: self._follow(kind, namespaces) for kind in FOLLOWED}
        self._configuration = {
            key: self._follow(key.kind, (key.namespace,), key.name) for key in sorted(configuration)
        }

    def _follow(
        self, kind: str, namespaces: Sequence[str], name: str = ""
    ) -> Reflector[ClusterObject]:
        resource = resource_of(kind)
        reflector = Reflector(
            self._client,
            resource,
            read=partial(read_object, resource),
            namespaces=namespaces,
            name=name,
        )
        reflector.on_change(self._changed)
        return reflector

    @property
    def _reflectors(self) -> tuple[Reflector[ClusterObject], ...]:
        return (*self._kinds.values(), *self._configuration.values())

    def _reflector_of(self, key: ObjectKey) -> Reflector[ClusterObject] | None:
        return self._configuration.get(key, self._kinds.get(key.kind))

    def on_change(self, listener: Listener) -> None:
        """Call back with the key of every object that changed or went, or is a fact now or none."""
        self._listeners.append(listener)

    async def ready(self) -> None:
        """Wait until every kind was listed, or is known not to be served."""
        await asyncio.gather(*(one.ready() for one in self._reflectors))

    async def run(self) -> None:
        """Keep the picture current until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for reflector in self._reflectors:
                tasks.create_task(reflector.run())

    def get(self, key: ObjectKey) -> ClusterObject | None:
        """An object, or None."""
        reflector = self._reflector_of(key)
        found = reflector.get(key) if reflector is not None else None
        return None if found is None or self._deleted.get(key) == found.uid else found

    def keys(self) -> tuple[ObjectKey, ...]:
        """The keys of all objects, in order."""
        return tuple(key for key, _ in self.items())

    def items(self, kind: str = "") -> Iterator[tuple[ObjectKey, ClusterObject]]:
        """Objects of a kind, or all, in key order."""
        for one in (kind,) if kind else sorted({CONFIG_MAP, *self._kinds}):
            if one in self._kinds:
                keys = [key for key, _ in self._kinds[one].items()]
            else:
                keys = [key for key in self._configuration if key.kind == one]
            for key in keys:
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

    def unseen(self, key: ObjectKey) -> Problem | None:
        """Why an object of this key wouldn't be in the picture if there were one; None: it is."""
        reflector = self._reflector_of(key)
        if reflector is None:
            return _unseen(key, f"Inferbus keeps no {key.kind} of a cluster", "use kubectl")
        if not reflector.served:
            remedy = "install its CRD; what waits for it goes on then"
            return _unseen(key, f"the cluster serves no {key.kind}", remedy)
        if self._namespaces and key.namespace not in (NO_NAMESPACE, *self._namespaces):
            remedy = "add it to INFERBUS_KUBE_NAMESPACES, or use kubectl"
            return _unseen(key, f"the namespace {key.namespace} isn't looked at", remedy)
        return None

    @property
    def problems(self) -> Mapping[str, Problem]:
        """Why the picture of a kind isn't current, by kind; empty when all are."""
        found = {one.resource.kind: one.problem for one in self._reflectors}
        return {kind: problem for kind, problem in found.items() if problem is not None}

    def observe(self, key: ObjectKey, document: Mapping[str, Any]) -> None:
        """Draw the answer to an own write in."""
        reflector = self._reflector_of(key)
        if reflector is not None:
            reflector.observe(document)

    def forget(self, key: ObjectKey, uid: str) -> None:
        """The object of this uid is gone, though the watch hasn't told so yet."""
        found = self.get(key)
        if found is not None and found.uid == uid:
            self._deleted[key] = uid
            self._tell(key)

    def must_see(self, keys: Iterable[ObjectKey]) -> None:
        """Raise `ProblemsError` (UNSUPPORTED) where one of these would be written unseen."""
        problems = [problem for key in keys if (problem := self.unseen(key)) is not None]
        if problems:
            raise ProblemsError(*problems)

    async def refresh(self, key: ObjectKey) -> None:
        """Look at an object as it stands now; raises `ProblemsError` when that can't be."""
        found = await self._client.get(resource_of(key.kind), key.namespace, key.name)
        known = self.get(key)
        if found is not None:
            self.observe(key, found)
        elif known is not None:
            self.forget(key, known.uid)

    def _changed(self, key: ObjectKey) -> None:
        uid = self._deleted.get(key)
        reflector = self._reflector_of(key)
        if uid is not None and reflector is not None:
            found = reflector.get(key)
            if found is None or found.uid != uid:
                del self._deleted[key]
        self._tell(key)
        if key.kind == AUTOSCALING_POLICY:
            self._tell_bindings(key)

    def _tell_bindings(self, policy: ObjectKey) -> None:
        """A binding is a fact as long as its policy is there."""
        for key, stored in self._kinds[AUTOSCALING_POLICY_BINDING].items(policy.namespace):
            if bound_policy(key, stored) == policy:
                self._tell(key)

    def _tell(self, key: ObjectKey) -> None:
        for listener in self._listeners:
            listener(key)


def _unseen(key: ObjectKey, message: str, remedy: str) -> Problem:
    return Problem(code=ErrorCode.UNSUPPORTED, message=message, object=str(key), remedy=remedy)
