"""What may not change once an object exists: the transition rules of the v0.1.0 schemas.

Pure: both versions are passed in, admitted. Where a later version lifted a rule, it is lifted here.
"""

from collections.abc import Iterator

from inferbus_contracts.errors import ErrorCode, Problem
from inferbus_contracts.resources.metadata import Resource
from inferbus_contracts.resources.networking import ModelRoute
from inferbus_contracts.resources.serving import ModelServing

_GANG = "spec.template.gangPolicy"


def check_change(before: Resource, after: Resource) -> list[Problem]:
    """Problems of replacing `before` by `after`, two versions of one object; empty when none."""
    if isinstance(before, ModelRoute) and isinstance(after, ModelRoute):
        return list(_route(before, after))
    if isinstance(before, ModelServing) and isinstance(after, ModelServing):
        return list(_serving(before, after))
    return []


def _route(before: ModelRoute, after: ModelRoute) -> Iterator[Problem]:
    """modelName may be set, never changed (routing spec 1.1)."""
    name = before.spec.model_name
    if name and after.spec.model_name != name:
        yield Problem(
            code=ErrorCode.IMMUTABLE_FIELD,
            message=f"can't be changed once it is {name!r}",
            field="spec.modelName",
            value=after.spec.model_name,
            remedy="make a new ModelRoute for the other name",
        )


def _serving(before: ModelServing, after: ModelServing) -> Iterator[Problem]:
    """A gang's needs stay as they are (modelserving spec 1.1)."""
    old, new = before.spec.template.gang_policy, after.spec.template.gang_policy
    if old is None:
        return
    if new is None:
        yield _gang_change(_GANG, "can't be removed")
    elif (
        old.min_role_replicas
        and new.min_role_replicas
        and old.min_role_replicas != new.min_role_replicas
    ):
        yield _gang_change(f"{_GANG}.minRoleReplicas", "can't be changed while it is set")


def _gang_change(field: str, message: str) -> Problem:
    return Problem(
        code=ErrorCode.IMMUTABLE_FIELD,
        message=message,
        field=field,
        remedy="leave minRoleReplicas out for one change, or make a new ModelServing",
    )
