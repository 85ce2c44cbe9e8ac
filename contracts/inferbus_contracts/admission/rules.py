"""All rules, by the token of the kind they are for.

Invariant: `rules_for` gives every rule there is for a kind, and a rule's id is unique among them.
"""

from inferbus_contracts.admission import (
    rules_autoscaling,
    rules_booster,
    rules_inference,
    rules_metadata,
    rules_networking,
    rules_open_model,
    rules_provider,
    rules_serving,
)
from inferbus_contracts.admission.rule import Rule

_BY_TOKEN: dict[str, tuple[Rule, ...]] = {
    "ModelBooster": rules_booster.RULES,
    "ModelServing": rules_serving.RULES,
    "AutoscalingPolicy": rules_autoscaling.POLICY_RULES,
    "AutoscalingPolicyBinding": rules_autoscaling.BINDING_RULES,
    "ModelRoute": rules_networking.ROUTE_RULES,
    "ModelServer": rules_networking.SERVER_RULES,
    "ExternalModelProvider": rules_provider.RULES,
    "OpenModel": rules_open_model.RULES,
    "Playground": rules_inference.PLAYGROUND_RULES,
    "Service": rules_inference.SERVICE_RULES,
    "BackendRuntime": rules_inference.RUNTIME_RULES,
}


def rules_for(token: str) -> tuple[Rule, ...]:
    """Rules of every kind, then those of the kind with this token."""
    return (*rules_metadata.RULES, *_BY_TOKEN.get(token, ()))
