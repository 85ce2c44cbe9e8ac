"""What keeps a policy from scaling is told in plain words, and no longer than it is so (AS_D22)."""

from typing import Any

import pytest
from status_world import NOW_MS, World
from test_status_scaling import (
    CHAT,
    METRICS,
    OTHER,
    binding,
    bounds,
    policy,
    roles,
    serving,
    single,
)

from inferbus_contracts.errors import ErrorCode, Problem
from inferbus_contracts.events.control import ControlFrozen, ControlThawed
from inferbus_contracts.events.metrics import (
    MetricAggregate,
    MetricKind,
    MetricsAssessed,
    MetricsSampled,
    TargetSample,
)
from inferbus_contracts.events.scaling import (
    ApplyOutcome,
    Limiter,
    LimiterStep,
    Mode,
    ScalingRefused,
)
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.orders import PLATFORM, namespace_scope
from inferbus_contracts.resources.annotations import OBJECTIVE
from inferbus_spec_watcher.status.samples import STALE_MS
from inferbus_spec_watcher.status.scaling_conditions import next_look_ms
from inferbus_spec_watcher.status.view import Answer, Demand, Wanted

METRIC = METRICS[0]["metricName"]
POLICY = ObjectKey("AutoscalingPolicy", "default", "scale")
BINDING = ObjectKey("AutoscalingPolicyBinding", "default", "scale")
MODE = "inferbus.dev/mode"


def told(world: World, key: ObjectKey, type_: str, now_ms: int = NOW_MS) -> tuple[str, str, str]:
    """Status, reason and message of one condition."""
    conditions = world.status(key, now_ms)["conditions"]
    (found,) = [one for one in conditions if one["type"] == type_]
    return found["status"], found["reason"], found["message"]


def since(world: World, key: ObjectKey, type_: str) -> str:
    """Its transition time."""
    conditions = world.status(key, world.now_ms)["conditions"]
    return next(str(one["lastTransitionTime"]) for one in conditions if one["type"] == type_)


def gauge(name: str = METRIC) -> MetricAggregate:
    return MetricAggregate(name=name, kind=MetricKind.GAUGE, value=3, pods=1)


def sample(target: ObjectKey = CHAT, **fields: Any) -> TargetSample:
    return TargetSample(target=str(target), **({"metrics": [gauge()], "ready_pods": 1} | fields))


def decided(world: World, *steps: LimiterStep, replicas: int = 5, id_: str = "d1") -> None:
    world.wanted[CHAT] = Wanted(str(CHAT), replicas, Mode.STABLE, NOW_MS, id_, steps)


def answered(world: World, outcome: ApplyOutcome, message: str = "", id_: str = "d1") -> None:
    world.answers[CHAT] = Answer(id_, outcome, message)


def step(name: Limiter, before: int, after: int, detail: str = "") -> LimiterStep:
    return LimiterStep(name=name, before=before, after=after, detail=detail)


def advising(mode: str) -> tuple[World, ObjectKey]:
    world, _ = single()
    document = binding()
    document["metadata"]["annotations"] = {MODE: mode}
    return world, world.put(document)


@pytest.mark.parametrize(
    "scope", [CHAT, POLICY, BINDING, namespace_scope("default"), PLATFORM], ids=str
)
def test_as_d22_a_freeze_is_told_with_its_scope_and_its_end_and_ends(scope: ObjectKey) -> None:
    world, key = single()
    until_ms = NOW_MS + 90_000
    freeze = ControlFrozen(who="ada", why="incident 42", until_ms=until_ms)
    world.orders.take(scope, freeze, NOW_MS)
    status, reason, message = told(world, key, "AbleToScale")
    assert (status, reason) == ("False", "Frozen")
    assert message == f"{scope} is frozen until 2023-11-14T22:14:50.000Z by ada: incident 42"
    began = since(world, key, "AbleToScale")
    assert told(world, key, "AbleToScale", until_ms - 1)[0] == "False"
    assert since(world, key, "AbleToScale") == began
    assert told(world, key, "AbleToScale", until_ms) == ("True", "ReadyForNewScale", "")
    assert since(world, key, "AbleToScale") == "2023-11-14T22:14:50Z"


def test_as_d22_a_freeze_of_something_else_and_one_that_was_taken_back_are_not_told() -> None:
    world, key = single()
    world.orders.take(OTHER, ControlFrozen(who="ada", why="x"), NOW_MS)
    assert told(world, key, "AbleToScale")[0] == "True"
    world.orders.take(CHAT, ControlFrozen(who="ada", why="x"), NOW_MS)
    assert told(world, key, "AbleToScale")[0] == "False"
    world.orders.take(CHAT, ControlThawed(who="ada", why="x"), NOW_MS + 1)
    assert told(world, key, "AbleToScale")[0] == "True"


def test_as_d22_what_waits_for_approval_is_told_with_the_command_and_clears() -> None:
    world, key = advising("approve")
    decided(world)
    assert told(world, key, "AbleToScale")[0] == "True"
    answered(world, ApplyOutcome.AWAITING_APPROVAL)
    status, reason, message = told(world, key, "AbleToScale")
    assert (status, reason) == ("False", "AwaitingApproval")
    assert f"{CHAT} 3 → 5 waits for approval" in message
    assert f"inferbus approve {CHAT} --decision d1" in message
    answered(world, ApplyOutcome.APPLIED)
    assert told(world, key, "AbleToScale")[0] == "True"


def test_as_d22_a_newer_decision_takes_the_older_one_s_waiting_back() -> None:
    world, key = advising("approve")
    decided(world)
    answered(world, ApplyOutcome.AWAITING_APPROVAL)
    decided(world, id_="d2")
    assert told(world, key, "AbleToScale")[0] == "True"


def test_as_d22_advice_is_told_as_advice() -> None:
    world, key = advising("advise")
    decided(world)
    answered(world, ApplyOutcome.ADVISED)
    status, reason, message = told(world, key, "AbleToScale")
    assert (status, reason) == ("False", "AdviseOnly")
    assert message == (f"the policy only advises and changes nothing; advised is {CHAT} 3 → 5")


def test_as_d22_a_scale_that_failed_says_why() -> None:
    world, key = single()
    decided(world)
    answered(world, ApplyOutcome.FAILED, "the target has no role x")
    told_now = told(world, key, "AbleToScale")
    assert told_now == ("False", "ScaleFailed", f"{CHAT} 3 → 5 failed: the target has no role x")


def test_as_d22_a_target_without_a_sample_or_with_an_old_one_is_told() -> None:
    world, key = single()
    _, reason, message = told(world, key, "ScalingActive")
    assert (reason, message) == ("NoSamples", f"{CHAT} was not sampled yet")
    world.sampled(sample())
    assert told(world, key, "ScalingActive") == ("True", "ValidMetricFound", "")
    assert told(world, key, "ScalingActive", NOW_MS + STALE_MS)[0] == "True"
    status, reason, message = told(world, key, "ScalingActive", NOW_MS + STALE_MS + 1)
    assert (status, reason) == ("False", "NoSamples")
    assert message == f"{CHAT} was not sampled since 2023-11-14T22:13:20.000Z"
    world.sampled(sample(), at_ms=NOW_MS + STALE_MS + 1)
    assert told(world, key, "ScalingActive", NOW_MS + STALE_MS + 1)[0] == "True"


def test_as_d22_no_metric_with_a_value_is_told_with_since_when_and_where_the_reason_stands() -> (
    None
):
    world, key = single()
    world.sampled(sample(metrics=[]))
    status, reason, message = told(world, key, "ScalingActive")
    assert (status, reason) == ("False", "NoMetricHasValue")
    assert message == f"no pod of {CHAT} gives {METRIC}"
    began = since(world, key, "ScalingActive")
    refused = f"{CHAT}: pod chat-0: port 8100/metrics: refused"
    world.assessed[key] = MetricsAssessed(policy_uid=str(key), problems=[refused])
    later_ms = NOW_MS + 30_000
    message = told(world, key, "ScalingActive", later_ms)[2]
    assert message == f"no pod of {CHAT} gives {METRIC}; MetricsWhole says why"
    assert told(world, key, "MetricsWhole", later_ms) == ("False", "SamplesIncomplete", refused)
    assert since(world, key, "ScalingActive") == began


def test_as_d22_zero_replicas_have_no_metric_and_that_is_no_fault() -> None:
    world, key = single(replicas=0)
    world.sampled(sample(metrics=[], ready_pods=0))
    assert told(world, key, "ScalingActive")[1] == "ScaledToZero"


def test_as_d22_a_partly_known_load_is_told_once() -> None:
    """Some pods that don't answer, or some metric without a value, leave something to decide by."""
    world, key = single()
    silent = f"{CHAT}: pod chat-1: port 8100/metrics: timed out"
    world.sampled(sample(missing=["chat-1"], problems=[silent]))
    world.assessed[key] = MetricsAssessed(policy_uid=str(key), problems=[silent])
    assert told(world, key, "ScalingActive") == ("True", "ValidMetricFound", "")
    assert told(world, key, "MetricsWhole") == ("False", "SamplesIncomplete", silent)
    assert sum(silent in one["message"] for one in world.status(key)["conditions"]) == 1
    world.assessed[key] = MetricsAssessed(policy_uid=str(key))
    assert told(world, key, "MetricsWhole")[0] == "True"


def test_as_d22_each_of_two_roles_needs_a_metric_of_its_own() -> None:
    world, key = roles(1, 2)
    prefill, decode = (CHAT._replace(role=role) for role in ("prefill", "decode"))
    world.sampled(sample(prefill))
    _, reason, message = told(world, key, "ScalingActive")
    assert (reason, message) == ("NoSamples", f"{decode} was not sampled yet")
    world.sampled(sample(prefill), sample(decode, metrics=[gauge("of the other role")]))
    _, reason, message = told(world, key, "ScalingActive")
    assert (reason, message) == ("NoMetricHasValue", f"no pod of {decode} gives {METRIC}")
    world.sampled(sample(prefill), sample(decode))
    assert told(world, key, "ScalingActive") == ("True", "ValidMetricFound", "")


def test_as_d22_targets_of_a_mix_share_one_load() -> None:
    world, _ = single()
    world.put(serving("other", 2))
    params = [bounds("chat", cost=1), bounds("other", cost=2)]
    key = world.put(binding(heterogeneousTarget={"params": params}))
    world.sampled(sample(OTHER), sample(CHAT, metrics=[]))
    assert told(world, key, "ScalingActive") == ("True", "ValidMetricFound", "")


def test_as_d22_an_objective_without_metrics_is_blind_without_any_metric_of_its_load() -> None:
    world, _ = single()
    document = policy(homogeneousTarget=bounds("chat"))
    del document["spec"]["metrics"]
    document["metadata"]["annotations"] = {OBJECTIVE: "ttft=2s@99.5%"}
    key = world.put(document)
    del world.objects[BINDING]
    assert told(world, key, "ScalingActive")[1] == "NoSamples"
    world.sampled(sample(metrics=[]))
    message = f"no pod of {CHAT} gives a metric of its load"
    assert told(world, key, "ScalingActive") == ("False", "NoMetricHasValue", message)
    world.sampled(sample(metrics=[gauge("whatever an engine shows")]))
    assert told(world, key, "ScalingActive") == ("True", "ValidMetricFound", "")


@pytest.mark.parametrize(
    ("moving", "reason", "words"),
    [
        ((12, 9), "TooManyReplicas", f"{CHAT} needs 12; maxReplicas allows 9"),
        ((0, 1), "TooFewReplicas", f"{CHAT} needs 0; minReplicas asks for 1"),
    ],
)
def test_as_d22_bounds_that_bind_are_told(moving: tuple[int, int], reason: str, words: str) -> None:
    world, key = single()
    decided(world, step(Limiter.BOUNDS, *moving), step(Limiter.RATE, moving[1], 4))
    assert told(world, key, "ScalingLimited") == ("True", reason, words)
    decided(world, step(Limiter.BOUNDS, 9, 9))
    assert told(world, key, "ScalingLimited") == ("False", "DesiredWithinRange", "")


def test_as_d22_too_little_capacity_of_a_mix_is_told_and_its_mode() -> None:
    world, _ = single()
    world.put(serving("other", 2))
    params = [bounds("chat", cost=1), bounds("other", cost=2)]
    key = world.put(binding(heterogeneousTarget={"params": params}))
    short = step(Limiter.CAPACITY, 12, 8, "12 units needed, 8 possible")
    world.wanted[CHAT] = Wanted(str(CHAT), 5, None, NOW_MS, "d1", (short,))
    words = f"{key} can't have what its load needs: 12 units needed, 8 possible"
    assert told(world, key, "ScalingLimited") == ("True", "InsufficientCapacity", words)
    world.wanted[CHAT] = Wanted(str(CHAT), 5, None, NOW_MS, "d1")
    world.demands[key] = Demand(Mode.PANIC, (step(Limiter.BOUNDS, 30, 18),), NOW_MS)
    status, reason, message = told(world, key, "ScalingLimited")
    assert (status, reason) == ("True", "TooManyReplicas")
    assert message == f"{key} needs, in capacity units, 30; maxReplicas allows 18"
    assert [one.get("mode") for one in world.status(key)["heterogeneousStatus"]] == ["Panic", None]


def test_as_d18_a_policy_that_is_refused_says_field_value_and_remedy_until_it_is_mended() -> None:
    world, _ = single()
    key = world.put(binding(homogeneousTarget={**bounds("chat"), "minReplicas": 12}))
    problem = Problem(
        code=ErrorCode.VALUE_OUT_OF_RANGE,
        message="the value must not exceed maxReplicas (9)",
        object=str(key),
        field="targets[0].minReplicas",
        value=12,
        remedy="correct the policy; its targets keep their replicas until then",
    )
    world.refused[key] = ScalingRefused(uid=str(key), problems=[problem])
    status, reason, message = told(world, key, "Ready")
    assert (status, reason) == ("False", "ReconcileFailed")
    for word in ("targets[0].minReplicas", "12", "maxReplicas (9)", "correct the policy"):
        assert word in message
    world.refused[key] = ScalingRefused(uid="a namesake before it", problems=[problem])
    assert told(world, key, "Ready")[0] == "True"
    world.refused[key] = ScalingRefused(uid=str(key))
    assert told(world, key, "Ready")[0] == "True"


def test_a_missing_role_is_told_beside_those_there_are() -> None:
    world, key = roles(1, 2)
    world.put(serving("chat", prefill=1))
    assert told(world, key, "TargetFound")[2] == (
        f"{CHAT} has no role decode; its roles are prefill"
    )


def test_a_policy_that_lost_its_target_says_nothing_of_scaling() -> None:
    world, _ = single()
    world.put(binding(created="2026-01-01T00:00:00Z"))
    rival = world.put(binding("rival", created="2026-02-01T00:00:00Z"))
    assert world.conditions(rival).keys() == {"Accepted", "Ready"}


def test_fixed_replicas_need_no_metric() -> None:
    world = World()
    world.put(serving("chat", prefill=1, decode=1))
    fixed = {"minReplicas": 2, "maxReplicas": 2}
    target = {
        "targetRef": {"kind": "ModelServing", "name": "chat"},
        "roles": {"prefill": fixed},
    }
    document = policy(disaggregatedTarget=target)
    del document["spec"]["metrics"]
    key = world.put(document)
    assert told(world, key, "ScalingActive")[1] == "FixedReplicas"


def test_it_is_looked_again_when_a_freeze_ends_or_a_sample_grows_old() -> None:
    world, _ = single()
    intents = world.view.settled.intents
    assert next_look_ms(intents, world.view) is None
    world.sampled(sample())
    assert next_look_ms(intents, world.view) == NOW_MS + STALE_MS + 1
    freeze = ControlFrozen(who="ada", why="x", until_ms=NOW_MS + 5)
    world.orders.take(CHAT, freeze, NOW_MS)
    assert next_look_ms(intents, world.view) == NOW_MS + 5


def test_a_status_of_what_is_known_is_rendered_the_same_again() -> None:
    world, key = single()
    decided(world, step(Limiter.BOUNDS, 12, 9))
    world.sampled(sample(missing=["chat-1"]))
    world.orders.take(CHAT, ControlFrozen(who="ada", why="x"), NOW_MS)
    first = world.status(key)
    assert world.status(key, NOW_MS + 1000) == first


def test_as_d22_numbers_that_come_and_go_are_no_news() -> None:
    """A status is written when something else is to be said, not with every sample."""
    world, _ = single()
    samples = world.samples
    first = MetricsSampled(policy="p", taken_at_ms=1, window_ms=1, targets=[sample()])
    assert samples.take(first) == [CHAT]
    other = sample(metrics=[gauge().model_copy(update={"value": 99.0})], ready_pods=7)
    again = first.model_copy(update={"taken_at_ms": 2, "targets": [other]})
    assert samples.take(again) == []
    silent = sample(missing=["chat-1"], problems=["pod chat-1: timed out"])
    assert samples.take(first.model_copy(update={"taken_at_ms": 3, "targets": [silent]})) == []
    blind = sample(metrics=[])
    assert samples.take(first.model_copy(update={"taken_at_ms": 4, "targets": [blind]})) == [CHAT]
