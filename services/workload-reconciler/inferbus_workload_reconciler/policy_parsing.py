"""From stored objects to `WorkloadSpec`.

The spec-watcher has admitted the object and filled in its defaults, so this reads rather than
validates; what it checks are the things that admission leaves open and that would otherwise show up
as a pod that can't be built. A broken object raises `ProblemsError` and nothing is planned for it:
pods that run stay.

Invariant: the result depends on the object alone.
"""

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any, Final

from inferbus_contracts.errors import ErrorCode, Problem, ProblemsError
from inferbus_contracts.keys import ObjectKey
from inferbus_workload_reconciler.policy_naming import MODEL_SERVING
from inferbus_workload_reconciler.policy_naming_lws import LEADER_WORKER, ROLE
from inferbus_workload_reconciler.policy_plugins import parse_plugins
from inferbus_workload_reconciler.policy_revisions import role_template
from inferbus_workload_reconciler.workload import (
    IntOrPercent,
    Plugin,
    RecoveryPolicy,
    RoleSpec,
    Rollout,
    RolloutType,
    TopologySpread,
    WorkloadSpec,
)

_MESSAGES: Final = {
    ErrorCode.MISSING_FIELD: "a required field is missing",
    ErrorCode.WRONG_TYPE: "the field has a wrong type",
    ErrorCode.VALUE_OUT_OF_RANGE: "the field has a value that doesn't exist",
}

_LWS_RECOVERY: Final = {
    "RecreateGroupOnPodRestart": RecoveryPolicy.GROUP,
    "Default": RecoveryPolicy.NONE,
    "None": RecoveryPolicy.NONE,
}


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
    return parser(_Reader(document, ""))


class _Reader:
    """Reads fields of a document and names the one that is wrong."""

    def __init__(self, document: Mapping[str, Any], path: str, object_key: str = "") -> None:
        self.document = document
        self.path = path
        self.object_key = object_key

    def get(self, field: str, type_: type | tuple[type, ...], default: Any = None) -> Any:
        """A field, or the default where it is absent or null."""
        value = self.document.get(field)
        if value is None:
            return default
        if not isinstance(value, type_) or isinstance(value, bool):
            raise ProblemsError(self._problem(ErrorCode.WRONG_TYPE, field, value))
        return value

    def need(self, field: str, type_: type | tuple[type, ...]) -> Any:
        """A field that must be there."""
        value = self.get(field, type_)
        if value is None:
            raise ProblemsError(self._problem(ErrorCode.MISSING_FIELD, field, None))
        return value

    def part(self, field: str) -> "_Reader":
        """The object in a field; an empty one where it is absent."""
        return self._at(self.get(field, Mapping, {}), f"{self.path}{field}.")

    def parts(self, field: str, *, at_least_one: bool = False) -> list["_Reader"]:
        """The objects in a list; none where it is absent."""
        items = self.get(field, list, [])
        if at_least_one and not items:
            raise ProblemsError(self._problem(ErrorCode.MISSING_FIELD, field, None))
        return [self._at(item, f"{self.path}{field}[{index}].") for index, item in enumerate(items)]

    def choice(self, field: str, default: StrEnum) -> str:
        """A field that takes one of the values of the default's enumeration."""
        value: str = self.get(field, str, default)
        if value not in set(type(default)):
            raise ProblemsError(self._problem(ErrorCode.VALUE_OUT_OF_RANGE, field, value))
        return value

    def _at(self, document: Any, path: str) -> "_Reader":
        if not isinstance(document, Mapping):
            reader = _Reader({}, path, self.object_key)
            raise ProblemsError(reader._problem(ErrorCode.WRONG_TYPE, "", document))
        return _Reader(document, path, self.object_key)

    def _problem(self, code: ErrorCode, field: str, value: Any) -> Problem:
        return Problem(
            code=code,
            message=_MESSAGES[code],
            remedy="apply the manifest again: admission fills in defaults and says what may stand",
            object=self.object_key or None,
            field=f"{self.path}{field}".rstrip("."),
            value=value,
        )


def _model_serving(document: _Reader) -> WorkloadSpec:
    metadata, spec, key = _identity(document)
    template = spec.part("template")
    return WorkloadSpec(
        key=key,
        api_version=document.need("apiVersion", str),
        uid=metadata.need("uid", str),
        generation=metadata.get("generation", int, 1),
        replicas=spec.get("replicas", int, 1),
        roles=tuple(_role(role) for role in template.parts("roles", at_least_one=True)),
        convention=MODEL_SERVING,
        recovery=RecoveryPolicy(spec.choice("recoveryPolicy", RecoveryPolicy.ROLE)),
        restart_grace_ms=1000 * max(0, template.get("restartGracePeriodSeconds", int, 0)),
        rollout=_rollout(spec.part("rolloutStrategy")),
        scheduler_name=spec.get("schedulerName", str, "volcano"),
        plugins=_plugins(spec, key),
        topology_spread=tuple(_spread(one) for one in spec.parts("topologySpreadConstraints")),
        leader_worker_set=_owner_of_kind(metadata, "LeaderWorkerSet"),
    )


def _inference_service(document: _Reader) -> WorkloadSpec:
    """A leader with its workers, as one role with one replica per group."""
    metadata, spec, key = _identity(document)
    template = spec.part("workloadTemplate")
    worker = template.need("workerTemplate", Mapping)
    role = {
        "name": ROLE,
        "workerReplicas": max(0, template.get("size", int, 1) - 1),
        "entryTemplate": template.get("leaderTemplate", Mapping, worker),
        "workerTemplate": worker,
    }
    restart_policy = template.get("restartPolicy", str, "RecreateGroupOnPodRestart")
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
        recovery=_LWS_RECOVERY.get(restart_policy, RecoveryPolicy.GROUP),
        rollout=_group_rollout(spec.part("rolloutStrategy")),
    )


_PARSERS: Final[dict[str, Callable[[_Reader], WorkloadSpec]]] = {
    "ModelServing": _model_serving,
    "Service": _inference_service,
}


def _identity(document: _Reader) -> tuple[_Reader, _Reader, ObjectKey]:
    metadata = document.part("metadata")
    key = ObjectKey(
        document.need("kind", str),
        metadata.get("namespace", str, "default"),
        metadata.need("name", str),
    )
    document.object_key = metadata.object_key = str(key)
    return metadata, document.part("spec"), key


def _role(role: _Reader) -> RoleSpec:
    role.need("name", str)
    if role.get("workerReplicas", int, 0) > 0:
        role.need("workerTemplate", Mapping)
    return RoleSpec(
        template=role_template(role.document),
        replicas=role.get("replicas", int, 1),
        max_unavailable=role.get("maxUnavailable", (int, str)),
        partition=role.get("partition", (int, str)),
    )


def _rollout(strategy: _Reader) -> Rollout:
    kind = RolloutType(strategy.choice("type", RolloutType.GROUP))
    return Rollout(type=kind) if kind is RolloutType.ROLE else _group_rollout(strategy)


def _group_rollout(strategy: _Reader) -> Rollout:
    """Both APIs call the knobs alike; both default to one unavailable group and no surge."""
    knobs = strategy.part("rollingUpdateConfiguration")
    number: tuple[type, ...] = (int, str)
    unavailable: IntOrPercent = knobs.get("maxUnavailable", number, 1)
    surge: IntOrPercent = knobs.get("maxSurge", number, 0)
    partition: IntOrPercent | None = knobs.get("partition", number)
    return Rollout(max_unavailable=unavailable, max_surge=surge, partition=partition)


def _plugins(spec: _Reader, key: ObjectKey) -> tuple[Plugin, ...]:
    return parse_plugins([plugin.document for plugin in spec.parts("plugins")], str(key))


def _spread(constraint: _Reader) -> TopologySpread:
    return TopologySpread(
        max_skew=constraint.get("maxSkew", int, 1),
        topology_key=constraint.need("topologyKey", str),
        when_unsatisfiable=constraint.get("whenUnsatisfiable", str, "DoNotSchedule"),
        label_selector=constraint.get("labelSelector", Mapping),
    )


def _owner_of_kind(metadata: _Reader, kind: str) -> str:
    owners = metadata.parts("ownerReferences")
    names = (owner.get("name", str, "") for owner in owners if owner.get("kind", str) == kind)
    return next(names, "")
