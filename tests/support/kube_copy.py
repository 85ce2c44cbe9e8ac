"""A working copy of objects on an API server: what changed in it is written, then read back.

Tests change manifests in memory, as kubelets, schedulers and people change objects in a cluster.
What they changed is found by comparing with what was read last; what the server would not let
anybody change is deleted and made anew, which no test should notice.
"""

import asyncio
import copy
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final

from inferbus_shared.kube.resources import resource_of
from inferbus_workload_reconciler.actions import ChildKind
from inferbus_workload_reconciler.adapters_kubernetes_writes import RESOURCES
from tests.support.kube_calls import Answer, KubeCalls, path_of
from tests.support.kube_stage import NODE_NAME

Document = dict[str, Any]
Objects = dict[tuple[ChildKind, str], Document]

_API_VERSIONS: Final = {"ReplicaSet": "apps/v1", "Job": "batch/v1", "StatefulSet": "apps/v1"}
_SERVER_SIDE: Final = (
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
    "managedFields",
)
_AT_ONCE: Final = {"gracePeriodSeconds": 0}


class ObjectCopy:
    """The workload object."""

    def __init__(self, calls: KubeCalls, namespace: str, kind: str) -> None:
        self._calls = calls
        resource = resource_of(kind)
        self._all = resource.path(namespace)
        self._stored: Document = {}

    async def write(self, document: Document, status: Document) -> Document:
        """Write what changed; another uid makes it another object, its children stay behind."""
        name = document["metadata"]["name"]
        path = f"{self._all}/{name}"
        before = self._stored.get("metadata") or {}
        if before.get("uid") != document["metadata"]["uid"]:
            if before:
                _well(await self._calls.delete(path))
            self._stored = _well(await self._calls.post(self._all, _unstamped(document)))
        elif _intent(document) != _intent(self._stored):
            self._stored = _well(await self._calls.put(path, document))
        if status != (self._stored.get("status") or {}):
            self._stored = _well(
                await self._calls.put(f"{path}/status", {**self._stored, "status": status})
            )
        self._path = path
        return copy.deepcopy(self._stored)

    async def read(self) -> tuple[Document, Document]:
        """The object, and its status."""
        self._stored = _well(await self._calls.get(self._path))
        document = copy.deepcopy(self._stored)
        return document, document.pop("status", None) or {}


class ChildrenCopy:
    """Pods, services, snapshots and PodGroups of one namespace."""

    def __init__(self, calls: KubeCalls, namespace: str) -> None:
        self._calls = calls
        self._namespace = namespace
        self._stored: Objects = {}

    async def write(self, objects: Objects) -> None:
        """Write what changed: first what went, then what came or is different."""
        gone = [key for key in self._stored if key not in objects]
        await asyncio.gather(*(self._end(*key, self._stored[key]) for key in gone))
        await asyncio.gather(
            *(self._write(*key, self._stored.get(key), one) for key, one in objects.items())
        )

    async def read(self, known: Objects) -> Objects:
        """Read everything; pods that no scheduler has put onto a node yet are put onto one.

        Manifests of `known` that stand for the same object stay the same dictionaries.
        """
        found = await self._read()
        waiting = [
            name
            for (kind, name), one in found.items()
            if kind is ChildKind.POD and not one["spec"].get("nodeName")
        ]
        if waiting:
            await asyncio.gather(*map(self._bind, waiting))
            found = await self._read()
        self._stored = copy.deepcopy(found)
        ordered = [
            *(key for key in known if key in found),
            *(key for key in found if key not in known),
        ]
        return {key: _same(known.get(key), found[key]) for key in ordered}

    async def _read(self) -> Objects:
        answers = await asyncio.gather(*(self._calls.get(self._path(kind)) for kind in RESOURCES))
        found: Objects = {}
        for (kind, resource), answer in zip(RESOURCES.items(), answers, strict=True):
            for one in sorted(answer.items if answer.ok else (), key=_age):
                one["metadata"].pop("managedFields", None)
                typed = {"apiVersion": resource.api_version, "kind": resource.api_kind}
                found[kind, one["metadata"]["name"]] = {**typed, **one}
        return found

    async def _write(
        self, kind: ChildKind, name: str, before: Document | None, wanted: Document
    ) -> None:
        if before is None:
            await self._make(kind, wanted)
            return
        path = self._path(kind, name)
        if _content(before) != _content(wanted):
            body = {**_addressed(wanted), "status": before.get("status")}
            answer = await self._calls.put(path, body)
            if answer.code == HTTPStatus.CONFLICT:
                raise AssertionError(f"{name} was changed by somebody else: {answer.text}")
            if not answer.ok:
                await self._end(kind, name, before)
                await self._make(kind, wanted)
                return
            wanted["metadata"]["resourceVersion"] = answer.body["metadata"]["resourceVersion"]
        if before.get("status") != wanted.get("status"):
            _well(await self._calls.put(f"{path}/status", _addressed(wanted)))
        if _is_ending(wanted) and not _is_ending(before):
            await self._calls.delete(path, {"preconditions": {"uid": before["metadata"]["uid"]}})

    async def _make(self, kind: ChildKind, wanted: Document) -> None:
        """Another object of this content."""
        path = self._path(kind)
        made = _well(await self._calls.post(path, _unstamped(wanted)))
        wanted["metadata"]["uid"] = made["metadata"]["uid"]
        status = wanted.get("status")
        if kind is ChildKind.POD and status:
            path = f"{path}/{made['metadata']['name']}/status"
            _well(await self._calls.put(path, {**made, "status": status}))

    async def _end(self, kind: ChildKind, name: str, before: Document) -> None:
        """Gone at once; by now it may be gone, or another."""
        options = {**_AT_ONCE, "preconditions": {"uid": before["metadata"]["uid"]}}
        await self._calls.delete(self._path(kind, name), options)

    async def _bind(self, name: str) -> None:
        body = {"metadata": {"name": name}, "target": {"kind": "Node", "name": NODE_NAME}}
        _well(await self._calls.post(path_of("pods", self._namespace, name, "binding"), body))

    def _path(self, kind: ChildKind, name: str = "") -> str:
        path = RESOURCES[kind].path(self._namespace)
        return f"{path}/{name}" if name else path


def _well(answer: Answer) -> Document:
    assert answer.ok, answer
    return answer.body


def _same(known: Document | None, found: Document) -> Document:
    if known is None or known["metadata"].get("uid") != found["metadata"]["uid"]:
        return found
    known.clear()
    known.update(found)
    return known


def _age(document: Document) -> tuple[str, int]:
    metadata = document["metadata"]
    return metadata["creationTimestamp"], int(metadata["resourceVersion"])


def _is_ending(document: Document) -> bool:
    return "deletionTimestamp" in document["metadata"]


def _meta(document: Mapping[str, Any]) -> Document:
    names = ("labels", "annotations", "ownerReferences")
    return {name: document["metadata"].get(name) or {} for name in names}


def _content(document: Mapping[str, Any]) -> Document:
    """What a PUT can change: all that is neither status nor the server's."""
    rest = {name: one for name, one in document.items() if name not in ("metadata", "status")}
    return {**rest, "metadata": _meta(document)}


def _intent(document: Mapping[str, Any]) -> Document:
    return {"spec": document.get("spec"), **_meta(document)}


def _addressed(document: Document) -> Document:
    """The document for a PUT."""
    metadata = document["metadata"]
    return {**document, "metadata": {**metadata, "ownerReferences": _owners(metadata)}}


def _unstamped(document: Document) -> Document:
    """The document for a POST."""
    metadata = {k: v for k, v in document["metadata"].items() if k not in _SERVER_SIDE}
    body = {name: one for name, one in document.items() if name != "status"}
    return {**body, "metadata": {**metadata, "ownerReferences": _owners(metadata)}}


def _owners(metadata: Document) -> list[Document]:
    """Owners with the version that a server insists on, and tests leave out."""
    owners = metadata.get("ownerReferences") or []
    return [{"apiVersion": _API_VERSIONS.get(one["kind"], "v1"), **one} for one in owners]
