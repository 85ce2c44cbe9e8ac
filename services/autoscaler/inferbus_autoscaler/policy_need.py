"""How many replicas the load needs: the default decider's reading of one sample.

Load and target are one unit everywhere: total load over what one replica should carry. Two numbers
come out of it: what is known to be needed, and what may be needed at most, seeing that some pods
said nothing. Scaling up rests on the first, scaling down on the second (autoscaling spec D4, D5,
D10 to D12, D15, D17). Invariant: more load, or less knowledge, never allows fewer replicas.
"""

import math
from dataclasses import dataclass

from inferbus_autoscaler.events import Sampled, TargetReading
from inferbus_autoscaler.facts import Facts, MetricTarget, PolicyFacts, TargetFacts
from inferbus_contracts.errors import shorten
from inferbus_contracts.events.metrics import MetricKind

MOST_NEEDED = 100_000_000.0
"""No load asks for more replicas than that."""

NOISE_PARTS = 10**9
"""A load is taken to be exact to one part in so many.

Inputs such as 2.1 / 0.7, and sums in any order, are off by some 1e-16 in float64, and an exact
quotient of such numbers still rounds up to one replica too many. A relative margin far above that
error and far below one replica takes whole numbers as reached (autoscaling spec D15, 7.1 "Band").
"""

_LARGEST_LOAD = 1e200
"""Larger values are cut, so that no sum of them overflows."""

LONGEST_DETAIL = 80
"""Characters."""

_TOTALS = frozenset({MetricKind.GAUGE, MetricKind.RATE, MetricKind.EXTERNAL_TOTAL})
"""Kinds whose value is the load itself; the value of all others is a share of every replica."""

_EXTERNAL = frozenset(
    {MetricKind.EXTERNAL_TOTAL, MetricKind.EXTERNAL_AVERAGE, MetricKind.EXTERNAL_UTILISATION}
)


@dataclass(frozen=True)
class Need:
    """Replicas (for a mix: capacity units) that the load needs."""

    known: float | None = None
    """At least so many; None when no metric has a value."""
    possible: float | None = None
    """At most so many; None when nobody can tell."""


@dataclass(frozen=True, kw_only=True)
class MetricLoad:
    """What one metric asked for."""

    name: str
    load: float | None = None
    """Total over the targets, in the metric's unit; None when there is no value."""
    want: int | None = None
    """Replicas for it; None when there is no value."""
    target: float | None = None
    """What one replica should carry, where that isn't the policy's to say."""
    detail: str = ""


@dataclass(frozen=True)
class _Load:
    """One metric over one target, or over all of them."""

    load: float | None = None
    """In the metric's unit; None when there is no value."""
    unseen: float = 0.0
    """What replicas that lost their readiness may carry, each its target's worth."""
    gaps: tuple[str, ...] = ()
    """Why the load may be larger than it looks."""


def whole(replicas: float) -> int:
    """The replicas that carry a load of `replicas` targets: rounded up, but not for noise."""
    if replicas <= 0:
        return 0
    numerator, denominator = min(replicas, MOST_NEEDED).as_integer_ratio()
    return -(-numerator * (NOISE_PARTS - 1) // (denominator * NOISE_PARTS))


def needed(
    policy: PolicyFacts, facts: Facts, sample: Sampled, now_ms: int
) -> tuple[Need, tuple[MetricLoad, ...]]:
    """The need of the metric that needs most, and what each metric asked for.

    A metric without a value, and a stale sample, leave open how much more may be needed. The
    replicas of a role are those of one group, while its load is that of all of them (autoscaling
    spec 5.3, D8).
    """
    groups = _groups(policy, facts)
    per_group = (f"shared by {groups} groups",) if groups > 1 else ()
    known: float | None = None
    possible: float | None = 0.0
    metrics = []
    for wanted in policy.metrics:
        found = _metric_load(wanted, policy, facts, sample)
        share = None if found.load is None else _share(found.load, wanted.target * groups)
        metrics.append(
            MetricLoad(
                name=wanted.name,
                load=found.load,
                want=None if share is None else whole(share),
                detail=shorten("; ".join((*per_group, *found.gaps)), LONGEST_DETAIL),
            )
        )
        if share is None or found.gaps or possible is None:
            possible = None
        else:
            possible = max(possible, share + _share(found.unseen, wanted.target * groups))
        if share is not None:
            known = share if known is None else max(known, share)
    if known is None or now_ms - sample.taken_at_ms > facts.settings.stale_ms:
        possible = None
    return Need(known, possible), tuple(metrics)


def _groups(policy: PolicyFacts, facts: Facts) -> int:
    target = None if policy.mix else facts.target(policy.targets[0].key)
    return max(target.groups, 1) if target else 1


def _share(load: float, target: float) -> float:
    return min(load / target, MOST_NEEDED)


def _metric_load(wanted: MetricTarget, policy: PolicyFacts, facts: Facts, sample: Sampled) -> _Load:
    parts = []
    for member in policy.targets:
        weight = member.capacity if policy.mix else 1.0
        stands, reading = facts.target(member.key), sample.reading(member.key)
        if stands is None or reading is None:
            idle = stands is not None and stands.replicas == 0
            parts.append(_Load(gaps=() if idle else (f"{member.key} was not sampled",)))
        else:
            parts.append(_member_load(wanted.name, weight, stands, reading))
    loads = [part.load for part in parts if part.load is not None]
    return _Load(
        load=math.fsum(loads) if loads else None,
        unseen=math.fsum(part.unseen for part in parts) * wanted.target,
        gaps=tuple(gap for part in parts for gap in part.gaps),
    )


def _member_load(name: str, weight: float, stands: TargetFacts, reading: TargetReading) -> _Load:
    metric = reading.metric(name)
    if metric is None:
        serving = reading.ready_pods + reading.missing_pods
        gaps = (f"no pod of {reading.target} gives it",) if serving else ()
        return _Load(unseen=stands.unready * weight, gaps=gaps)
    if metric.value is None:
        return _Load(gaps=(f"{reading.target} gives no finite number",))
    load = 0.0 if metric.idle else min(max(metric.value, 0.0), _LARGEST_LOAD)
    if metric.kind not in _TOTALS:
        if stands.ready == 0:
            return _Load(gaps=(f"{reading.target} has no ready replica to weigh it by",))
        load *= stands.ready * weight
    if metric.kind in _EXTERNAL:
        return _Load(load=load)
    missing = reading.missing_pods
    gaps = (f"{missing} pods of {reading.target} didn't answer",) if missing else ()
    return _Load(load=load, unseen=stands.unready * weight, gaps=gaps)
