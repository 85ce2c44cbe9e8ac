"""What upstream's mutating webhooks fill in, on top of the schema's defaults.

Invariant: filling twice changes nothing. A block that is absent and one that is written as `{}` are
different things, because schema defaults have already filled the latter (autoscaling spec 1.7).
"""

import copy
from collections.abc import Callable
from typing import Any

from inferbus_contracts.resources.annotations import Compat, compat_of
from inferbus_contracts.resources.kinds import AUTOSCALING_POLICY, MODEL_BOOSTER, OPEN_MODEL, Kind
from inferbus_contracts.resources.open_model import ModelHubName

DEFAULT_SCALE_DOWN = {
    "instances": 0,
    "percent": 100,
    "period": "1m",
    "selectPolicy": "Or",
    "stabilizationWindow": "5m",
}
DEFAULT_STABLE_SCALE_UP = {
    "instances": 4,
    "percent": 100,
    "period": "1m",
    "selectPolicy": "Or",
    "stabilizationWindow": "0s",
}
DEFAULT_PANIC = {
    "percent": 0,
    "period": "0s",
    "panicThresholdPercent": 200,
    "panicModeHold": "0s",
}
DEFAULT_GRACE_PERIOD = "30s"
DEFAULT_COST_EXPANSION_RATE_PERCENT = 200


def with_defaults(kind: Kind, document: dict[str, Any]) -> dict[str, Any]:
    """A copy of a document, schema defaults already in it, with webhook defaults filled in."""
    filled = copy.deepcopy(document)
    fill = _FILLERS.get(kind.token)
    if fill is not None:
        fill(filled)
    return filled


def _fill_policy(document: dict[str, Any]) -> None:
    """v0.1.0 as it is installed runs no webhook, so its compat mode has no such defaults."""
    annotations = document["metadata"].get("annotations", {})
    if compat_of(annotations) is not Compat.KTHENA_V01:
        fill_behavior(document["spec"])


def fill_behavior(body: dict[str, Any]) -> None:
    """Fill the behaviour of a policy's body in place (autoscaling spec 1.7)."""
    behavior = body.setdefault("behavior", {})
    down = behavior.setdefault("scaleDown", dict(DEFAULT_SCALE_DOWN))
    down.setdefault("stabilizationWindow", DEFAULT_SCALE_DOWN["stabilizationWindow"])
    up = behavior.setdefault("scaleUp", {})
    stable = up.setdefault("stablePolicy", dict(DEFAULT_STABLE_SCALE_UP))
    stable.setdefault("stabilizationWindow", DEFAULT_STABLE_SCALE_UP["stabilizationWindow"])
    up.setdefault("panicPolicy", dict(DEFAULT_PANIC))


def _fill_booster(document: dict[str, Any]) -> None:
    """Settings of a mix, when one policy scales all backends (modelbooster spec 1.6)."""
    spec = document["spec"]
    if "autoscalingPolicy" not in spec:
        return
    spec.setdefault("costExpansionRatePercent", DEFAULT_COST_EXPANSION_RATE_PERCENT)
    single = [spec["backend"]] if "backend" in spec else []
    for backend in (*single, *spec.get("backends", [])):
        backend.setdefault("scaleToZeroGracePeriod", DEFAULT_GRACE_PERIOD)


def _fill_open_model(document: dict[str, Any]) -> None:
    """The default branch of the hub (llmaz spec 1.1, defect S5)."""
    hub = document["spec"]["source"].get("modelHub")
    if hub is not None:
        hub.setdefault("revision", ModelHubName(hub["name"]).default_revision)


_FILLERS: dict[str, Callable[[dict[str, Any]], None]] = {
    AUTOSCALING_POLICY: _fill_policy,
    MODEL_BOOSTER: _fill_booster,
    OPEN_MODEL: _fill_open_model,
}
