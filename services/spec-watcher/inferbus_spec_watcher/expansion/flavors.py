"""Flavors: what a pod asks for, and which nodes it may and would rather run on.

The reference leaves nodes to a scheduler of its own; here any scheduler and autoscaler of nodes
understands it (defect LZ_D2). Invariant: a pod is never put on a node of a flavor that was not
claimed, and the order of preference is that of the flavors (llmaz spec 2.6).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from inferbus_contracts.errors import ErrorCode, Problem
from inferbus_contracts.resources.inference import MODEL_RUNNER
from inferbus_contracts.resources.open_model import Flavor, OpenModel
from inferbus_contracts.resources.scalars import parse_quantity
from inferbus_spec_watcher.expansion.accelerators import accelerators
from inferbus_spec_watcher.expansion.conditions import BlockedError, Doubt, Obstacle
from inferbus_spec_watcher.expansion.context import Context
from inferbus_spec_watcher.expansion.pod_shapes import PREFERRED_NODES, REQUIRED_NODES

WEIGHTS = (34, 21, 13, 8, 5, 3, 2, 1)
"""Of the flavors in order, as the reference's scheduler plugin has them (ruling T51 to T53)."""

INSTANCE_TYPE_PARAMETER = "INSTANCE-TYPE"
INSTANCE_TYPE_LABEL = "node.kubernetes.io/instance-type"


@dataclass(frozen=True, kw_only=True)
class Placement:
    """What flavors ask of a pod."""

    limits: Mapping[str, Any] = field(default_factory=dict)
    required: Sequence[Mapping[str, Any]] = ()
    """core/v1 NodeSelectorTerms, one of which must hold; empty allows any node."""
    preferred: Sequence[Mapping[str, Any]] = ()
    """core/v1 PreferredSchedulingTerms."""


def placement(model: OpenModel, wanted: Sequence[str], context: Context) -> Placement:
    """The placement of pods for the main model.

    `wanted` names the claimed flavors, in order; empty means all, in the model's order. Raises
    `BlockedError` for a name that the model doesn't have.
    """
    flavors = _alike(_chosen(model, wanted, context), context)
    alternatives = [_terms(flavor) for flavor in flavors]
    anywhere = not all(alternatives)
    weighted = zip(alternatives, WEIGHTS, strict=False)
    return Placement(
        limits=flavors[0].limits if flavors else {},
        required=() if anywhere else [term for terms in alternatives for term in terms],
        preferred=()
        if anywhere or len(flavors) < 2
        else [
            {"weight": weight, "preference": term} for terms, weight in weighted for term in terms
        ],
    )


def placed(pod_spec: Mapping[str, Any], where: Placement) -> dict[str, Any]:
    """A copy of a pod's spec that asks for the flavors' amounts and nodes."""
    spec = dict(pod_spec)
    spec["containers"] = [_limited(one, where) for one in spec.get("containers") or ()]
    if where.required:
        spec["affinity"] = _drawn(spec.get("affinity") or {}, where)
    return spec


def tolerating(pod_spec: Mapping[str, Any], own: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """A copy of a pod's spec that tolerates `own`, and the taints of the accelerators it asks for,
    which are called like them (ruling "tolerations")."""
    resources = [container.get("resources") for container in pod_spec.get("containers") or ()]
    names = sorted({name for one in resources for name in accelerators(one)})
    taints = [{"key": name, "operator": "Exists", "effect": "NoSchedule"} for name in names]
    tolerations = list(pod_spec.get("tolerations") or ())
    for toleration in (*own, *taints):
        if toleration not in tolerations:
            tolerations.append(dict(toleration))
    return {**pod_spec, "tolerations": tolerations} if tolerations else dict(pod_spec)


def _chosen(model: OpenModel, wanted: Sequence[str], context: Context) -> list[Flavor]:
    config = model.spec.inference_config
    known = {flavor.name: flavor for flavor in (config.flavors if config is not None else ())}
    missing = [name for name in wanted if name not in known]
    if missing:
        raise BlockedError(
            Obstacle.FLAVOR_MISSING,
            Problem(
                code=ErrorCode.MISSING_REFERENCE,
                message=f"the OpenModel {model.metadata.name!r} has no such flavor",
                object=str(context.key),
                field="spec.modelClaims.inferenceFlavors",
                value=", ".join(missing),
                remedy=f"use one of {', '.join(known)}" if known else "claim no flavor",
            ),
        )
    return [known[name] for name in wanted] or list(known.values())


def _alike(flavors: Sequence[Flavor], context: Context) -> list[Flavor]:
    """The flavors that ask for as much as the first: one template can't ask for two amounts."""
    alike = [flavor for flavor in flavors if _amounts(flavor) == _amounts(flavors[0])]
    others = [flavor.name for flavor in flavors if flavor not in alike]
    if others:
        context.doubt(
            Doubt.FLAVORS_DIFFER,
            "spec.modelClaims.inferenceFlavors",
            f"flavors ask for other amounts than {flavors[0].name!r}, and are not used",
            "claim flavors with equal limits, or serve the others by an object of their own",
            value=", ".join(others),
        )
    return alike


def _amounts(flavor: Flavor) -> dict[str, Any]:
    return {name: parse_quantity(amount) for name, amount in flavor.limits.items()}


def _terms(flavor: Flavor) -> list[dict[str, Any]]:
    """Alternatives: the flavor's labels, or its instance types (ruling "INSTANCE-TYPE")."""
    terms = []
    if flavor.node_selector:
        terms.append(
            [_is_in(name, [value]) for name, value in sorted(flavor.node_selector.items())]
        )
    types = flavor.params.get(INSTANCE_TYPE_PARAMETER, "")
    if types.strip():
        terms.append([_is_in(INSTANCE_TYPE_LABEL, [one.strip() for one in types.split(",")])])
    return [{"matchExpressions": expressions} for expressions in terms]


def _is_in(label: str, values: Sequence[str]) -> dict[str, Any]:
    return {"key": label, "operator": "In", "values": list(values)}


def _limited(container: Mapping[str, Any], where: Placement) -> dict[str, Any]:
    if container.get("name") != MODEL_RUNNER or not where.limits:
        return dict(container)
    resources = container.get("resources") or {}
    amounts = {
        part: {**(resources.get(part) or {}), **where.limits} for part in ("requests", "limits")
    }
    return {**container, "resources": {**resources, **amounts}}


def _drawn(affinity: Mapping[str, Any], where: Placement) -> dict[str, Any]:
    """Each of the pod's own alternatives holds together with each of the flavors'."""
    nodes = dict(affinity.get("nodeAffinity") or {})
    own = (nodes.get(REQUIRED_NODES) or {}).get("nodeSelectorTerms") or [{}]
    nodes[REQUIRED_NODES] = {
        "nodeSelectorTerms": [_both(mine, term) for mine in own for term in where.required]
    }
    if where.preferred:
        nodes[PREFERRED_NODES] = [*(nodes.get(PREFERRED_NODES) or ()), *where.preferred]
    return {**affinity, "nodeAffinity": nodes}


def _both(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    key = "matchExpressions"
    return {**one, key: [*(one.get(key) or ()), *other[key]]}
