"""How large the record of a policy's decision can get, by writing the largest one.

Nothing is estimated: every window is full, every number as long as it gets, and every metric has a
reason to tell. Invariant: no decision of the policy has a larger record.
"""

from dataclasses import replace

from inferbus_autoscaler.evaluation import Evaluation
from inferbus_autoscaler.events import (
    OBJECTIVE_METRICS,
    MetricValue,
    Sampled,
    TargetReading,
)
from inferbus_autoscaler.facts import DeciderSettings, Facts, PolicyFacts, PolicyTarget, TargetFacts
from inferbus_autoscaler.policy_compat_head import CompatLoop
from inferbus_autoscaler.policy_correction import CompatWindows
from inferbus_autoscaler.policy_held_window import LONGEST_MS, HeldWindow
from inferbus_autoscaler.policy_history import History, PanicHold
from inferbus_autoscaler.policy_need import LONGEST_DETAIL, MetricLoad, Need
from inferbus_autoscaler.policy_objective import DEMAND
from inferbus_autoscaler.policy_roles import role_policy, with_role_states
from inferbus_autoscaler.policy_room import Room
from inferbus_autoscaler.policy_throughput import (
    HELD_MS,
    LONGEST_GAP_MS,
    MOST_RATES,
    Stretch,
    Throughput,
)
from inferbus_autoscaler.policy_windows import Best, RateWindow, RecommendationWindow
from inferbus_autoscaler.record import CoreInput, record_of
from inferbus_autoscaler.stamps import Stamped
from inferbus_autoscaler.state import (
    CompatMemory,
    LastDecision,
    Reading,
    Standing,
    TargetState,
)
from inferbus_autoscaler.worst_memory import worst_memory
from inferbus_contracts.events.metrics import MetricKind
from inferbus_contracts.events.scaling import Limiter, LimiterStep, Mode

_UID = "0" * 36
_DIGEST = "0" * 32
_LATE_MS = 9_999_999_999_999
_ROLE = "prefill-worker"
_MANY = 1_000_000
"""The most replicas a target may have (autoscaling spec 1.3)."""
_LONG = -1.2345678901234567e-300
"""As many characters as a float64 can need."""
_CAUSES = 8
_STEPS = 7


def worst_record_bytes(policy: PolicyFacts) -> int:
    """The size of the largest record that a decision of `policy` can have, as canonical JSON."""
    given = CoreInput(
        state=_state(policy), event=_sample(policy), facts=_facts(policy), now_ms=_LATE_MS
    )
    if not policy.joint:
        return _bytes(given, policy, None)
    return max(
        _bytes(given, role_policy(policy, member), member.key, _ratio_steps(policy))
        for member in policy.targets
    )


def _bytes(
    given: CoreInput, policy: PolicyFacts, target: str | None, more: tuple[LimiterStep, ...] = ()
) -> int:
    found = Evaluation(
        state=given.state,
        current=_MANY,
        desired=_MANY,
        mode=Mode.STABLE,
        metrics=_metrics(policy),
        steps=(*(_STEPS * (_STEP,)), *more),
    )
    return len(record_of(given, policy, found, given.state, target).to_json())


_STEP = LimiterStep(
    name=Limiter.STABILISATION,
    before=_MANY,
    after=_MANY,
    detail=f"least of {LONGEST_MS} ms is {_MANY}" + 20 * " ",
)

_LONGEST_REASON = 100
"""Characters of why a pair isn't in proportion, and of its numbers."""


def _ratio_steps(policy: PolicyFacts) -> tuple[LimiterStep, ...]:
    if policy.ratio is None:
        return ()
    ratio = policy.ratio
    names = ratio.numerator + ratio.denominator + ratio.least + ratio.most
    detail = (len(names) + _LONGEST_REASON) * " "
    return (LimiterStep(name=Limiter.RATIO, before=_MANY, after=_MANY, detail=detail),)


_RATE = 0.0123
_ROOM = Room(
    target=f"{_UID}/{_ROLE}",
    limit=_MANY,
    pause_ms=LONGEST_MS,
    probe_ms=_LATE_MS,
    probing=True,
)
_THROUGHPUT = Throughput(
    target=f"{_UID}/{_ROLE}",
    rates=MOST_RATES * (_RATE,),
    used=_RATE,
    stretch=Stretch(ready=_MANY, since_ms=_LATE_MS, held_ms=LONGEST_GAP_MS + HELD_MS, least=_RATE),
)


def _sample(policy: PolicyFacts) -> Sampled:
    readings = tuple(
        TargetReading(
            target=target.key,
            metrics=_values(policy, target),
            ready_pods=_MANY,
            unready_pods=_MANY,
            failed_pods=_MANY,
            missing_pods=_MANY,
            output_tokens=1.234e-100,
            waiting=_MANY,
        )
        for target in policy.targets
    )
    return Sampled(
        taken_at_ms=_LATE_MS, readings=readings, sequence=_LATE_MS, causes=_CAUSES * (_UID,)
    )


def _values(policy: PolicyFacts, target: PolicyTarget) -> tuple[MetricValue, ...]:
    own = policy.metrics if target.metrics is None else target.metrics
    names = OBJECTIVE_METRICS if policy.objective else tuple(metric.name for metric in own)
    return tuple(
        MetricValue(
            name=name,
            kind=MetricKind.EXTERNAL_UTILISATION,
            value=_LONG,
            idle=True,
        )
        for name in names
    )


def _facts(policy: PolicyFacts) -> Facts:
    targets = tuple(
        TargetFacts(
            key=target.key,
            uid=_UID,
            generation=_MANY,
            replicas=_MANY,
            groups=_MANY if policy.joint else 1,
            ready=_MANY,
            starting=_MANY,
            unready=_MANY,
            placed=_MANY,
            schedulable=_MANY,
            startup_ms=LONGEST_MS,
        )
        for target in policy.targets
    )
    settings = DeciderSettings(
        repeat_ms=LONGEST_MS,
        stale_ms=LONGEST_MS,
        idle_ms=LONGEST_MS + 1,
        unplaced_ms=LONGEST_MS,
        probe_ms=LONGEST_MS,
        longest_probe_ms=LONGEST_MS,
    )
    ids = {target.key: _UID for target in policy.targets} if policy.joint else {}
    return Facts(
        policy=policy,
        targets=targets,
        frozen=True,
        frozen_until_ms=_LATE_MS,
        decision_id=_UID,
        decision_ids=ids,
        settings=settings,
    )


def _state(policy: PolicyFacts) -> TargetState:
    learns = policy.objective is not None or (policy.mix and policy.capacity_source is None)
    shared = TargetState(
        owner=(_UID, _UID),
        changed_ms=_LATE_MS,
        standings=tuple(
            Standing(target=target.key, uid=_UID, generation=_MANY, replicas=_MANY)
            for target in policy.targets
        ),
        rooms=tuple(_ROOM for _ in policy.targets) if policy.mix else (),
        throughputs=tuple(_THROUGHPUT for _ in policy.targets) if learns else (),
        units=_DIGEST if policy.mix else "",
        timer_ms=_LATE_MS,
    )
    if not policy.joint:
        return _with_all(shared, policy)
    owns = [_with_all(shared, role_policy(policy, member)) for member in policy.targets]
    return with_role_states(shared, policy, owns)


def _with_all(state: TargetState, policy: PolicyFacts) -> TargetState:
    return replace(
        state,
        reading=Reading(need=Need(_LONG, _LONG), metrics=_metrics(policy), sampled_ms=_LATE_MS)
        if policy.objective is None
        else None,
        objective=None
        if policy.objective is None
        else worst_memory(_LATE_MS, daily=policy.objective.daily),
        history=_history(policy) if policy.compat is None else History(),
        decision=LastDecision(
            desired=_MANY,
            mode=Mode.STABLE,
            binding=Limiter.STABILISATION,
            decided_ms=_LATE_MS,
            options=_DIGEST,
            applying=True,
        ),
        compat=None if policy.compat is None else _compat_memory(policy),
    )


def _metrics(policy: PolicyFacts) -> tuple[MetricLoad, ...]:
    by_objective = policy.objective is not None
    names = [DEMAND] if by_objective else [metric.name for metric in policy.metrics]
    return tuple(
        MetricLoad(
            name=name,
            load=_LONG,
            want=_MANY,
            target=_LONG if by_objective else None,
            detail=LONGEST_DETAIL * " ",
        )
        for name in names
    )


def _stamps(count: int) -> tuple[Stamped, ...]:
    step_ms = LONGEST_MS // max(count, 1)
    return tuple((_LATE_MS + index * step_ms, _MANY) for index in range(count))


def _history(policy: PolicyFacts) -> History:
    side = HeldWindow(_MANY, _stamps(policy.most_stamps // 2))
    return History(
        most_recommended=side,
        least_recommended=side,
        most_replicas=side,
        least_replicas=side,
        panic=PanicHold(hitting=True, ended_ms=_LATE_MS),
    )


def _compat_memory(policy: PolicyFacts) -> CompatMemory:
    stamps = _stamps(policy.most_stamps)
    recommendation = RecommendationWindow(Best.MAX, LONGEST_MS, stamps)
    rate = RateWindow(Best.MAX, LONGEST_MS, stamps, (_LATE_MS, _MANY))
    windows = CompatWindows(
        stabilise_down=recommendation,
        stabilise_up=recommendation,
        rate_down=rate,
        rate_up=rate,
        rate_panic=rate,
    )
    return CompatMemory(generation=_MANY, loop=CompatLoop(windows, panic_until_ms=_LATE_MS))
