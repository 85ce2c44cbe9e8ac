"""Status of policies and bindings, row by row (autoscaling spec 1.5, 4.4)."""

from dataclasses import replace
from typing import Any

import pytest
from status_world import NOW_MS, World

from inferbus_contracts.events.metrics import MetricsAssessed
from inferbus_contracts.events.scaling import Limiter, LimiterStep, Mode
from inferbus_contracts.keys import ObjectKey
from inferbus_spec_watcher.status.view import Scaled
from tests.support.platform import model_manifests

GROUP = "workload.serving.volcano.sh/v1alpha1"
CHAT = ObjectKey("ModelServing", "default", "chat")
OTHER = ObjectKey("ModelServing", "default", "other")
METRICS = [{"metricName": "vllm:num_requests_running", "targetValue": "2"}]


def document(kind: str, name: str, spec: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    return {
        "apiVersion": GROUP,
        "kind": kind,
        "metadata": {"name": name, **metadata},
        "spec": spec,
    }


def policy(name: str = "scale", **spec: Any) -> dict[str, Any]:
    return document("AutoscalingPolicy", name, {"metrics": METRICS, **spec})


def bounds(name: str, **more: Any) -> dict[str, Any]:
    target = {"targetRef": {"kind": "ModelServing", "name": name}}
    return {"target": target, "minReplicas": 1, "maxReplicas": 9, **more}


def binding(name: str = "scale", created: str = "", **target: Any) -> dict[str, Any]:
    spec = {"policyRef": {"name": "scale"}, **(target or {"homogeneousTarget": bounds("chat")})}
    metadata = {"creationTimestamp": created} if created else {}
    return document("AutoscalingPolicyBinding", name, spec, **metadata)


def serving(name: str, replicas: int = 1, **roles: int) -> dict[str, Any]:
    """A workload, of one role or of several with their replicas."""
    workload, _, _ = model_manifests(name, replicas=replicas)
    template = workload["spec"]["template"]
    (only,) = template["roles"]
    template["roles"] = [
        {**only, "name": role, "replicas": count} for role, count in roles.items()
    ] or [only]
    return workload


def single(replicas: int = 3) -> tuple[World, ObjectKey]:
    world = World()
    world.put(policy())
    world.put(serving("chat", replicas))
    return world, world.put(binding())


def test_a_policy_that_only_bindings_refer_to_says_that_it_is_accepted() -> None:
    world, _ = single()
    key = ObjectKey("AutoscalingPolicy", "default", "scale")
    assert world.conditions(key) == {"Accepted": ("True", "Accepted")}
    assert world.status(key).keys() == {"conditions", "observedGeneration"}


def test_a_binding_names_its_target_from_how_many_to_how_many() -> None:
    world, key = single(replicas=3)
    assert world.conditions(key) == {
        "Accepted": ("True", "Accepted"),
        "Ready": ("True", "Reconciled"),
        "TargetFound": ("True", "TargetFound"),
        "AbleToScale": ("True", "ReadyForNewScale"),
        "ScalingActive": ("False", "NoSamples"),
        "ScalingLimited": ("False", "DesiredWithinRange"),
    }
    target = {"name": "chat", "currentReplicas": 3, "desiredReplicas": 3}
    assert world.status(key)["homogeneousStatus"] == target
    world.decided(CHAT, 5, Mode.PANIC)
    decided = target | {"desiredReplicas": 5, "mode": "Panic"}
    assert world.status(key)["homogeneousStatus"] == decided
    world.decided(CHAT, 3, Mode.STABLE)
    assert world.status(key)["homogeneousStatus"]["mode"] == "Stable"


def test_decisions_about_a_namesake_before_the_target_do_not_count() -> None:
    world, key = single(replicas=3)
    world.decided(CHAT, 5, uid="the one before")
    world.scaled[CHAT] = Scaled("the one before", NOW_MS)
    target = {"name": "chat", "currentReplicas": 3, "desiredReplicas": 3}
    assert world.status(key)["homogeneousStatus"] == target


def test_what_keeps_samples_from_being_whole_stands_in_a_condition_until_it_is_over() -> None:
    world, key = single()
    uid = world.objects[key].uid
    assert "MetricsWhole" not in world.conditions(key)
    bad = "ModelServing/default/chat: pod chat-0: port 8000/metrics: HTTP status 500"
    world.assessed[key] = MetricsAssessed(policy_uid=uid, problems=[bad, "another"])
    assert world.conditions(key)["MetricsWhole"] == ("False", "SamplesIncomplete")
    (told,) = [one for one in world.status(key)["conditions"] if one["type"] == "MetricsWhole"]
    assert told["message"] == f"{bad}; another"
    policy_key = ObjectKey("AutoscalingPolicy", "default", "scale")
    assert world.conditions(policy_key)["MetricsWhole"] == ("False", "SamplesIncomplete")
    assert f"{key}: {bad}" in str(world.status(policy_key)["conditions"])
    world.assessed[key] = MetricsAssessed(policy_uid=uid)
    assert world.conditions(key)["MetricsWhole"] == ("True", "Sampled")
    world.assessed[key] = MetricsAssessed(policy_uid="the one before", problems=[bad])
    assert "MetricsWhole" not in world.conditions(key)


def test_the_last_change_is_told_with_its_time_and_stays_told() -> None:
    """After a restart the last answer may be a refusal: what stands in the status is all there
    is."""
    world, key = single()
    world.scaled[CHAT] = Scaled(str(CHAT), NOW_MS)
    assert world.status(key)["homogeneousStatus"]["lastScaleTime"] == "2023-11-14T22:13:20Z"
    world.scaled.clear()
    assert world.status(key)["homogeneousStatus"]["lastScaleTime"] == "2023-11-14T22:13:20Z"


def test_the_time_of_one_target_is_not_given_to_the_next() -> None:
    world, key = single()
    world.scaled[CHAT] = Scaled(str(CHAT), NOW_MS)
    kept = world.status(key)
    world.put(serving("other"))
    world.put(binding(homogeneousTarget=bounds("other")), status=kept)
    assert "lastScaleTime" not in world.status(key)["homogeneousStatus"]


def test_the_time_of_a_namesake_before_the_target_is_not_kept() -> None:
    world, key = single()
    world.scaled[CHAT] = Scaled(str(CHAT), NOW_MS)
    world.status(key)
    reborn = serving("chat")
    for second, kept in (("20", True), ("21", False)):
        reborn["metadata"]["creationTimestamp"] = f"2023-11-14T22:13:{second}.900Z"
        world.put(reborn, uid=f"the one of {second}")
        assert ("lastScaleTime" in world.status(key)["homogeneousStatus"]) is kept


def test_a_missing_target_is_told_and_found_when_it_comes() -> None:
    world, key = single()
    del world.objects[CHAT]
    told = world.conditions(key)
    assert told["Ready"] == ("False", "ReconcileFailed")
    assert told["TargetFound"] == ("False", "TargetInvalid")
    messages = {one["type"]: one["message"] for one in world.status(key)["conditions"]}
    assert str(CHAT) in messages["TargetFound"]
    world.put(serving("chat"))
    assert world.conditions(key)["TargetFound"] == ("True", "TargetFound")
    assert world.conditions(key)["Ready"] == ("True", "Reconciled")


def test_a_binding_whose_policy_went_says_so_and_keeps_what_is_known_of_its_target() -> None:
    world, key = single()
    world.status(key)
    del world.objects[ObjectKey("AutoscalingPolicy", "default", "scale")]
    told = world.conditions(key)
    assert told["Ready"] == ("False", "ReconcileFailed")
    assert told["TargetFound"] == ("True", "TargetFound")
    assert "homogeneousStatus" not in world.status(key)


def test_as_d23_of_two_on_one_target_the_younger_says_that_it_lost() -> None:
    world, key = single()
    old, young = "2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z"
    world.put(binding(created=old))
    rival = world.put(binding("rival", created=young))
    assert world.conditions(key)["Ready"] == ("True", "Reconciled")
    assert world.conditions(rival)["Ready"] == ("False", "ReconcileFailed")
    ready = next(one for one in world.status(rival)["conditions"] if one["type"] == "Ready")
    assert str(key) in ready["message"]
    assert "homogeneousStatus" not in world.status(rival)
    del world.objects[key]
    assert world.conditions(rival)["Ready"] == ("True", "Reconciled")
    assert "homogeneousStatus" in world.status(rival)


def test_a_mix_tells_every_target_and_keeps_each_time_by_name() -> None:
    world, _ = single()
    world.put(serving("other", 2))
    params = [bounds("chat", cost=1), bounds("other", cost=2)]
    key = world.put(binding(heterogeneousTarget={"params": params}))
    world.decided(OTHER, 4, None)
    world.scaled[OTHER] = Scaled(str(OTHER), NOW_MS)
    time = "2023-11-14T22:13:20Z"
    told = [
        {"name": "chat", "currentReplicas": 3, "desiredReplicas": 3},
        {"name": "other", "currentReplicas": 2, "desiredReplicas": 4, "lastScaleTime": time},
    ]
    assert world.status(key)["heterogeneousStatus"] == told
    world.scaled.clear()
    assert world.status(key)["heterogeneousStatus"] == told


def roles(prefill: int, decode: int, *, ratio: bool = True) -> tuple[World, ObjectKey]:
    """A policy after v1.0.0 that scales two roles of one workload."""
    sources: dict[str, Any] = {METRICS[0]["metricName"]: {"pod": {}}}
    scaling = {"minReplicas": 0, "maxReplicas": 9, "metricSources": sources}
    target: dict[str, Any] = {
        "targetRef": {"kind": "ModelServing", "name": "chat"},
        "roles": {"prefill": scaling, "decode": scaling},
    }
    if ratio:
        target["ratioConstraint"] = {
            "numeratorRole": "prefill",
            "denominatorRole": "decode",
            "minRatio": "0.25",
            "maxRatio": "1",
        }
    world = World()
    world.put(serving("chat", prefill=prefill, decode=decode))
    return world, world.put(policy(disaggregatedTarget=target))


def test_roles_are_told_by_name_and_the_ratio_with_them() -> None:
    world, key = roles(1, 2)
    world.decided(CHAT._replace(role="decode"), 4)
    assert world.status(key)["disaggregatedStatus"] == {
        "roles": [
            {"name": "decode", "currentReplicas": 2, "desiredReplicas": 4, "mode": "Stable"},
            {"name": "prefill", "currentReplicas": 1, "desiredReplicas": 1},
        ],
        "ratioStatus": {
            "numeratorRole": "prefill",
            "denominatorRole": "decode",
            "currentRatio": "0.5",
        },
        "ratioAdjusted": False,
    }
    assert world.conditions(key)["Ready"] == ("True", "Reconciled")


def in_proportion(world: World, role: str, before: int, after: int, detail: str = "") -> None:
    """A decision about a role that the ratio had the last word in."""
    target = CHAT._replace(role=role)
    step = LimiterStep(name=Limiter.RATIO, before=before, after=after, detail=detail)
    world.decided(target, after)
    world.wanted[target] = replace(world.wanted[target], steps=(step,))


def test_as_t101_a_role_that_grew_for_the_other_s_sake_is_told_as_adjusted() -> None:
    world, key = roles(1, 2)
    in_proportion(world, "prefill", 6, 6)
    in_proportion(world, "decode", 2, 6)
    before = world.status(key)["disaggregatedStatus"]
    assert [(one["currentReplicas"], one["desiredReplicas"]) for one in before["roles"]] == [
        (2, 6),
        (1, 6),
    ]
    assert before["ratioAdjusted"] is True
    world.put(serving("chat", prefill=6, decode=6))
    after = world.status(key)["disaggregatedStatus"]
    assert after["ratioStatus"]["currentRatio"] == "1"
    in_proportion(world, "decode", 6, 6)
    assert world.status(key)["disaggregatedStatus"]["ratioAdjusted"] is False


VIOLATED = "RatioConstraintViolated"


def test_roles_out_of_proportion_are_a_condition_until_they_are_in_it_again() -> None:
    world, key = roles(1, 8)
    assert world.conditions(key)[VIOLATED] == ("True", "OutOfProportion")
    in_proportion(world, "prefill", 1, 1, "prefill/decode 0.25 to 1: 1/8, as no pair does")
    in_proportion(world, "decode", 8, 8)
    told = next(one for one in world.status(key)["conditions"] if one["type"] == VIOLATED)
    assert told["message"] == (
        "prefill/decode is 1/8, outside of 0.25 to 1 "
        "(prefill/decode 0.25 to 1: 1/8, as no pair does)"
    )
    in_proportion(world, "prefill", 1, 2)
    assert world.conditions(key)[VIOLATED] == ("False", "InProportion")


def test_advice_does_not_bring_roles_into_proportion() -> None:
    world, key = roles(1, 8)
    in_proportion(world, "prefill", 1, 2)
    target = CHAT._replace(role="prefill")
    world.wanted[target] = replace(world.wanted[target], applies=False)
    assert world.conditions(key)[VIOLATED] == ("True", "OutOfProportion")


def test_a_role_that_is_gone_alone_is_out_of_proportion_and_both_gone_are_not() -> None:
    for pair, violated in (((0, 3), "True"), ((3, 0), "True"), ((0, 0), "False")):
        world, key = roles(*pair)
        assert world.conditions(key)[VIOLATED][0] == violated


@pytest.mark.parametrize(
    ("prefill", "decode", "ratio"),
    [
        (1, 2, "0.5"),
        (3, 3, "1"),
        (4, 13, "0.3076923076923077"),
        (20, 2, "10"),
        (0, 3, "0"),
        (3, 0, ""),
        (0, 0, ""),
    ],
)
def test_the_ratio_is_the_shortest_decimal(prefill: int, decode: int, ratio: str) -> None:
    world, key = roles(prefill, decode)
    status = world.status(key)["disaggregatedStatus"]["ratioStatus"]
    assert status["currentRatio"] == ratio


def test_without_a_constraint_no_ratio_is_told() -> None:
    world, key = roles(1, 9, ratio=False)
    assert world.status(key)["disaggregatedStatus"].keys() == {"roles"}
    assert VIOLATED not in world.conditions(key)


def test_a_constraint_that_is_taken_away_is_violated_no_more() -> None:
    world, key = roles(1, 8)
    before = world.status(key)
    other, same = roles(1, 8, ratio=False)
    world.put(other.objects[same].object, status=before, generation=2)
    assert VIOLATED not in world.conditions(key)


def test_a_role_that_is_missing_is_a_target_that_is_missing() -> None:
    world, key = roles(1, 2)
    world.put(serving("chat", prefill=1))
    assert world.conditions(key)["TargetFound"] == ("False", "TargetInvalid")
    assert [
        one["currentReplicas"] for one in world.status(key)["disaggregatedStatus"]["roles"]
    ] == [
        0,
        1,
    ]


def test_the_form_of_an_earlier_spec_goes() -> None:
    world, key = single()
    world.put(serving("other"))
    before = world.status(key)
    assert "homogeneousStatus" in before
    params = [bounds("chat", cost=1), bounds("other", cost=2)]
    world.put(binding(heterogeneousTarget={"params": params}), status=before, generation=2)
    after = world.status(key)
    assert "homogeneousStatus" not in after
    assert len(after["heterogeneousStatus"]) == 2
    assert after["observedGeneration"] == 2


def test_a_policy_that_scales_nothing_itself_any_more_says_nothing_of_targets() -> None:
    world, key = roles(1, 2)
    before = world.status(key)
    world.put(policy(), status=before, generation=2)
    assert world.conditions(key) == {"Accepted": ("True", "Accepted")}
    assert "disaggregatedStatus" not in world.status(key)
