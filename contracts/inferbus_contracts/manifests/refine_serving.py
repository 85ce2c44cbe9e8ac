"""Refinements of ModelServing (modelserving spec 1.1 and 1.4; rulings F6, F7)."""

from collections.abc import Mapping

from pydantic import BaseModel

from inferbus_contracts.manifests.pod_specs import pod_spec
from inferbus_contracts.manifests.refinement import CelRule, Refinement, Schema, merged_by
from inferbus_contracts.resources import serving

_SHARE: Schema = {"pattern": "^0*(100|[1-9]?[0-9])%$"}
"""0% to 100%."""
_SURGE: Schema = {"pattern": "^[0-9]{1,9}%$"}
_MAX_ROLES = 4
_ROLE_NAME_LENGTH = 12
_BY_ROLE = "has(self.rolloutStrategy) && self.rolloutStrategy.type == 'RoleRollingUpdate'"


def _is_nothing(share: str) -> str:
    """0 or 0%."""
    return f"(type({share}) == string ? {share}.matches('^0+%$') : {share} == 0)"


_ENTRY: Schema = {
    "required": ["spec"],
    "properties": {"spec": {**pod_spec(minItems=1), "required": ["containers"]}},
}

_LONGEST_POD_NAME = """
size(self.metadata.name) + size(string(self.spec.replicas)) + size(role.name)
+ size(string(role.replicas)) + size(string(role.workerReplicas)) + 4
"""

_GANG_RULE = CelRule(
    "!has(oldSelf.gangPolicy) || has(self.gangPolicy)",
    "gangPolicy can't be removed; leave minRoleReplicas out for one change",
)

REFINEMENTS: Mapping[type[BaseModel], Refinement] = {
    serving.RollingUpdate: Refinement(
        fields={"maxUnavailable": _SHARE, "maxSurge": _SURGE, "partition": _SHARE}
    ),
    serving.RolloutStrategy: Refinement(
        rules=(
            CelRule(
                "self.type == 'RoleRollingUpdate' || !has(self.rollingUpdateConfiguration) || !("
                f"{_is_nothing('self.rollingUpdateConfiguration.maxUnavailable')}"
                f" && {_is_nothing('self.rollingUpdateConfiguration.maxSurge')})",
                "rollingUpdateConfiguration: maxUnavailable or maxSurge must be at least 1,"
                " or no rollout could begin",
            ),
        )
    ),
    serving.GangPolicy: Refinement(
        fields={"minRoleReplicas": {"maxProperties": _MAX_ROLES}},
        rules=(
            CelRule(
                "!has(oldSelf.minRoleReplicas) || !has(self.minRoleReplicas)"
                " || size(oldSelf.minRoleReplicas) == 0 || size(self.minRoleReplicas) == 0"
                " || self.minRoleReplicas == oldSelf.minRoleReplicas",
                "minRoleReplicas can't be changed while it is set",
            ),
        ),
    ),
    serving.Plugin: Refinement(fields={"type": {"enum": ["BuiltIn"]}}),
    serving.PodTemplate: Refinement(fields={"spec": pod_spec()}),
    serving.Role: Refinement(
        fields={
            "name": {"minLength": 1},
            "entryTemplate": _ENTRY,
            "maxUnavailable": _SHARE,
            "partition": _SHARE,
        },
        rules=(
            CelRule(
                "self.workerReplicas == 0 || (has(self.workerTemplate)"
                " && has(self.workerTemplate.spec) && has(self.workerTemplate.spec.containers)"
                " && size(self.workerTemplate.spec.containers) > 0)",
                "workerTemplate: workers need a template with at least one container",
            ),
        ),
    ),
    serving.ServingTemplate: Refinement(
        fields={
            "roles": {
                **merged_by("name"),
                "x-kubernetes-validations": [
                    CelRule(
                        "self.all(a, self.exists_one(b,"
                        " a.name.lowerAscii() == b.name.lowerAscii()))",
                        "names of roles must differ by more than capitals",
                    ).as_validation()
                ],
            }
        },
        rules=(
            CelRule(
                "!has(self.gangPolicy) || !has(self.gangPolicy.minRoleReplicas)"
                " || self.gangPolicy.minRoleReplicas.all(name,"
                " self.roles.exists(role, role.name == name))",
                "gangPolicy.minRoleReplicas: there is no role of this name",
            ),
            _GANG_RULE,
        ),
    ),
    serving.ModelServingSpec: Refinement(
        rules=(
            CelRule(
                f"!({_BY_ROLE}) || self.template.roles.all(role,"
                f" !{_is_nothing('role.maxUnavailable')})",
                "template.roles: with RoleRollingUpdate maxUnavailable must be at least 1,"
                " or no rollout could begin",
            ),
        )
    ),
}

RULES = (
    CelRule(
        f"self.spec.template.roles.all(role, {_LONGEST_POD_NAME} <= 63)",
        "metadata.name: names of pods, <name>-<replicas>-<role>-<role replicas>-<worker replicas>,"
        " would have more than 63 characters; shorten the name of the ModelServing or of a role",
    ),
    CelRule(
        "!self.metadata.name.contains('.')"
        " || self.spec.template.roles.all(role, !has(role.workerTemplate))",
        "metadata.name: workers find their entry pod by a Service, whose name can hold no dot",
    ),
)
"""Rules of the whole object."""
