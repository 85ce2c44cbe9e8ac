"""What scales what, with the last decision about each target. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from inferbus_cli.views import Scaling
from inferbus_contracts.base import EventData
from inferbus_contracts.events.scaling import Limiter, Mode, ScalingAllocated, ScalingDecided
from inferbus_contracts.events.workload import WorkloadObserved
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.scaling.intents import ScalingIntent
from inferbus_contracts.scaling.settlement import Settled
from inferbus_contracts.targets import replica_counts
from inferbus_shared.bus.messages import Received


@dataclass(frozen=True, slots=True, kw_only=True)
class LastDecision:
    """The last decision about one target."""

    desired: int
    binding: Limiter
    mode: Mode
    time_ms: int
    sequence: int


def last_decisions(events: Iterable[Received[EventData]]) -> dict[ObjectKey, LastDecision]:
    """The newest of the decisions about each target."""
    last: dict[ObjectKey, LastDecision] = {}
    for event in events:
        for target, decision in _decisions_in(event):
            known = last.get(target)
            if known is None or known.sequence < decision.sequence:
                last[target] = decision
    return last


def _decisions_in(event: Received[EventData]) -> Iterable[tuple[ObjectKey, LastDecision]]:
    data = event.data
    if isinstance(data, ScalingDecided):
        shares, mode = [(event.key, data.desired)], data.mode
    elif isinstance(data, ScalingAllocated):
        shares = [(ObjectKey.parse(one.target), one.desired) for one in data.allocations]
        mode = Mode.STABLE
    else:
        return
    for target, desired in shares:
        yield (
            target,
            LastDecision(
                desired=desired,
                binding=data.record.binding,
                mode=mode,
                time_ms=event.time_ms,
                sequence=event.sequence,
            ),
        )


def scalings(
    settled: Settled,
    workloads: Mapping[ObjectKey, WorkloadObserved],
    decisions: Mapping[ObjectKey, LastDecision],
) -> dict[ObjectKey, list[Scaling]]:
    """The targets of every policy and of every binding, each under both where they differ."""
    found: dict[ObjectKey, list[Scaling]] = {}
    for intent in settled.intents:
        rows = _scalings_of(intent, workloads, decisions)
        for key in {intent.owner.key, intent.policy.key}:
            found.setdefault(key, []).extend(rows)
    return {key: sorted(rows, key=lambda row: row.target) for key, rows in found.items()}


def _scalings_of(
    intent: ScalingIntent,
    workloads: Mapping[ObjectKey, WorkloadObserved],
    decisions: Mapping[ObjectKey, LastDecision],
) -> list[Scaling]:
    rows = []
    for target in intent.targets:
        decision = decisions.get(target.key)
        rows.append(
            Scaling(
                target=target.key,
                min_replicas=target.min_replicas,
                max_replicas=target.max_replicas,
                current=_current(workloads.get(target.key.owner), target.key.role),
                desired=decision.desired if decision else None,
                binding=decision.binding if decision else Limiter.NONE,
                mode=decision.mode if decision else Mode.STABLE,
                decided_ms=decision.time_ms if decision else None,
            )
        )
    return rows


def _current(observed: WorkloadObserved | None, role: str) -> int | None:
    if observed is None:
        return None
    if not role:
        return observed.replicas
    counts = replica_counts(observed, role)
    return counts.ready + counts.starting + counts.unready
