"""Everything that a status is computed from, by hand; nothing of it is stored anywhere."""

from collections.abc import Mapping
from typing import Any

from inferbus_contracts.admission import admit
from inferbus_contracts.conditions import condition
from inferbus_contracts.events.metrics import MetricsAssessed, MetricsSampled, TargetSample
from inferbus_contracts.events.route import ConditionFact, RoutesResolved
from inferbus_contracts.events.scaling import Mode, ScalingRefused
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.orders import Orders
from inferbus_contracts.scaling.intent_reading import read_policy_object
from inferbus_contracts.scaling.settlement import PolicyObjects
from inferbus_shared.objects.picture import StoredObject, controller_uid
from inferbus_spec_watcher.policies import POLICY_KINDS
from inferbus_spec_watcher.policy_objects import set_status
from inferbus_spec_watcher.status.render import render
from inferbus_spec_watcher.status.samples import Samples
from inferbus_spec_watcher.status.view import Answer, Demand, Scaled, Verdict, View, Wanted

Document = dict[str, Any]

EXPANDED = condition("Expanded", True, "ChildrenRendered")
NOW_MS = 1_700_000_000_000


class World:
    """Objects and what is known about them."""

    def __init__(self) -> None:
        self.objects: dict[ObjectKey, StoredObject] = {}
        self.verdicts: dict[ObjectKey, Verdict] = {}
        self.resolved: dict[ObjectKey, RoutesResolved] = {}
        self.wanted: dict[ObjectKey, Wanted] = {}
        self.scaled: dict[ObjectKey, Scaled] = {}
        self.answers: dict[ObjectKey, Answer] = {}
        self.demands: dict[ObjectKey, Demand] = {}
        self.refused: dict[ObjectKey, ScalingRefused] = {}
        self.samples = Samples()
        self.orders = Orders()
        self.now_ms = NOW_MS
        self.assessed: dict[ObjectKey, MetricsAssessed] = {}

    def put(
        self,
        document: Mapping[str, Any],
        *,
        uid: str = "",
        generation: int = 1,
        status: Mapping[str, Any] | None = None,
        owner: ObjectKey | None = None,
    ) -> ObjectKey:
        """Store an admitted object; its uid is its key unless given."""
        admitted = admit(document)
        metadata = {
            **admitted.object["metadata"],
            "uid": uid or str(admitted.key),
            "generation": generation,
        }
        if owner is not None:
            parent = {"apiVersion": "v1", "kind": owner.kind, "name": owner.name}
            reference = {**parent, "uid": self.objects[owner].uid, "controller": True}
            metadata["ownerReferences"] = [reference]
        body = {**admitted.object, "metadata": metadata}
        if status is not None:
            body["status"] = dict(status)
        self.objects[admitted.key] = StoredObject(body, 1)
        return admitted.key

    def say(self, key: ObjectKey, status: Mapping[str, Any]) -> None:
        """Another controller's status of an object."""
        stored = self.objects[key]
        self.objects[key] = StoredObject({**stored.object, "status": dict(status)}, 1)

    def expanded(self, key: ObjectKey, *conditions: ConditionFact, uid: str = "") -> None:
        """The object was expanded, and this is to be said of it."""
        stored = self.objects[key]
        told = conditions or (EXPANDED,)
        self.verdicts[key] = Verdict(uid or stored.uid, stored.generation, told)

    def decided(
        self, target: ObjectKey, replicas: int, mode: Mode | None = Mode.STABLE, uid: str = ""
    ) -> None:
        """A decider wants so many replicas."""
        self.wanted[target] = Wanted(uid or str(target.owner), replicas, mode, NOW_MS)

    def sampled(self, *targets: TargetSample, at_ms: int = NOW_MS) -> None:
        """The collector sampled these."""
        self.samples.take(
            MetricsSampled(policy="p", taken_at_ms=at_ms, window_ms=1, targets=list(targets))
        )

    @property
    def view(self) -> View:
        """What the renderers see."""
        policies = PolicyObjects()
        for key, stored in self.objects.items():
            if key.kind in POLICY_KINDS:
                item = read_policy_object(key, stored.uid, stored.generation, stored.object)
                policies.put(item)
        settled = policies.settled
        return View(
            get=self.objects.get,
            children=self._children,
            verdict=self.verdicts.get,
            resolved=self.resolved.get,
            wanted=self.wanted.get,
            scaled=self.scaled.get,
            answer=self.answers.get,
            demand=self.demands.get,
            measured=self.samples.metrics,
            sampled_ms=self.samples.taken_ms,
            assessed=self.assessed.get,
            refused=self.refused.get,
            freeze=lambda key: self.orders.freeze(key, self.now_ms, settled.policies_of(key)),
            settled=settled,
            now_ms=self.now_ms,
        )

    def status(self, key: ObjectKey, now_ms: int = NOW_MS) -> Document:
        """The status that an object is given now, as it is stored then."""
        self.now_ms = now_ms
        stored = self.objects[key]
        rendered = render(key, stored, self.view, now_ms)
        if rendered is not None:
            self.objects[key] = StoredObject(set_status(stored, rendered).object, 1)
        return dict(self.objects[key].object.get("status") or {})

    def conditions(self, key: ObjectKey, now_ms: int = NOW_MS) -> dict[str, tuple[str, str]]:
        """Status and reason by type."""
        told = self.status(key, now_ms).get("conditions") or ()
        return {one["type"]: (one["status"], one["reason"]) for one in told}

    def _children(self, uid: str) -> tuple[ObjectKey, ...]:
        return tuple(
            sorted(key for key, one in self.objects.items() if controller_uid(one.object) == uid)
        )


def available(observed: int | None = 1, **fields: Any) -> Document:
    """The status of a workload whose replicas all run."""
    seen = {} if observed is None else {"observedGeneration": observed}
    told = {"type": "Available", "status": "True", "reason": "r", "message": ""}
    stamp = {"observedGeneration": observed or 1, "lastTransitionTime": "2026-01-01T00:00:00Z"}
    return {**fields, **seen, "conditions": [{**told, **stamp}]}
