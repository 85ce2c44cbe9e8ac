"""How a ModelBooster is reached: a ModelServer for each backend, and one ModelRoute.

Invariant: a ModelServer selects the entry pods of its own backend and no others (modelbooster spec
2.11, 2.12; defect MB_7_1_4).
"""

from collections.abc import Sequence
from typing import Any

from inferbus_contracts.admission.rules_connector import CONNECTOR_TYPES, transfer_config
from inferbus_contracts.resources.annotations import OWNED_BY
from inferbus_contracts.resources.booster import BackendType, ModelBooster, WorkerType
from inferbus_contracts.resources.kinds import MODEL_ROUTE, MODEL_SERVER
from inferbus_spec_watcher.expansion.backend_plan import BackendPlan, common_labels, model_of
from inferbus_spec_watcher.expansion.booster_child import booster_child
from inferbus_spec_watcher.expansion.context import Context
from inferbus_spec_watcher.expansion.manifests import present
from inferbus_spec_watcher.expansion.routing import RETRY

SERVING = "modelserving.volcano.sh"
ROLE = f"{SERVING}/role"
ENTRY = f"{SERVING}/entry"
GROUP_NAME = f"{SERVING}/group-name"


def model_server(plan: BackendPlan, context: Context) -> dict[str, Any]:
    """The pods of a backend that answer requests."""
    labels = {**plan.selector, ENTRY: "true"}
    if plan.answering_role is not None:
        labels[ROLE] = plan.answering_role
    connector = _connector(plan)
    spec = present(
        model=plan.served_model,
        inferenceEngine=plan.engine.value,
        workloadSelector=present(matchLabels=labels, pdGroup=_prefill_and_decode(plan)),
        workloadPort={"port": plan.port},
        trafficPolicy={"retry": RETRY},
        kvConnector={"type": connector} if connector else None,
    )
    return booster_child(context, MODEL_SERVER, plan.name, spec, plan.pod_labels)


def model_route(
    booster: ModelBooster, plans: Sequence[BackendPlan], context: Context
) -> dict[str, Any]:
    """The rules that lead to the backends, and to those that have an adapter."""
    adapters = sorted({one.name for plan in plans for one in plan.backend.lora_adapters})
    match = booster.spec.model_match.to_dict() if booster.spec.model_match else {}
    several = len(plans) > 1
    default = _for_model(match, model_of(booster)) if several else match
    rules = [_rule("default", default, plans)]
    for name in adapters if several else ():
        owning = [plan for plan in plans if _has_adapter(plan, name)]
        rules.append(_rule(name, _for_model({}, name), owning))
    spec = present(modelName=model_of(booster), loraAdapters=adapters, rules=rules)
    owner = {OWNED_BY: booster.spec.owner} if booster.spec.owner else {}
    labels = common_labels(booster, context.uid)
    return booster_child(context, MODEL_ROUTE, booster.metadata.name, spec, labels, owner)


def _has_adapter(plan: BackendPlan, name: str) -> bool:
    return any(adapter.name == name for adapter in plan.backend.lora_adapters)


def _for_model(match: dict[str, Any], model: str) -> dict[str, Any]:
    return {**match, "body": {"model": model}}


def _rule(name: str, match: dict[str, Any], plans: Sequence[BackendPlan]) -> dict[str, Any]:
    targets = [
        {"modelServerName": plan.name, "weight": plan.backend.route_weight} for plan in plans
    ]
    return present(name=name, modelMatch=match, targetModels=targets)


def _prefill_and_decode(plan: BackendPlan) -> dict[str, Any] | None:
    if plan.backend.type is not BackendType.VLLM_DISAGGREGATED:
        return None
    return {
        "groupKey": GROUP_NAME,
        "prefillLabels": {ROLE: WorkerType.PREFILL.value},
        "decodeLabels": {ROLE: WorkerType.DECODE.value},
    }


def _connector(plan: BackendPlan) -> str | None:
    """How the cache is handed over; nothing unless both sides have a connector (modelbooster spec
    2.6), whatever their order."""
    if plan.backend.type is not BackendType.VLLM_DISAGGREGATED:
        return None
    types = []
    for kind in (WorkerType.PREFILL, WorkerType.DECODE):
        _, content = transfer_config(plan.workers[kind])
        types.append(CONNECTOR_TYPES.get(str(content.get("kv_connector", ""))))
    return types[0] if all(types) else None
