"""What the collector knows, and what follows from a new fact: which keys to sample at once.

Facts are folded in any order. Invariant: plans are a function of the facts alone, so that all
instances that have heard the same plan the same.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from pydantic import ValidationError

from inferbus_contracts.errors import ErrorCode, Problem
from inferbus_contracts.events.spec import SpecChanged
from inferbus_contracts.events.workload import WorkloadObserved
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.resources.kinds import AUTOSCALING_POLICY, AUTOSCALING_POLICY_BINDING
from inferbus_contracts.scaling.intent_reading import read_policy_object
from inferbus_contracts.scaling.intents import PolicyObject
from inferbus_contracts.scaling.settlement import settle
from inferbus_metrics_collector.plans import Page, SamplePlan
from inferbus_metrics_collector.policy_selection import is_ready
from inferbus_metrics_collector.policy_targets import NamespaceGrants, Planned, plan_samples

KINDS_READ = (AUTOSCALING_POLICY, AUTOSCALING_POLICY_BINDING)
"""The kinds of objects that are read."""


@dataclass(kw_only=True)
class Fleet:
    """Policies, bindings and workloads as they are known."""

    grants: NamespaceGrants
    objects: dict[ObjectKey, PolicyObject] = field(default_factory=dict)
    workloads: dict[ObjectKey, WorkloadObserved] = field(default_factory=dict)
    unreadable: dict[ObjectKey, Problem] = field(default_factory=dict)
    """Objects that don't fit their model."""
    uids: dict[ObjectKey, str] = field(default_factory=dict)
    """Of all policies and bindings, readable or not."""

    def fold_object(self, key: ObjectKey, data: SpecChanged) -> None:
        """Take in a policy or a binding; call `planned` when the facts at hand are in."""
        self.objects.pop(key, None)
        self.unreadable.pop(key, None)
        self.uids.pop(key, None)
        if data.deleted:
            return
        self.uids[key] = data.uid
        try:
            self.objects[key] = read_policy_object(key, data.uid, data.generation, data.object)
        except ValidationError as error:
            self.unreadable[key] = _unreadable(key, error)

    def fold_workload(self, key: ObjectKey, data: WorkloadObserved) -> bool:
        """Take in a workload; True when its targets are to be sampled at once.

        That is when its spec changed, or pods became ready that weren't.
        """
        before = self.workloads.pop(key, None)
        if data.deleted:
            return False
        self.workloads[key] = data
        return before is None or before.generation != data.generation or _gained(before, data)

    def planned(self) -> Planned:
        """What follows from the policies and bindings."""
        planned = plan_samples(settle(self.objects), self.grants)
        problems = {key: (problem,) for key, problem in self.unreadable.items()}
        return Planned(plans=planned.plans, problems=planned.problems | problems)

    def missing(self, plan: SamplePlan) -> tuple[ObjectKey, ...]:
        """The workloads of a plan that don't exist (yet)."""
        keys = (target.key.owner for target in plan.targets)
        return tuple(key for key in keys if key not in self.workloads)


def wanted_families(
    plans: Collection[SamplePlan],
) -> Mapping[tuple[ObjectKey, Page], frozenset[str]]:
    """What to look for on each page of each workload, for all plans together."""
    wanted: dict[tuple[ObjectKey, Page], frozenset[str]] = {}
    for plan in plans:
        for target in plan.targets:
            for metric in (*target.pod_metrics, *target.beside):
                place = (target.key.owner, metric.page)
                wanted[place] = wanted.get(place, frozenset()) | frozenset(metric.families)
    return wanted


def _gained(before: WorkloadObserved, now: WorkloadObserved) -> bool:
    known = {pod.uid for pod in before.pods if is_ready(pod)}
    return any(is_ready(pod) and pod.uid not in known for pod in now.pods)


def _unreadable(key: ObjectKey, error: ValidationError) -> Problem:
    first = error.errors()[0]
    return Problem(
        code=ErrorCode.WRONG_TYPE,
        message=f"the stored object does not fit its schema: {first['msg']}",
        object=str(key),
        field=".".join(str(part) for part in first["loc"]),
        remedy="apply it again, so that it is admitted by this version",
    )
