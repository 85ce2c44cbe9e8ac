"""How large the record of a policy's decision can get, by writing the largest one.

Nothing is estimated: every window is full, every number as long as it gets, and every metric has a
reason to tell. Invariant: no decision of the policy has a larger record.
"""

from dataclasses import replace

from inferbus_autoscaler.evaluation import Evaluation
from inferbus_autoscaler.events import MetricValue, Sampled, TargetReading
from inferbus_autoscaler.facts import DeciderSettings, Facts, PolicyFacts, PolicyTarget, TargetFacts
from inferbus_autoscaler.policy_compat_head import CompatLoop
from inferbus_autoscaler.policy_correction import CompatWindows
from inferbus_autoscaler.policy_held_window import LONGEST_MS, HeldWindow
from inferbus_autoscaler.policy_history import History, PanicHold
from inferbus_autoscaler.policy_need import LONGEST_DETAIL, MetricLoad, Need
from inferbus_autoscaler.policy_roles import role_policy, with_role_states
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
from inferbus_contracts.events.metrics import MetricKind
from inferbus_contracts.events.scaling import Limiter, LimiterStep, Mode

_UID = "0" * 36
_DIGEST = "0" * 32
_LATE_MS = 9_999_999_999_999
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


def _sample(policy: PolicyFacts) -> Sampled:
    readings = tuple(
        TargetReading(
            target=target.key,
            metrics=_values(policy, target),
            ready_pods=_MANY,
            unready_pods=_MANY,
            failed_pods=_MANY,
            missing_pods=_MANY,
        )
        for target in policy.targets
    )
    return Sampled(
        taken_at_ms=_LATE_MS, readings=readings, sequence=_LATE_MS, causes=_CAUSES * (_UID,)
    )


def _values(policy: PolicyFacts, target: PolicyTarget) -> tuple[MetricValue, ...]:
    return tuple(
        MetricValue(
            name=metric.name,
            kind=MetricKind.EXTERNAL_UTILISATION,
            value=_LONG,
            idle=True,
        )
        for metric in (policy.metrics if target.metrics is None else target.metrics)
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
            schedulable=_MANY,
            startup_ms=LONGEST_MS,
        )
        for target in policy.targets
    )
    settings = DeciderSettings(repeat_ms=LONGEST_MS, stale_ms=LONGEST_MS)
    ids = {target.key: _UID for target in policy.targets} if policy.joint else {}
    return Facts(
        policy=policy,
        targets=targets,
        frozen=True,
        decision_id=_UID,
        decision_ids=ids,
        settings=settings,
    )


def _state(policy: PolicyFacts) -> TargetState:
    shared = TargetState(
        owner=(_UID, _UID),
        changed_ms=_LATE_MS,
        standings=tuple(
            Standing(target=target.key, uid=_UID, generation=_MANY, replicas=_MANY)
            for target in policy.targets
        ),
        timer_ms=_LATE_MS,
    )
    if not policy.joint:
        return _with_all(shared, policy)
    owns = [_with_all(shared, role_policy(policy, member)) for member in policy.targets]
    return with_role_states(shared, policy, owns)


def _with_all(state: TargetState, policy: PolicyFacts) -> TargetState:
    return replace(
        state,
        reading=Reading(need=Need(_LONG, _LONG), metrics=_metrics(policy), sampled_ms=_LATE_MS),
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
    return tuple(
        MetricLoad(name=metric.name, load=_LONG, want=_MANY, detail=LONGEST_DETAIL * " ")
        for metric in policy.metrics
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
