"""Rules about rollouts of a ModelServing: how much may be away, extra, or kept old.

A percentage above zero never comes to nothing: where it rounds to no replica at all, one counts
(modelserving spec 1.4 W7 to W14, defect D24, ruling F6).
"""

from collections.abc import Iterator

from inferbus_contracts.admission.rule import Finding, Rule, error, warning
from inferbus_contracts.errors import ErrorCode
from inferbus_contracts.resources.scalars import percent_of, resolve_int_or_percent
from inferbus_contracts.resources.serving import (
    ModelServing,
    RecoveryPolicy,
    Role,
    RollingUpdate,
    RolloutType,
)

_CONFIGURATION = "spec.rolloutStrategy.rollingUpdateConfiguration"


def _configuration(resource: ModelServing) -> RollingUpdate | None:
    strategy = resource.spec.rollout_strategy
    return strategy.rolling_update_configuration if strategy is not None else None


def _roles(resource: ModelServing) -> Iterator[tuple[str, Role]]:
    for index, role in enumerate(resource.spec.template.roles):
        yield f"spec.template.roles[{index}]", role


def _by_role(resource: ModelServing) -> bool:
    return resource.spec.rollout_type is RolloutType.ROLE


def is_nothing(value: int | str) -> bool:
    """0 or 0%, whatever it is a share of."""
    return resolve_int_or_percent(value, 100) == 0


def _above_all(value: int | str | None, field: str) -> Iterator[Finding]:
    if isinstance(value, str) and percent_of(value) > 100:
        yield Finding(
            code=ErrorCode.VALUE_OUT_OF_RANGE,
            field=field,
            message="is more than 100%",
            value=value,
            remedy="use 0% to 100%",
        )


def shares_within_all(resource: ModelServing) -> Iterator[Finding]:
    """maxUnavailable and partition are shares of what there is (W7, W8, W10, W11)."""
    configuration = _configuration(resource)
    if configuration is not None:
        yield from _above_all(configuration.max_unavailable, f"{_CONFIGURATION}.maxUnavailable")
        yield from _above_all(configuration.partition, f"{_CONFIGURATION}.partition")
    for path, role in _roles(resource):
        yield from _above_all(role.max_unavailable, f"{path}.maxUnavailable")
        yield from _above_all(role.partition, f"{path}.partition")


def groups_can_move(resource: ModelServing) -> Iterator[Finding]:
    """A rollout of groups needs one that may be away or extra (W7, ruling F6)."""
    configuration = _configuration(resource)
    if configuration is None or _by_role(resource):
        return
    if is_nothing(configuration.max_unavailable) and is_nothing(configuration.max_surge):
        yield Finding(
            field=f"{_CONFIGURATION}.maxUnavailable",
            message="no group may be away and none extra, so a rollout could never begin",
            value=configuration.max_unavailable,
            remedy="make maxUnavailable or maxSurge at least 1",
        )


def roles_can_move(resource: ModelServing) -> Iterator[Finding]:
    """A rollout by role needs a replica that may be away (W11)."""
    for path, role in _roles(resource):
        if _by_role(resource) and is_nothing(role.max_unavailable):
            yield Finding(
                field=f"{path}.maxUnavailable",
                message="no replica may be away, so a rollout could never begin",
                value=role.max_unavailable,
                remedy="make it at least 1",
            )


def percentages_come_to_one(resource: ModelServing) -> Iterator[Finding]:
    """A percentage that rounds down to nothing counts as one (defect D24)."""
    configuration = _configuration(resource)
    shares = [
        (f"{path}.maxUnavailable", role.max_unavailable, role.replicas)
        for path, role in _roles(resource)
        if _by_role(resource)
    ]
    if configuration is not None and not _by_role(resource) and is_nothing(configuration.max_surge):
        field = f"{_CONFIGURATION}.maxUnavailable"
        shares.append((field, configuration.max_unavailable, resource.spec.replicas))
    for field, value, total in shares:
        if total > 0 and not is_nothing(value) and resolve_int_or_percent(value, total) == 0:
            yield Finding(
                field=field,
                message=f"is less than one of {total}, and counts as one",
                value=value,
                remedy="use a larger percentage, or 1",
            )


def role_share_within_replicas(resource: ModelServing) -> Iterator[Finding]:
    """maxUnavailable of a role above its replicas is held to them (W11, defect D25)."""
    for path, role in _roles(resource):
        value = role.max_unavailable
        if _by_role(resource) and isinstance(value, int) and value > max(role.replicas, 1):
            yield Finding(
                field=f"{path}.maxUnavailable",
                message=f"the role has {role.replicas} replicas, so that many count",
                value=value,
                remedy="make it at most the role's replicas",
            )


def partition_leaves_some(resource: ModelServing) -> Iterator[Finding]:
    """A partition that covers every group updates none (W8)."""
    configuration = _configuration(resource)
    partition = configuration.partition if configuration is not None else None
    if partition is None or is_nothing(partition):
        return
    if resolve_int_or_percent(partition, resource.spec.replicas, round_up=True) >= max(
        resource.spec.replicas, 1
    ):
        yield Finding(
            field=f"{_CONFIGURATION}.partition",
            message=f"covers all {resource.spec.replicas} groups, so none is updated",
            value=partition,
            remedy="make it smaller than replicas",
        )


def settings_fit_type(resource: ModelServing) -> Iterator[Finding]:
    """Settings of one type of rollout have no effect in the other (W9, W10)."""
    if _by_role(resource) and _configuration(resource) is not None:
        yield Finding(
            field=_CONFIGURATION,
            message="has no effect with RoleRollingUpdate",
            remedy="set maxUnavailable and partition on the roles",
        )
    for path, role in _roles(resource):
        if role.partition is not None and not _by_role(resource):
            yield Finding(
                field=f"{path}.partition",
                message="has no effect without RoleRollingUpdate",
                value=role.partition,
                remedy="set rolloutStrategy.type to RoleRollingUpdate, or remove it",
            )


def recovery_fits_rollout(resource: ModelServing) -> Iterator[Finding]:
    """Replacing roles one by one and recreating whole groups contradict each other (W14)."""
    if _by_role(resource) and (
        resource.spec.recovery_policy is RecoveryPolicy.SERVING_GROUP_RECREATE
    ):
        yield Finding(
            field="spec.recoveryPolicy",
            message="a pod that fails during a rollout by role takes its whole group with it",
            value=resource.spec.recovery_policy.value,
            remedy="use RoleRecreate with RoleRollingUpdate",
        )


RULES: tuple[Rule, ...] = (
    error("MS-W7a", "modelserving 1.4 W7, W8", "it is a share of nothing", shares_within_all),
    error("MS-W7b", "modelserving 1.4 W7; ruling F6", "no rollout could begin", groups_can_move),
    error("MS-W11a", "modelserving 1.4 W11", "no rollout could begin", roles_can_move),
    warning("MS-W7c", "modelserving 7 (D24)", "one counts", percentages_come_to_one),
    warning("MS-W11b", "modelserving 7 (D25)", "held to the replicas", role_share_within_replicas),
    warning(
        "MS-W8", "modelserving 1.4 W8", "what the newest version accepts", partition_leaves_some
    ),
    warning("MS-W9", "modelserving 1.4 W9, W10", "what is ignored does no harm", settings_fit_type),
    warning(
        "MS-W14",
        "modelserving 1.4 W14; 7 (D46)",
        "the API text allows it, and it works",
        recovery_fits_rollout,
    ),
)
