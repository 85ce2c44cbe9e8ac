"""The HorizontalPodAutoscaler of a Playground.

Invariant: it exists exactly as long as the Playground has bounds and a trigger, its own or the
chosen configuration's, and Inferbus isn't asked to scale instead: never both (llmaz spec 5.1; T43,
T58, T59; rulings F9 to F12).
"""

from typing import Any

from inferbus_contracts.resources.annotations import SCALER, Scaler
from inferbus_contracts.resources.backend_runtime import HPATrigger
from inferbus_contracts.resources.inference import ElasticConfig
from inferbus_contracts.resources.kinds import HORIZONTAL_POD_AUTOSCALER, KINDS, PLAYGROUND
from inferbus_spec_watcher.expansion.conditions import Doubt
from inferbus_spec_watcher.expansion.context import Context
from inferbus_spec_watcher.expansion.manifests import manifest, present


def autoscaler(
    elastic: ElasticConfig | None, recommended: HPATrigger | None, context: Context
) -> list[dict[str, Any]]:
    """The Playground's own trigger counts before that of the chosen configuration (T43, T59)."""
    if elastic is None:
        return []
    trigger = elastic.scale_trigger.hpa if elastic.scale_trigger is not None else recommended
    if trigger is None or context.annotations.get(SCALER) == Scaler.INFERBUS:
        _warn_of_inert(trigger, context)
        return []
    most = elastic.max_replicas or max(context.settings.hpa_max_cap, elastic.min_replicas)
    spec = present(
        scaleTargetRef={
            "apiVersion": KINDS[PLAYGROUND].api_version,
            "kind": PLAYGROUND,
            "name": context.key.name,
        },
        minReplicas=elastic.min_replicas,
        maxReplicas=most,
        metrics=trigger.metrics,
        behavior=trigger.behavior,
    )
    return [manifest(context, HORIZONTAL_POD_AUTOSCALER, context.key.name, spec)]


def _warn_of_inert(trigger: HPATrigger | None, context: Context) -> None:
    if trigger is not None:
        context.doubt(
            Doubt.SCALING_INERT,
            "spec.elasticConfig.scaleTrigger",
            f"the annotation {SCALER} says that Inferbus scales, so the trigger has no effect",
            "remove the annotation, or the trigger",
        )
    elif context.annotations.get(SCALER) != Scaler.INFERBUS:
        context.doubt(
            Doubt.SCALING_INERT,
            "spec.elasticConfig",
            "neither it nor the chosen configuration has a trigger, so replicas stay",
            "add scaleTrigger.hpa with metrics",
        )
