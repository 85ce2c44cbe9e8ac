"""Policies of a ModelBooster as objects: what v0.1.0 calls AutoscalingPolicy and its binding.

Invariant: a policy exists as long as the booster has it, and its metrics are read where the
backend's sidecar shows them (modelbooster spec 2.13; ruling F3; defect MB_7_2 of the absent rate).
"""

from collections.abc import Sequence
from typing import Any

from inferbus_contracts.admission.defaults import DEFAULT_COST_EXPANSION_RATE_PERCENT
from inferbus_contracts.resources.autoscaling import PolicyBody
from inferbus_contracts.resources.booster import ModelBooster
from inferbus_contracts.resources.kinds import (
    AUTOSCALING_POLICY,
    AUTOSCALING_POLICY_BINDING,
    MODEL_SERVING,
)
from inferbus_contracts.resources.networking import InferenceEngine
from inferbus_spec_watcher.expansion.backend_environment import sidecar_of
from inferbus_spec_watcher.expansion.backend_plan import BackendPlan, common_labels
from inferbus_spec_watcher.expansion.backend_routing import ENTRY, ROLE
from inferbus_spec_watcher.expansion.booster_child import booster_child
from inferbus_spec_watcher.expansion.context import Context


def scaling_objects(
    booster: ModelBooster, plans: Sequence[BackendPlan], context: Context
) -> list[dict[str, Any]]:
    """The policies, then their bindings; none where nothing is to be scaled."""
    if booster.spec.autoscaling_policy is not None:
        name, labels = booster.metadata.name, common_labels(booster, context.uid)
        mix = {
            "costExpansionRatePercent": _rate(booster),
            "params": [
                {**_scaled(plan, context), "cost": plan.backend.scaling_cost} for plan in plans
            ],
        }
        pair = _Pair(name, labels, context)
        return [pair.policy(booster.spec.autoscaling_policy), pair.binding(optimizer=mix)]
    bound = [
        (plan, plan.backend.autoscaling_policy)
        for plan in plans
        if plan.backend.autoscaling_policy is not None
    ]
    pairs = [(_Pair(plan.name, plan.pod_labels, context), plan, body) for plan, body in bound]
    return [
        *(pair.policy(body) for pair, _, body in pairs),
        *(pair.binding(scaling=_scaled(plan, context)) for pair, plan, _ in pairs),
    ]


class _Pair:
    """A policy and its binding, which share a name."""

    def __init__(self, name: str, labels: dict[str, str], context: Context) -> None:
        self._name = name
        self._labels = labels
        self._context = context

    def policy(self, body: PolicyBody) -> dict[str, Any]:
        return self._child(AUTOSCALING_POLICY, body.to_dict())

    def binding(
        self, *, optimizer: dict[str, Any] | None = None, scaling: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        configuration = {"optimizerConfiguration": optimizer, "scalingConfiguration": scaling}
        spec = {"policyRef": {"name": self._name}} | {
            field: value for field, value in configuration.items() if value is not None
        }
        return self._child(AUTOSCALING_POLICY_BINDING, spec)

    def _child(self, kind: str, spec: dict[str, Any]) -> dict[str, Any]:
        return booster_child(self._context, kind, self._name, spec, self._labels)


def _rate(booster: ModelBooster) -> int:
    rate = booster.spec.cost_expansion_rate_percent
    return DEFAULT_COST_EXPANSION_RATE_PERCENT if rate is None else rate


def _scaled(plan: BackendPlan, context: Context) -> dict[str, Any]:
    least, most = plan.backend.bounds
    return {
        "target": {
            "targetRef": {"kind": MODEL_SERVING, "name": plan.name},
            "additionalMatchLabels": _measured(plan),
            "metricEndpoint": _endpoint(plan, context),
        },
        "minReplicas": least,
        "maxReplicas": most,
    }


def _measured(plan: BackendPlan) -> dict[str, str]:
    """The pods that show metrics: entry pods, of the one role or of all (modelbooster spec 7.6)."""
    role = plan.answering_role or plan.role_of(plan.server)
    several = plan.backend.type.disaggregated and plan.answering_role is None
    return {ENTRY: "true"} if several else {ENTRY: "true", ROLE: role}


def _endpoint(plan: BackendPlan, context: Context) -> dict[str, Any]:
    """The sidecar's page, or the engine's own where there is no sidecar (ruling F3)."""
    sidecar = sidecar_of(plan, context)
    has_sidecar = plan.engine is not InferenceEngine.MINDIE
    return {"port": sidecar.port if has_sidecar else plan.port, "uri": sidecar.page}
