"""CustomResourceDefinitions of all kinds that aren't Kubernetes' own.

Invariant: groups, versions, plurals, scopes and subresources are those of the registry of kinds,
the fields those of the models; nothing about a kind is said a second time.
"""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from pydantic import BaseModel

from inferbus_contracts.manifests import (
    refine_booster,
    refine_llmaz,
    refine_networking,
    refine_scaling,
    refine_serving,
    refine_status,
)
from inferbus_contracts.manifests.columns import COLUMNS, Column
from inferbus_contracts.manifests.refinement import CelRule, Refinement, Schema
from inferbus_contracts.manifests.structural import explained, structural_schema
from inferbus_contracts.resources import kinds
from inferbus_contracts.resources.kinds import KINDS, Kind
from inferbus_contracts.resources.statuses import STATUSES

CATEGORY = "inferbus"
"""`kubectl get inferbus` lists objects of all kinds."""

DEFINED = tuple(kind for kind in KINDS.values() if not kind.supporting)
"""The kinds that have a definition."""

_REFINEMENTS: Mapping[type[BaseModel], Refinement] = {
    **refine_status.REFINEMENTS,
    **refine_scaling.REFINEMENTS,
    **refine_serving.REFINEMENTS,
    **refine_booster.REFINEMENTS,
    **refine_networking.REFINEMENTS,
    **refine_llmaz.REFINEMENTS,
}

_OBJECT_RULES: Mapping[str, tuple[CelRule, ...]] = {
    kinds.MODEL_SERVING: refine_serving.RULES,
    kinds.MODEL_BOOSTER: refine_booster.RULES,
    kinds.OPEN_MODEL: (refine_llmaz.NAME_IS_LABEL,),
    kinds.PLAYGROUND: (refine_llmaz.NAME_IS_LABEL,),
    kinds.INFERENCE_SERVICE: (refine_llmaz.NAME_IS_LABEL,),
}
"""By the kind's token: rules that span the name and the spec."""

_IDENTITY: Mapping[str, Schema] = {
    "apiVersion": {"type": "string", "description": "Group and version of this kind."},
    "kind": {"type": "string", "description": "Name of this kind."},
    "metadata": {"type": "object"},
}


def definition(kind: Kind) -> dict[str, Any]:
    """The CustomResourceDefinition of a kind."""
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{kind.plural}.{kind.group}",
            "labels": {"app.kubernetes.io/part-of": "inferbus"},
        },
        "spec": {
            "group": kind.group,
            "scope": "Namespaced" if kind.namespaced else "Cluster",
            "names": _names(kind),
            "versions": [_version(kind)],
        },
    }


def object_schema(kind: Kind) -> Schema:
    """The schema of whole objects of a kind."""
    spec_model = kind.model.model_fields["spec"].annotation
    assert isinstance(spec_model, type), "every kind with a definition has a model of its spec"
    spec = structural_schema(spec_model, _REFINEMENTS)
    status = structural_schema(STATUSES[kind.token], _REFINEMENTS)
    schema: Schema = {
        "type": "object",
        "description": explained(kind.model.__doc__ or ""),
        "required": ["spec"],
        "properties": {**_IDENTITY, "spec": spec, "status": status},
    }
    return Refinement(rules=_OBJECT_RULES.get(kind.token, ())).applied_to(schema)


def _names(kind: Kind) -> dict[str, Any]:
    return {
        "kind": kind.kind,
        "listKind": f"{kind.kind}List",
        "plural": kind.plural,
        "singular": kind.kind.lower(),
        "shortNames": list(kind.short_names),
        "categories": [CATEGORY],
    }


def _version(kind: Kind) -> dict[str, Any]:
    subresources: dict[str, Any] = {"status": {}}
    if kind.scale is not None:
        subresources["scale"] = {
            "specReplicasPath": kind.scale.spec,
            "statusReplicasPath": kind.scale.status,
            "labelSelectorPath": kind.scale.selector,
        }
    return {
        "name": kind.version,
        "served": True,
        "storage": True,
        "subresources": subresources,
        "additionalPrinterColumns": [_column(column) for column in COLUMNS[kind.token]],
        "schema": {"openAPIV3Schema": object_schema(kind)},
    }


def _column(column: Column) -> dict[str, Any]:
    told = asdict(column)
    path = told.pop("path")
    return {
        **{name: value for name, value in told.items() if value != 0},
        "jsonPath": path,
    }
