"""A workload on a fake cluster, brought to rest by reconcilers that may die on the way.

What the end looks like, and what was created on the way, is read off the API server and the bus.
"""

import asyncio
import uuid
from collections import Counter
from dataclasses import replace
from typing import Any

from inferbus_contracts.events.scaling import DecisionRecord, ScalingApplied, ScalingDecided
from inferbus_contracts.events.spec import SpecChanged
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.services import Service
from inferbus_contracts.subjects import key_tokens
from inferbus_contracts.topology import WORKLOADS_BUCKET
from inferbus_shared.bus.bus import Bus
from inferbus_shared.bus.follow import Start
from inferbus_shared.bus.messages import Received
from inferbus_workload_reconciler.policy_parsing import parse_workload
from tests.fakes.kubernetes import FakeKubernetes
from tests.support.eventually import eventually
from tests.support.kube import KubeServer
from tests.support.kube_calls import KubeCalls, path_of
from tests.support.kube_cluster import KubeCluster
from tests.support.kube_fleet import GROUP, KubeFleet, fact_of, is_ready
from tests.support.kube_lives import USER, Life, MovedClock, Steps, life
from tests.support.nats import NatsServer

Document = dict[str, Any]

NAME = "x"
MOST_PASSES = 80
CHILDREN = (("", "pods"), ("", "services"), ("apps", "controllerrevisions"))
GANGS = ("scheduling.volcano.sh", "podgroups")
RECORD = DecisionRecord(decider="d", version="1", policy="p", policy_digest="d", input={})
_OF_A_SERVER = frozenset({"clusterIP", "clusterIPs", "nodeName", "ipFamilies"})


class Story:
    """One workload in a namespace of its own."""

    def __init__(
        self, nats: NatsServer, server: KubeServer, calls: KubeCalls, deciding: Bus
    ) -> None:
        assert server.fake is not None
        self.fake: FakeKubernetes = server.fake
        self.namespace = f"story-{uuid.uuid4().hex[:10]}"
        self.fleet = KubeFleet(calls, self.namespace)
        self.cluster = KubeCluster(calls, self.namespace)
        self.clock = MovedClock()
        self.deciding = deciding
        self.decision: Received[Any] | None = None
        self.key = ObjectKey("ModelServing", self.namespace, NAME)
        self._nats = nats
        self._server = server
        self._uid = ""
        self._fact: SpecChanged | None = None

    async def begin(self, document: Document) -> None:
        """The workload comes into being."""
        await self.fleet.calls.post("/api/v1/namespaces", {"metadata": {"name": self.namespace}})
        self._uid = (await self.fleet.create(document))["metadata"]["uid"]

    async def live(self, limit: int | None = None) -> Steps:
        """One life, to the end of the work or to its own."""
        steps = Steps(limit)
        async with life(self._nats, self._server, self.namespace, steps, self.clock) as one:
            work = asyncio.create_task(self._come_to_rest(one, steps))
            ending = asyncio.create_task(steps.ended.wait())
            try:
                await asyncio.wait({work, ending}, return_when=asyncio.FIRST_COMPLETED)
                if work.done():
                    work.result()
            finally:
                await _cancelled(work, ending)
                steps.bury()
        return steps

    async def _come_to_rest(self, one: Life, steps: Steps) -> None:
        """Passes in turn with the cluster, until neither has anything to do any more."""
        undelivered, self.decision = self.decision, self._again()
        for _ in range(MOST_PASSES):
            acts = await self._let_cluster_act()
            fact = await self._seen(one)
            before = len(steps.made)
            if undelivered is not None:
                await one.decisions.handle(undelivered, None)
                undelivered = None
                continue
            if fact.deleted:
                await one.reconciler.forget(self.key, fact)
                wait = None
            else:
                wait = await one.reconciler.reconcile(self.key, fact)
            if acts or len(steps.made) > before:
                continue
            if wait is None:
                return
            self.clock.ahead_ms += round(1000 * wait) + 1
        raise AssertionError(f"not at rest after {MOST_PASSES} passes: {steps.made[-20:]}")

    async def _let_cluster_act(self) -> int:
        cluster = self.cluster
        acts = await cluster.schedule() + await cluster.start() + await cluster.finish()
        if not self._stored(GROUP, "modelservings"):
            acts += await cluster.collect()
        return acts

    async def _seen(self, one: Life) -> SpecChanged:
        """What the spec-watcher says of the object, once the life sees all that there is."""
        found = self._stored(GROUP, "modelservings")
        if not found:
            assert self._fact is not None
            return self._fact.model_copy(update={"deleted": True})
        (document,) = found
        workload = parse_workload(document)
        wanted = self._children()

        async def is_seen() -> bool:
            around = await one.substrate.observe(workload)
            seen = around.observed
            shown = {("pods", pod.name, pod.ready, pod.deleting) for pod in seen.pods}
            shown |= {("services", each.name, True, False) for each in seen.services}
            shown |= {("podgroups", each.name, True, False) for each in seen.pod_groups}
            names = (each["metadata"]["name"] for each in around.revisions)
            shown |= {("controllerrevisions", name, True, False) for name in names}
            status = one.substrate.status_of(self.key) == document.get("status", {})
            return status and shown == wanted

        await eventually(is_seen)
        self._fact = fact_of(document)
        return self._fact

    def _children(self) -> set[tuple[str, str, bool, bool]]:
        """Every child: which it is, whether it is ready, whether it is ending."""
        return {
            (
                plural,
                each["metadata"]["name"],
                plural != "pods" or is_ready(each),
                "deletionTimestamp" in each["metadata"],
            )
            for group, plural in (*CHILDREN, GANGS)
            for each in self._stored(group, plural)
        }

    def _stored(self, group: str, plural: str) -> list[Document]:
        versions = {"scheduling.volcano.sh": "v1beta1", GROUP: "v1alpha1"}
        resource = self.fake.api.catalog.find(group, versions.get(group, "v1"), plural)
        if resource is None:
            return []
        objects = self.fake.api.store.collection(resource).objects
        return [
            stored.document(resource)
            for (namespace, _), stored in sorted(objects.items())
            if namespace == self.namespace
        ]

    async def decide(self, replicas: int, role: str = "") -> None:
        """A decision about the workload as it is."""
        metadata = (await self.fleet.serving(NAME))["metadata"]
        decided = ScalingDecided(
            current=1,
            desired=replicas,
            target_uid=metadata["uid"],
            target_generation=metadata["generation"],
            record=RECORD,
        )
        target = self.key._replace(role=role)
        event = self.deciding.event(decided, target, id=f"decision-{self.namespace}")
        await self.deciding.publish(event)
        self.decision = await self.deciding.last("scaling.decided", target)

    def _again(self) -> Received[Any] | None:
        """The decision as it is delivered to a second life: whether it was handled isn't known."""
        return self.decision and replace(self.decision, deliveries=2)

    async def answers(self) -> list[tuple[str, int | None]]:
        """What became of the decision: outcome and replicas of each answer there is."""
        if self.decision is None:
            return []
        follower = self.deciding.follow(
            "scaling.applied", Start.everything(), namespace=self.namespace
        )
        found = [await self.deciding.read(message) async for message in follower.snapshot()]
        return [
            (one.data.outcome.value, one.data.replicas)
            for one in found
            if isinstance(one.data, ScalingApplied)
        ]

    async def end(self) -> Document:
        """Everything there is in the end, without what times and machines make different."""
        found: Document = {"answers": await self.answers(), "scalings": self._scalings()}
        for group, plural in (*CHILDREN, GANGS):
            for each in self._stored(group, plural):
                found[f"{plural} {each['metadata']['name']}"] = self._essence(each)
        for each in self._stored(GROUP, "modelservings"):
            status = each["status"]
            conditions = {one["type"]: one["status"] for one in status.pop("conditions")}
            found["serving"] = (each["spec"], each["metadata"]["generation"], status, conditions)
        last = await self.deciding.last("workload.observed", self.key)
        found["fact"] = last.data.deleted if last else None  # type: ignore[attr-defined]
        async with self._nats.bus(USER) as bus:
            entry = await bus.bucket(WORKLOADS_BUCKET).get(key_tokens(self.key))
        found["remembered"] = entry is not None and entry.value is not None
        return found

    def _essence(self, document: Document) -> Document:
        spec = document.get("spec", document.get("data", {}))
        metadata = document["metadata"]
        text = {
            "labels": metadata.get("labels"),
            "annotations": metadata.get("annotations"),
            "owner": [one["uid"] == self._uid for one in metadata["ownerReferences"]],
            "spec": {name: spec[name] for name in spec.keys() - _OF_A_SERVER},
            "revision": document.get("revision"),
        }
        return _without(text, self.namespace)

    def creations(self) -> Counter[str]:
        """How often each child was created."""
        return Counter(
            f"{call.plural} {call.body['metadata']['name']}"
            for call in self._writes()
            if call.verb == "create" and call.code == 201
        )

    def unwanted(self) -> list[str]:
        """Children that were created again though nobody had asked for their deletion."""
        there: set[str] = set()
        found: list[str] = []
        for call in self._writes():
            if call.verb == "create" and call.code == 201:
                name = f"{call.plural} {call.body['metadata']['name']}"
                found += [name] if name in there else []
                there.add(name)
            elif call.verb == "delete" and call.code == 200:
                there.discard(f"{call.plural} {call.name}")
        return found

    def _scalings(self) -> int:
        """How often a number of replicas was written."""
        return sum(
            call.code == 200 and (call.subresource == "scale" or "/spec/" in call.raw.decode())
            for call in self._writes()
            if call.plural == "modelservings"
        )

    def _writes(self) -> list[Any]:
        return [
            call
            for call in self.fake.record.writes()
            if call.namespace == self.namespace and call.user == USER and call.plural != "events"
        ]

    async def remove(self) -> None:
        """The user deletes the workload."""
        path = path_of("modelservings", self.namespace, NAME, group=GROUP, version="v1alpha1")
        assert (await self.fleet.calls.delete(path)).ok

    async def change(self, **spec: Any) -> None:
        """The user changes the workload."""
        await self.fleet.change(NAME, spec)


def decider(nats: NatsServer) -> Any:
    """The bus of who decides."""
    return nats.bus(Service.AUTOSCALER)


def _without(value: Any, namespace: str) -> Any:
    """The same of a namespace of another name."""
    if isinstance(value, dict):
        return {name: _without(item, namespace) for name, item in value.items()}
    if isinstance(value, list):
        return [_without(item, namespace) for item in value]
    return value.replace(namespace, "NAMESPACE") if isinstance(value, str) else value


async def _cancelled(*tasks: asyncio.Task[Any]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
