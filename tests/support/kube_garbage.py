"""The garbage collector of a cluster that has none: children go when none of their owners is left.

As Kubernetes' own: an owner is its uid, not its name; with foreground propagation it waits for its
children, with orphaning they lose their reference to it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tests.support.kube_calls import KubeCalls

Document = dict[str, Any]

FOREGROUND = "foregroundDeletion"
ORPHAN = "orphan"
_NEVER_COLLECTED = frozenset({"events", "namespaces", "nodes"})


@dataclass(frozen=True, slots=True)
class Kind:
    """A resource as discovery lists it."""

    api_version: str
    kind: str
    plural: str
    namespaced: bool

    def path(self, namespace: str = "", name: str = "") -> str:
        root = "/apis/" if "/" in self.api_version else "/api/"
        parts = [root + self.api_version]
        if namespace and self.namespaced:
            parts.append(f"namespaces/{namespace}")
        parts.append(self.plural)
        return "/".join([*parts, name] if name else parts)


class GarbageCollector:
    """One `step` looks at everything that has owners, and deletes what has lost them."""

    def __init__(self, calls: KubeCalls) -> None:
        self._calls = calls

    async def step(self, namespace: str = "") -> int:
        """Collect once, in one namespace or in all; answers how many writes it made."""
        kinds = await self._kinds()
        found = [(kind, each) for kind in kinds for each in await self._objects(kind, namespace)]
        children = [(k, each) for k, each in found if each["metadata"].get("ownerReferences")]
        by_name = {(kind.api_version, kind.kind): kind for kind in kinds}
        known = {each["metadata"]["uid"]: each for _, each in found}
        acts = 0
        for kind, child in children:
            acts += await self._look_at(kind, child, by_name, known)
        for kind, owner in found:
            acts += await self._finish(kind, owner, children)
        return acts

    async def _kinds(self) -> list[Kind]:
        groups = (await self._calls.get("/apis")).body["groups"]
        versions = ["v1", *(group["preferredVersion"]["groupVersion"] for group in groups)]
        kinds = []
        for version in versions:
            listed = await self._calls.get(f"/apis/{version}" if "/" in version else "/api/v1")
            kinds += [
                Kind(version, each["kind"], each["name"], each["namespaced"])
                for each in listed.body.get("resources", ())
                if {"list", "delete"} <= set(each["verbs"]) and each["name"] not in _NEVER_COLLECTED
            ]
        return kinds

    async def _objects(self, kind: Kind, namespace: str) -> list[Document]:
        listed = await self._calls.get(kind.path(namespace), resourceVersion="")
        return listed.items if listed.ok else []  # gone since it was discovered

    async def _look_at(
        self,
        kind: Kind,
        child: Document,
        kinds: dict[tuple[str, str], Kind],
        known: Mapping[str, Document],
    ) -> int:
        """Delete a child all of whose owners are gone, or wait in the foreground."""
        meta = child["metadata"]
        if meta.get("deletionTimestamp"):
            return 0
        owners = [
            await self._owner(reference, meta.get("namespace", ""), kinds, known)
            for reference in meta["ownerReferences"]
        ]
        left = [owner for owner in owners if owner is not None]
        if any(FOREGROUND not in owner["metadata"].get("finalizers", ()) for owner in left):
            return 0
        return await self._delete(kind, child, "Foreground" if left else "Background")

    async def _owner(
        self,
        reference: Document,
        namespace: str,
        kinds: dict[tuple[str, str], Kind],
        known: Mapping[str, Document],
    ) -> Document | None:
        if reference["uid"] in known:
            return known[reference["uid"]]
        kind = kinds.get((reference["apiVersion"], reference["kind"]))
        if kind is None:
            # Nobody can say whether an owner of an unknown kind is there: its children are kept.
            return {"metadata": {}}
        found = await self._calls.get(kind.path(namespace, reference["name"]))
        if found.ok and found.body["metadata"]["uid"] == reference["uid"]:
            return found.body
        return None

    async def _delete(self, kind: Kind, child: Document, policy: str) -> int:
        meta = child["metadata"]
        options = {"preconditions": {"uid": meta["uid"]}, "propagationPolicy": policy}
        path = kind.path(meta.get("namespace", ""), meta["name"])
        return int((await self._calls.delete(path, options)).ok)

    async def _finish(
        self, kind: Kind, owner: Document, children: list[tuple[Kind, Document]]
    ) -> int:
        """Lift the finalizer of an owner that waited for its children, or let them go."""
        meta = owner["metadata"]
        waiting = {FOREGROUND, ORPHAN} & set(meta.get("finalizers", ()))
        if not meta.get("deletionTimestamp") or not waiting:
            return 0
        own = [
            (k, c)
            for k, c in children
            if any(ref["uid"] == meta["uid"] for ref in c["metadata"]["ownerReferences"])
        ]
        if ORPHAN in waiting:
            for child_kind, child in own:
                await self._release(child_kind, child, meta["uid"])
        elif own:
            return 0
        rest = [each for each in meta["finalizers"] if each not in waiting]
        change = {"metadata": {"finalizers": rest, "resourceVersion": meta["resourceVersion"]}}
        path = kind.path(meta.get("namespace", ""), meta["name"])
        return int((await self._calls.merge(path, change)).ok)

    async def _release(self, kind: Kind, child: Document, owner_uid: str) -> None:
        meta = child["metadata"]
        rest = [ref for ref in meta["ownerReferences"] if ref["uid"] != owner_uid]
        path = kind.path(meta.get("namespace", ""), meta["name"])
        await self._calls.merge(path, {"metadata": {"ownerReferences": rest, "uid": meta["uid"]}})
