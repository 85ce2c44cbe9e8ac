"""ModelServings on a Kubernetes API server, and what kubelet and garbage collector would do."""

import asyncio
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

from inferbus_contracts.canonical import digest
from inferbus_contracts.events.spec import SpecChanged
from inferbus_contracts.keys import ObjectKey
from inferbus_shared.bus.bus import Bus
from tests.support.eventually import eventually
from tests.support.kube_calls import KubeCalls, path_of

DEFINITIONS = Path(__file__).parents[2] / "deploy" / "crds"
GROUP = "workload.serving.volcano.sh"
NAME_LABEL = "modelserving.volcano.sh/name"
READY_AT = "2026-01-01T00:00:00Z"

Document = dict[str, Any]


async def install_definitions(calls: KubeCalls, *plurals: str) -> None:
    """The definitions of these kinds, served; those that are there stay."""
    for plural in plurals or ("modelservings",):
        (file,) = DEFINITIONS.glob(f"{plural}.*.yaml")
        definition = yaml.safe_load(file.read_text())
        path = path_of("customresourcedefinitions", group="apiextensions.k8s.io")
        answer = await calls.post(path, definition)
        assert answer.code in (201, 409), answer
        group = definition["spec"]["group"]
        version = definition["spec"]["versions"][0]["name"]
        served = path_of(plural, group=group, version=version)

        async def is_served(served: str = served) -> bool:
            return (await calls.get(served)).ok

        await eventually(is_served)


def serving(
    name: str = "x", replicas: int = 1, workers: int = 0, image: str = "vllm:1", **spec: Any
) -> Document:
    """A ModelServing as a user writes it."""
    template = {"spec": {"containers": [{"name": "engine", "image": image}]}}
    role: Document = {
        "name": "main",
        "replicas": 1,
        "workerReplicas": workers,
        "entryTemplate": template,
    }
    if workers:
        role["workerTemplate"] = template
    return {
        "apiVersion": f"{GROUP}/v1alpha1",
        "kind": "ModelServing",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "schedulerName": "default-scheduler",
            "template": {"roles": [role]},
            **spec,
        },
    }


def fact_of(document: Mapping[str, Any]) -> SpecChanged:
    """What the spec-watcher says of an object."""
    metadata = document["metadata"]
    known = {name: metadata[name] for name in ("name", "namespace", "uid", "generation")}
    body = {
        "apiVersion": document["apiVersion"],
        "kind": document["kind"],
        "metadata": known,
        "spec": document["spec"],
    }
    return SpecChanged(
        uid=metadata["uid"],
        generation=metadata["generation"],
        digest=digest(body),
        object=body,
        changed_by="test",
    )


async def announce(bus: Bus, document: Mapping[str, Any]) -> None:
    """Say it."""
    metadata = document["metadata"]
    key = ObjectKey(document["kind"], metadata["namespace"], metadata["name"])
    id_ = f"{key}-{metadata['uid']}-{metadata['generation']}"
    await bus.publish(bus.event(fact_of(document), key, id=id_))


class KubeFleet:
    """The objects of one namespace."""

    def __init__(self, calls: KubeCalls, namespace: str) -> None:
        self.calls = calls
        self.namespace = namespace

    def servings(self, name: str = "", subresource: str = "") -> str:
        """The path of a ModelServing, or of all."""
        return path_of(
            "modelservings", self.namespace, name, subresource, group=GROUP, version="v1alpha1"
        )

    async def create(self, document: Document) -> Document:
        """A new ModelServing as it is stored."""
        answer = await self.calls.post(self.servings(), document)
        assert answer.code == 201, answer
        return answer.body

    async def change(self, name: str, spec: Document) -> Document:
        """A ModelServing after a merge patch of its spec."""
        answer = await self.calls.merge(self.servings(name), {"spec": spec})
        assert answer.ok, answer
        return answer.body

    async def serving(self, name: str = "x") -> Document:
        """A ModelServing as it is stored."""
        return (await self.calls.get(self.servings(name))).body

    async def all(self, plural: str, group: str = "") -> list[Document]:
        """All objects of a built-in kind that bear a name label."""
        path = path_of(plural, self.namespace, group=group)
        return (await self.calls.get(path, labelSelector=NAME_LABEL)).items

    async def names(self, plural: str, group: str = "") -> list[str]:
        """Their names."""
        return sorted(one["metadata"]["name"] for one in await self.all(plural, group))

    async def uids(self) -> dict[str, str]:
        """The pods' uids by name."""
        pods = await self.all("pods")
        return {one["metadata"]["name"]: one["metadata"]["uid"] for one in pods}

    async def run_pods(self, unready: Iterable[str] = ()) -> None:
        """What kubelets do: pods that end are gone, the others run and are ready."""
        unready = frozenset(unready)
        await asyncio.gather(*(self._run(pod, unready) for pod in await self.all("pods")))

    async def _run(self, pod: Document, unready: frozenset[str]) -> None:
        name = pod["metadata"]["name"]
        path = path_of("pods", self.namespace, name)
        if "deletionTimestamp" in pod["metadata"]:
            await self.calls.delete(path, {"gracePeriodSeconds": 0})
        elif name not in unready and not is_ready(pod):
            await self.set_status(name, "Running", ready=True)

    async def set_status(self, name: str, phase: str, *, ready: bool) -> None:
        """A pod's phase and readiness."""
        status = {
            "phase": phase,
            "podIP": "10.0.0.1",
            "conditions": [{"type": "Ready", "status": str(ready), "lastTransitionTime": READY_AT}],
        }
        path = path_of("pods", self.namespace, name, "status")
        answer = await self.calls.merge(path, {"status": status})
        assert answer.code in (200, 404), answer

    async def bind(self, name: str, node: str) -> None:
        """A pod is put onto a node: its deletion then takes its grace period."""
        body = {"metadata": {"name": name}, "target": {"kind": "Node", "name": node}}
        answer = await self.calls.post(path_of("pods", self.namespace, name, "binding"), body)
        assert answer.ok, answer

    async def delete_pod(self, name: str) -> None:
        """Somebody deletes a pod, at once."""
        path = path_of("pods", self.namespace, name)
        await self.calls.delete(path, {"gracePeriodSeconds": 0})


def is_ready(pod: Document) -> bool:
    """Whether a pod is Ready."""
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)
