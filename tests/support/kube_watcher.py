"""A spec-watcher in this process on NATS and an API server, and what is seen of its work."""

import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from inferbus_contracts.events.spec import SpecChanged, SpecRejected
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.leader_worker_sets import LeaderWorkerSets
from inferbus_contracts.resources.kinds import KINDS
from inferbus_contracts.services import Service
from inferbus_shared.bus.bus import Bus
from inferbus_shared.bus.jetstream import api
from inferbus_shared.bus.service import Runtime
from inferbus_shared.kube.settings import KubeSettings
from inferbus_shared.settings import SubstrateName
from inferbus_spec_watcher.main import serve
from inferbus_spec_watcher.settings import SpecWatcherSettings
from tests.fakes.kubernetes.crds import leader_worker_set_definition
from tests.support.eventually import eventually
from tests.support.kube import KubeServer
from tests.support.kube_calls import KubeCalls, path_of
from tests.support.nats import NatsServer
from tests.support.services import running_service

Document = dict[str, Any]
WatcherContext = contextlib.AbstractAsyncContextManager[Runtime[SpecWatcherSettings]]

CRDS = Path(__file__).parents[2] / "deploy" / "crds"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

LEADER_WORKER_SETS = leader_worker_set_definition()


def definitions() -> list[Document]:
    """The CRDs of the platform's own kinds."""
    return [yaml.safe_load(file.read_text()) for file in sorted(CRDS.glob("*.yaml"))]


async def install(calls: KubeCalls, *crds: Document) -> None:
    """Install CRDs, and wait until the server serves them."""
    for crd in crds:
        answer = await calls.post(DEFINITIONS, crd)
        assert answer.code in (201, 409), answer
    for crd in crds:
        spec = crd["spec"]
        path = path_of(
            spec["names"]["plural"], group=spec["group"], version=spec["versions"][0]["name"]
        )
        await eventually(partial(_is_served, calls, path), what=f"{path} is served")


async def _is_served(calls: KubeCalls, path: str) -> bool:
    return (await calls.get(path)).code == 200


@contextlib.asynccontextmanager
async def cluster_watcher(
    nats: NatsServer,
    kube: KubeServer,
    *namespaces: str,
    instance: str = "w",
    folder: Path | None = None,
    leader_worker_sets: LeaderWorkerSets = LeaderWorkerSets.CONTROLLER,
    leader_worker_namespace: str = "lws-system",
    **options: Any,
) -> AsyncIterator[Runtime[SpecWatcherSettings]]:
    """One running instance that looks at these namespaces; `options` are of the client."""
    settings = SpecWatcherSettings(
        substrate=SubstrateName.KUBERNETES,
        folder=folder,
        folder_interval_seconds=0.05,
        leader_worker_sets=leader_worker_sets,
        leader_worker_namespace=leader_worker_namespace,
    )
    way = KubeSettings.model_validate(
        {
            **kube.settings(Service.SPEC_WATCHER),
            "namespaces": namespaces,
            "discovery_poll_seconds": 0.05,
            **options,
        }
    )
    async with running_service(nats, partial(serve, kube=way), settings, instance) as runtime:
        yield runtime


@dataclass(frozen=True)
class Cluster:
    """A namespace of an API server that serves all kinds, and a bus: what a test needs of both."""

    nats: NatsServer
    server: KubeServer
    calls: KubeCalls
    namespace: str

    def watcher(self, instance: str = "w", **options: Any) -> WatcherContext:
        """A spec-watcher of this namespace alone."""
        return cluster_watcher(self.nats, self.server, self.namespace, instance=instance, **options)

    @contextlib.asynccontextmanager
    async def watched(self, service: Service = Service.CLI) -> AsyncIterator[Bus]:
        """A running spec-watcher, and the bus as another service sees it."""
        async with self.watcher(), self.nats.bus(service) as bus:
            yield bus


def place(kind: str, namespace: str = "", name: str = "", subresource: str = "") -> str:
    """The path of objects of a kind's token."""
    row = KINDS[kind]
    return path_of(
        row.plural,
        namespace if row.namespaced else "",
        name,
        subresource,
        group=row.group,
        version=row.version,
    )


def place_of(document: Document, namespace: str, *, named: bool = True) -> str:
    """Where a document of this namespace belongs."""
    row = next(
        kind
        for kind in KINDS.values()
        if (kind.api_version, kind.kind) == (document["apiVersion"], document["kind"])
    )
    return place(row.token, namespace, document["metadata"]["name"] if named else "")


async def create(calls: KubeCalls, document: Document, namespace: str) -> Document:
    """Create an object as kubectl does."""
    path = place_of(document, namespace, named=False)
    answer = await calls.post(path, document, fieldManager="kubectl-create")
    assert answer.code == 201, answer
    return answer.body


async def read(calls: KubeCalls, kind: str, namespace: str, name: str) -> Document | None:
    """An object; None without it."""
    answer = await calls.get(place(kind, namespace, name))
    return answer.body if answer.ok else None


async def there(calls: KubeCalls, kind: str, namespace: str, name: str) -> Document:
    """An object, once it is there."""
    found = await eventually(
        lambda: read(calls, kind, namespace, name), what=f"there is {kind} {name}"
    )
    assert found is not None
    return found


def conditions(document: Document) -> dict[str, tuple[str, str]]:
    """Status and reason by type."""
    told = (document.get("status") or {}).get("conditions") or ()
    return {one["type"]: (one["status"], one["reason"]) for one in told}


async def saying(
    calls: KubeCalls, kind: str, namespace: str, name: str, **wanted: tuple[str, str]
) -> Document:
    """The object, once these conditions stand in its status."""
    last: Document = {}

    async def says() -> Document | None:
        nonlocal last
        last = await read(calls, kind, namespace, name) or {}
        return last if wanted.items() <= conditions(last).items() else None

    found = await eventually(says, what=lambda: f"{name} says {wanted}, not {conditions(last)}")
    assert found is not None
    return found


async def events_about(calls: KubeCalls, namespace: str, uid: str) -> set[tuple[str, str]]:
    """Type and reason of the Events about an object."""
    found = (await calls.get(path_of("events", namespace))).items
    return {(one["type"], one["reason"]) for one in found if one["involvedObject"]["uid"] == uid}


async def fact(bus: Bus, key: ObjectKey) -> SpecChanged | None:
    """The last fact about an object."""
    last = await bus.last(SpecChanged.event_type, key)
    assert last is None or isinstance(last.data, SpecChanged)
    return last.data if last else None


async def rejection(bus: Bus, key: ObjectKey) -> SpecRejected | None:
    """The last refusal of an object."""
    last = await bus.last(SpecRejected.event_type, key)
    assert last is None or isinstance(last.data, SpecRejected)
    return last.data if last else None


async def facts_in(server: NatsServer, namespace: str = "*") -> dict[str, int]:
    """How many facts stand about each object of a namespace."""
    about = {"subjects_filter": f"inferbus.v1.spec.*.*.{namespace}.>"}
    async with server.connection() as connection:
        info = await api(connection, "STREAM.INFO.FACTS", about)
    return dict(info["state"].get("subjects") or {})
