"""The rows of `top`: each workload, and each role that a policy scales, with its last decision."""

from collections.abc import Iterable, Mapping

from inferbus_console.decisions import Decision
from inferbus_contracts.api.console import TargetRow
from inferbus_contracts.events.metrics import TargetSample
from inferbus_contracts.events.scaling import Limiter, ScalingAllocated
from inferbus_contracts.events.workload import WorkloadObserved
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.scaling.settlement import Settled
from inferbus_contracts.targets import replica_counts


def target_rows(
    workloads: Mapping[ObjectKey, WorkloadObserved],
    settled: Settled,
    samples: Mapping[ObjectKey, TargetSample],
    decisions: Iterable[Decision],
) -> list[TargetRow]:
    """One row per workload and scaled role, in key order."""
    last = last_of_targets(decisions)
    roles = {key for key in settled.owners if key.role and key.owner in workloads}
    rows = []
    for key in sorted({*workloads, *roles}):
        desired, replicas, ready = _counts(workloads[key.owner], key.role)
        intent, sample, decision = settled.owners.get(key), samples.get(key), last.get(key)
        rows.append(
            TargetRow(
                target=str(key),
                desired=desired,
                replicas=replicas,
                ready=ready,
                policy=str(intent.owner.key) if intent else "",
                last_decision=in_few_words(decision, key) if decision else "",
                last_decision_ms=decision.time_ms if decision else None,
                metrics={one.name: one.value for one in sample.metrics} if sample else {},
            )
        )
    return rows


def last_of_targets(decisions: Iterable[Decision]) -> dict[ObjectKey, Decision]:
    """The newest of the decisions about each target."""
    last: dict[ObjectKey, Decision] = {}
    for decision in sorted(decisions, key=lambda one: one.sequence):
        last |= dict.fromkeys(decision.targets, decision)
    return last


def in_few_words(decision: Decision, target: ObjectKey) -> str:
    """E.g. `3 → 5`, `7 → 7 held by stabilisation`."""
    data, binding = decision.data, decision.data.record.binding
    current = desired = 0
    if isinstance(data, ScalingAllocated):
        for share in data.allocations:
            if share.target == str(target):
                current, desired = share.current, share.desired
    else:
        current, desired = data.current, data.desired
    held = "" if binding is Limiter.NONE else f" held by {binding.value}"
    return f"{current} → {desired}{held}"


def _counts(observed: WorkloadObserved, role: str) -> tuple[int, int, int]:
    """(desired, replicas, ready) of a workload; of a role over all its groups."""
    if not role:
        return observed.desired, observed.replicas, observed.ready
    counts = replica_counts(observed, role)
    per_group = next((fact.desired for fact in observed.roles if fact.name == role), 0)
    standing = counts.ready + counts.starting + counts.unready
    return per_group * observed.desired, standing, counts.ready
