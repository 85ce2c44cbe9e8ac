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
from inferbus_contracts.resources import kinds

_BY_TOKEN: dict[str, tuple[Rule, ...]] = {
    kinds.MODEL_BOOSTER: rules_booster.RULES,
    kinds.MODEL_SERVING: rules_serving.RULES,
    kinds.AUTOSCALING_POLICY: rules_autoscaling.POLICY_RULES,
    kinds.AUTOSCALING_POLICY_BINDING: rules_autoscaling.BINDING_RULES,
    kinds.MODEL_ROUTE: rules_networking.ROUTE_RULES,
    kinds.MODEL_SERVER: rules_networking.SERVER_RULES,
    kinds.EXTERNAL_MODEL_PROVIDER: rules_provider.RULES,
    kinds.OPEN_MODEL: rules_open_model.RULES,
    kinds.PLAYGROUND: rules_inference.PLAYGROUND_RULES,
    kinds.INFERENCE_SERVICE: rules_inference.SERVICE_RULES,
    kinds.BACKEND_RUNTIME: rules_inference.RUNTIME_RULES,
}


def rules_for(token: str) -> tuple[Rule, ...]:
    """Rules of every kind, then those of the kind with this token."""
    return (*rules_metadata.RULES, *_BY_TOKEN.get(token, ()))
