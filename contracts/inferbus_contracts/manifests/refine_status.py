"""Refinements of `status`: conditions are merged by type, times are times."""

from collections.abc import Mapping

from pydantic import BaseModel

from inferbus_contracts.manifests.refinement import Refinement, Schema, merged_by
from inferbus_contracts.resources import statuses

_TIME: Schema = {"format": "date-time"}
_STATUS = Refinement(fields={"conditions": merged_by("type")})

REFINEMENTS: Mapping[type[BaseModel], Refinement] = {
    **dict.fromkeys(statuses.STATUSES.values(), _STATUS),
    statuses.Condition: Refinement(
        fields={
            "status": {"enum": ["True", "False", "Unknown"]},
            "lastTransitionTime": _TIME,
        }
    ),
    statuses.TargetScalingStatus: Refinement(fields={"lastScaleTime": _TIME}),
}
