"""What upstream's webhooks fill in."""

import pytest

DOWN = {"instances": 0, "percent": 100, "period": "1m", "selectPolicy": "Or"}
UP = {"instances": 4, "percent": 100, "period": "1m", "selectPolicy": "Or"}
PANIC_OFF = {"percent": 0, "period": "0s", "panicThresholdPercent": 200, "panicModeHold": "0s"}
WRITTEN = {"instances": 1, "percent": 100, "period": "15s", "selectPolicy": "Or"}
ALL = {
    "scaleDown": DOWN | {"stabilizationWindow": "5m"},
    "scaleUp": {"stablePolicy": UP | {"stabilizationWindow": "0s"}, "panicPolicy": PANIC_OFF},
}


@pytest.mark.parametrize(
    ("written", "filled"),
    [
        (..., ALL),
        ({}, ALL),
        ({"scaleDown": {}}, ALL | {"scaleDown": WRITTEN | {"stabilizationWindow": "5m"}}),
        (
            {"scaleDown": {"stabilizationWindow": "1m"}},
            ALL | {"scaleDown": WRITTEN | {"stabilizationWindow": "1m"}},
        ),
        ({"scaleUp": {}}, ALL),
        (
            {"scaleUp": {"stablePolicy": {"instances": 2}}},
            ALL
            | {
                "scaleUp": {
                    "stablePolicy": WRITTEN | {"instances": 2, "stabilizationWindow": "0s"},
                    "panicPolicy": PANIC_OFF,
                }
            },
        ),
        (
            {"scaleUp": {"panicPolicy": {"panicThresholdPercent": 150, "panicModeHold": "5m"}}},
            ALL
            | {
                "scaleUp": {
                    "stablePolicy": UP | {"stabilizationWindow": "0s"},
                    "panicPolicy": {
                        "percent": 1000,
                        "panicThresholdPercent": 150,
                        "panicModeHold": "5m",
                    },
                }
            },
        ),
    ],
)
def test_AS_T125_to_T127_behaviour(admitted, written, filled: dict) -> None:  # noqa: N802
    policy = admitted("AutoscalingPolicy", {"spec.behavior": written})
    assert policy.object["spec"]["behavior"] == filled


def test_compat_v01_has_the_defaults_of_the_schema_alone(admitted) -> None:
    compat = {"metadata.annotations": {"inferbus.dev/compat": "kthena-v0.1"}}
    assert "behavior" not in admitted("AutoscalingPolicy", compat).object["spec"]
    head = {"metadata.annotations": {"inferbus.dev/compat": "kthena-head"}}
    assert admitted("AutoscalingPolicy", head).object["spec"]["behavior"] == ALL


def test_time_spans_of_a_policy_are_read_in_milliseconds(admitted) -> None:
    behavior = admitted("AutoscalingPolicy").resource.spec.behavior
    assert behavior.scale_down.stabilization_window_ms == 300_000
    assert behavior.scale_up.stable_policy.period_ms == 60_000
    assert behavior.scale_up.panic_policy.period_ms == 0
    assert behavior.scale_up.panic_policy.panic_mode_hold_ms == 0


def test_a_policy_of_the_whole_booster_fills_in_settings_of_the_mix(admitted) -> None:
    policy = {"metrics": [{"metricName": "m", "targetValue": 1}]}
    spec = admitted("ModelBooster", {"spec.autoscalingPolicy": policy}).object["spec"]
    assert spec["costExpansionRatePercent"] == 200
    assert spec["backends"][0]["scaleToZeroGracePeriod"] == "30s"


def test_settings_of_the_mix_that_are_written_stay(admitted) -> None:
    policy = {"metrics": [{"metricName": "m", "targetValue": 1}]}
    changes = {
        "spec.autoscalingPolicy": policy,
        "spec.costExpansionRatePercent": 20,
        "spec.backends[0].scaleToZeroGracePeriod": "60s",
    }
    spec = admitted("ModelBooster", changes).object["spec"]
    assert spec["costExpansionRatePercent"] == 20
    assert spec["backends"][0]["scaleToZeroGracePeriod"] == "60s"


def test_without_such_a_policy_a_booster_is_left_alone(admitted) -> None:
    spec = admitted("ModelBooster").object["spec"]
    assert "costExpansionRatePercent" not in spec
    assert "scaleToZeroGracePeriod" not in spec["backends"][0]


def test_LZ_S5_the_default_revision_is_the_hubs_own(admitted) -> None:  # noqa: N802
    def revision(changes: dict) -> str:
        hub: dict = admitted("OpenModel", changes).object["spec"]["source"]["modelHub"]
        return str(hub["revision"])

    assert revision({}) == "main"
    assert revision({"spec.source.modelHub.name": "ModelScope"}) == "master"
    assert revision({"spec.source.modelHub.revision": "v1"}) == "v1"
