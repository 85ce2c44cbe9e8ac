"""From stored objects to `WorkloadSpec`.

The spec-watcher has admitted the object and filled in its defaults, so this reads rather than
validates; what it checks are the things that admission leaves open and that would otherwise show up
as a pod that can't be built. A broken object raises `ProblemsError` and nothing is planned for it:
pods that run stay.

Invariant: the result depends on the object alone.
"""

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Any, Final

from inferbus_contracts.errors import ErrorCode, Problem, ProblemsError
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.resources.annotations import (
    NAMING,
    PAUSED,
    PROGRESS_DEADLINE,
    STARTUP_ORDER,
    Naming,
    StartupStep,
    parse_deadline_ms,
    parse_naming,
    parse_paused,
    parse_startup_order,
)
from inferbus_workload_reconciler.policy_fields import FieldReader, Parsed
from inferbus_workload_reconciler.policy_gang_parsing import parse_gang, topology_level
from inferbus_workload_reconciler.policy_naming import MODEL_SERVING
from inferbus_workload_reconciler.policy_naming_lws import (
    LEADER_WORKER,
    LEADER_WORKER_SERVING,
    ROLE,
)
from inferbus_workload_reconciler.policy_plugins import parse_plugins
from inferbus_workload_reconciler.policy_revisions import role_template
from inferbus_workload_reconciler.workload import (
    Convention,
    Plugin,
    RecoveryPolicy,
    RoleSpec,
    Rollout,
    RolloutType,
    TopologySpread,
    WorkloadSpec,
)


class _RestartPolicy(StrEnum):
    """The restart policies of a leader-worker group (llmaz spec 1.4)."""

    RECREATE_GROUP = "RecreateGroupOnPodRestart"
    DEFAULT = "Default"
    NONE = "None"


class _StartupPolicy(StrEnum):
    """What the workers of a leader wait for."""

    LEADER_CREATED = "LeaderCreated"
    LEADER_READY = "LeaderReady"


_LEADER_FIRST: Final = frozenset({StartupStep.ENTRY_FIRST})


def parse_workload(document: Mapping[str, Any]) -> WorkloadSpec:
    """The workload that an object with uid and generation describes.

    Raises `ProblemsError` for a kind that isn't planned, for a missing or mistyped field, and for
    a plugin that doesn't exist.
    """
    kind = document.get("kind")
    parser = _PARSERS.get(kind) if isinstance(kind, str) else None
    if parser is None:
        raise ProblemsError(
            Problem(
                code=ErrorCode.UNKNOWN_KIND,
                message="this kind is not planned by the workload-reconciler",
                remedy=f"use one of {', '.join(sorted(_PARSERS))}",
                field="kind",
                value=kind,
            )
        )
    return parser(FieldReader(document, ""))


def _model_serving(document: FieldReader) -> WorkloadSpec:
    metadata, spec, key = _identity(document)
    template = spec.part("template")
    roles = tuple(_role(role) for role in template.parts("roles", at_least_one=True))
    return WorkloadSpec(
        key=key,
        api_version=document.need("apiVersion", str),
        uid=metadata.need("uid", str),
        generation=metadata.get("generation", int, 1),
        replicas=spec.get("replicas", int, 1),
        roles=roles,
        convention=_convention(metadata, roles),
        recovery=RecoveryPolicy(spec.choice("recoveryPolicy", RecoveryPolicy.ROLE)),
        restart_grace_ms=1000 * max(0, template.get("restartGracePeriodSeconds", int, 0)),
        rollout=_rollout(spec.part("rolloutStrategy")),
        scheduler_name=spec.get("schedulerName", str, "volcano"),
        plugins=_plugins(spec, key),
        topology_spread=tuple(_spread(one) for one in spec.parts("topologySpreadConstraints")),
        gang=parse_gang(metadata, template),
        startup=_annotation(metadata, STARTUP_ORDER, parse_startup_order, frozenset()),
        paused=_annotation(metadata, PAUSED, parse_paused, False),
        progress_deadline_ms=_deadline_ms(metadata),
        leader_worker_set=_owner_of_kind(metadata, "LeaderWorkerSet"),
    )


def _leader_worker_set(document: FieldReader) -> WorkloadSpec:
    """A leader with its workers, as one role with one replica per group."""
    metadata, spec, key = _identity(document)
    template = spec.part("leaderWorkerTemplate")
    worker = template.need("workerTemplate", Mapping)
    role = {
        "name": ROLE,
        "workerReplicas": max(0, template.get("size", int, 1) - 1),
        "entryTemplate": template.get("leaderTemplate", Mapping, worker),
        "workerTemplate": worker,
    }
    restart_policy = template.choice("restartPolicy", _RestartPolicy.RECREATE_GROUP)
    recreates = restart_policy == _RestartPolicy.RECREATE_GROUP
    startup = spec.choice("startupPolicy", _StartupPolicy.LEADER_CREATED)
    leader_first = startup == _StartupPolicy.LEADER_READY
    return WorkloadSpec(
        key=key,
        api_version=document.need("apiVersion", str),
        uid=metadata.need("uid", str),
        generation=metadata.get("generation", int, 1),
        replicas=spec.get("replicas", int, 1),
        roles=(
            RoleSpec(
                template=role_template(role), replicas=1, max_unavailable=None, partition=None
            ),
        ),
        convention=LEADER_WORKER,
        recovery=RecoveryPolicy.GROUP if recreates else RecoveryPolicy.NONE,
        rollout=_group_rollout(spec.part("rolloutStrategy")),
        startup=_LEADER_FIRST if leader_first else frozenset(),
        paused=_annotation(metadata, PAUSED, parse_paused, False),
        progress_deadline_ms=_deadline_ms(metadata),
    )


_PARSERS: Final[dict[str, Callable[[FieldReader], WorkloadSpec]]] = {
    "ModelServing": _model_serving,
    "LeaderWorkerSet": _leader_worker_set,
}

PLANNED_KINDS: Final = frozenset(_PARSERS)
"""Kinds whose objects are workloads."""


def _identity(document: FieldReader) -> tuple[FieldReader, FieldReader, ObjectKey]:
    metadata = document.part("metadata")
    key = ObjectKey(
        document.need("kind", str),
        metadata.get("namespace", str, "default"),
        metadata.need("name", str),
    )
    document.object_key = metadata.object_key = str(key)
    return metadata, document.part("spec"), key


def _convention(metadata: FieldReader, roles: Sequence[RoleSpec]) -> Convention:
    """Whose names the pods get; LeaderWorkerSet's know of one replica of one role in a group."""
    parser: Callable[[str], Naming | None] = parse_naming
    if _annotation(metadata, NAMING, parser, None) is None:
        return MODEL_SERVING
    if [(role.name, role.replicas) for role in roles] != [(ROLE, 1)]:
        raise ProblemsError(
            Problem(
                code=ErrorCode.RULE_BROKEN,
                message=f"pods can't be named like a LeaderWorkerSet's unless there is one role,"
                f" {ROLE!r}, with one replica",
                object=metadata.object_key,
                field="spec.template.roles",
                remedy=f"remove the annotation {NAMING}, or have that one role",
            )
        )
    return LEADER_WORKER_SERVING


def _role(role: FieldReader) -> RoleSpec:
    role.need("name", str)
    if role.get("workerReplicas", int, 0) > 0:
        role.need("workerTemplate", Mapping)
    return RoleSpec(
        template=role_template(role.document),
        replicas=role.get("replicas", int, 1),
        max_unavailable=role.count_or_share("maxUnavailable"),
        partition=role.count_or_share("partition"),
        network_topology=topology_level(role, "networkTopology"),
    )


def _rollout(strategy: FieldReader) -> Rollout:
    kind = RolloutType(strategy.choice("type", RolloutType.GROUP))
    return Rollout(type=kind) if kind is RolloutType.ROLE else _group_rollout(strategy)


def _group_rollout(strategy: FieldReader) -> Rollout:
    """Both APIs call the knobs alike; both default to one unavailable group and no surge."""
    knobs = strategy.part("rollingUpdateConfiguration")
    unavailable = knobs.count_or_share("maxUnavailable")
    surge = knobs.count_or_share("maxSurge")
    return Rollout(
        max_unavailable=1 if unavailable is None else unavailable,
        max_surge=0 if surge is None else surge,
        partition=knobs.count_or_share("partition"),
    )


def _plugins(spec: FieldReader, key: ObjectKey) -> tuple[Plugin, ...]:
    return parse_plugins([plugin.document for plugin in spec.parts("plugins")], str(key))


def _spread(constraint: FieldReader) -> TopologySpread:
    return TopologySpread(
        max_skew=constraint.get("maxSkew", int, 1),
        topology_key=constraint.need("topologyKey", str),
        when_unsatisfiable=constraint.get("whenUnsatisfiable", str, "DoNotSchedule"),
        label_selector=constraint.get("labelSelector", Mapping),
    )


def _annotation(
    metadata: FieldReader, name: str, parser: Callable[[str], Parsed], default: Parsed
) -> Parsed:
    return metadata.part("annotations").parsed(name, parser, default)


def _deadline_ms(metadata: FieldReader) -> int | None:
    parser: Callable[[str], int | None] = parse_deadline_ms
    return _annotation(metadata, PROGRESS_DEADLINE, parser, None)


def _owner_of_kind(metadata: FieldReader, kind: str) -> str:
    owners = metadata.parts("ownerReferences")
    names = (owner.get("name", str, "") for owner in owners if owner.get("kind", str) == kind)
    return next(names, "")
