"""Routes, servers and workloads for the tests, in as few words as possible."""

from typing import Any

from inferbus_contracts.admission.admit import admit
from inferbus_contracts.canonical import digest
from inferbus_contracts.events.route import RouteEntry, RoutesResolved, ServerEntry
from inferbus_contracts.events.spec import SpecChanged
from inferbus_contracts.events.workload import PodFact, WorkloadObserved
from inferbus_contracts.keys import ObjectKey
from inferbus_router_config_publisher.core import Affected, Join

NETWORKING = "networking.serving.volcano.sh/v1alpha1"
WORKLOAD = "workload.serving.volcano.sh/v1alpha1"
LLMAZ = "inference.llmaz.io/v1alpha1"
NAMESPACE = "ns"
SERVING = "modelserving.volcano.sh/"
GROUPS = "leaderworkerset.sigs.k8s.io/"

Document = dict[str, Any]
Fact = tuple[ObjectKey, SpecChanged]


def created(second: int) -> str:
    return f"2026-01-01T00:00:{second:02d}Z"


def document(api: str, kind: str, name: str, spec: Document, **metadata: Any) -> Document:
    return {
        "apiVersion": api,
        "kind": kind,
        "metadata": {"name": name, "namespace": NAMESPACE, "uid": f"uid-{name}"} | metadata,
        "spec": spec,
    }


def to(*names: str, weights: tuple[int, ...] = (), match: Document | None = None) -> Document:
    """A rule."""
    targets: list[Document] = [{"modelServerName": name} for name in names]
    for target, weight in zip(targets, weights, strict=False):
        target["weight"] = weight
    return {"targetModels": targets} | ({"modelMatch": match} if match else {})


def route(
    name: str = "r",
    *rules: Document,
    model: str | None = "m",
    second: int = 0,
    owners: list[Document] | None = None,
    namespace: str = NAMESPACE,
    annotations: dict[str, str] | None = None,
    **spec: Any,
) -> Document:
    return document(
        NETWORKING,
        "ModelRoute",
        name,
        {"rules": list(rules or [to("s")])} | ({"modelName": model} if model else {}) | spec,
        namespace=namespace,
        creationTimestamp=created(second),
        ownerReferences=owners or [],
        annotations=annotations or {},
    )


def server(
    name: str = "s",
    labels: dict[str, str] | None = None,
    *,
    port: int | None = 8000,
    namespace: str = NAMESPACE,
    pd_group: Document | None = None,
    **spec: Any,
) -> Document:
    selector: Document = {"matchLabels": {"app": name} if labels is None else labels}
    own: Document = {"inferenceEngine": "vLLM", "workloadSelector": selector}
    if pd_group:
        selector["pdGroup"] = pd_group
    if port:
        own["workloadPort"] = {"port": port}
    return document(NETWORKING, "ModelServer", name, own | spec, namespace=namespace)


def owner(api: str, kind: str, name: str) -> Document:
    return {"apiVersion": api, "kind": kind, "name": name, "uid": f"uid-{name}"}


def model_serving(name: str = "w", replicas: int = 1, **roles: dict[str, str]) -> Document:
    """Labels of the entry template, by role."""
    return document(
        WORKLOAD,
        "ModelServing",
        name,
        {
            "replicas": replicas,
            "template": {
                "roles": [
                    {
                        "name": role,
                        "workerReplicas": 0,
                        "entryTemplate": {
                            "metadata": {"labels": labels},
                            "spec": {"containers": [{"name": "engine", "image": "vllm:1"}]},
                        },
                    }
                    for role, labels in (roles or {"main": {"app": "s"}}).items()
                ]
            },
        },
    )


def fact(doc: Document, generation: int = 1, *, deleted: bool = False) -> Fact:
    """What the spec-watcher says of a document."""
    admitted = admit(doc)
    body = admitted.object
    if deleted:
        body = {name: body[name] for name in ("apiVersion", "kind", "metadata")}
    uid = str(doc["metadata"].get("uid", "uid"))
    data = SpecChanged(
        uid=uid, generation=generation, digest=digest(body), deleted=deleted, object=body
    )
    return admitted.key, data


def pod(name: str = "p-0", labels: dict[str, str] | None = None, **fields: Any) -> PodFact:
    return PodFact.model_validate(
        {
            "name": name,
            "uid": f"uid-{name}",
            "phase": "Running",
            "ready": True,
            "address": "10.0.0.1",
            "entry": True,
            "labels": {"app": "s"} if labels is None else labels,
        }
        | fields
    )


def workload(*pods: PodFact, **fields: Any) -> WorkloadObserved:
    return WorkloadObserved(uid="uid-w", generation=1, pods=list(pods), **fields)


def workload_key(name: str = "w", kind: str = "ModelServing", namespace: str = "ns") -> ObjectKey:
    return ObjectKey(kind, namespace, name)


class World:
    """A join, and the words to feed and ask it."""

    def __init__(self, *documents: Document) -> None:
        self.join = Join()
        for doc in documents:
            self.apply(doc)

    def apply(self, doc: Document, *, deleted: bool = False, generation: int = 1) -> Affected:
        return self.join.fold_object(*fact(doc, generation, deleted=deleted))

    def observe(self, *pods: PodFact, name: str = "w", kind: str = "ModelServing") -> Affected:
        return self.join.fold_workload(workload_key(name, kind), workload(*pods))

    def server(self, name: str = "s") -> ServerEntry:
        part = self.join.part(server_key(name))
        assert part is not None
        assert isinstance(part.entry, ServerEntry)
        return part.entry

    def route(self, name: str = "r") -> RouteEntry:
        part = self.join.part(route_key(name))
        assert part is not None
        assert isinstance(part.entry, RouteEntry)
        return part.entry

    def addresses(self, name: str = "s") -> list[str]:
        return [endpoint.address for endpoint in self.server(name).endpoints]

    def resolved(self, key: ObjectKey) -> RoutesResolved:
        resolved = self.join.resolved(key)
        assert resolved is not None
        return resolved

    def condition(self, key: ObjectKey, type_: str) -> tuple[str, str, str]:
        """(status, reason, message)."""
        found = [one for one in self.resolved(key).conditions if one.type == type_]
        assert len(found) == 1, f"{type_} stands there {len(found)} times"
        return found[0].status.value, found[0].reason, found[0].message


def route_key(name: str = "r", namespace: str = NAMESPACE) -> ObjectKey:
    return ObjectKey("ModelRoute", namespace, name)


def server_key(name: str = "s", namespace: str = NAMESPACE) -> ObjectKey:
    return ObjectKey("ModelServer", namespace, name)
