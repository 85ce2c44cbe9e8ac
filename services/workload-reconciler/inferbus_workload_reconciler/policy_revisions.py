"""Revisions: what distinguishes one set of templates from another, and their snapshots.

A revision is named by a hash of canonical JSON, so that neither another version of this program nor
a field that its schema gains makes a fleet roll (defect MS_D1). A snapshot is written before
anything is built from it and never changed afterwards (MS_D7, MS_D8); replicas are no part of a
revision, a snapshot only notes them for roles that later disappear (MS_D6).

Invariant: equal templates, equal hash; a snapshot that is still referenced is never removed.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

from inferbus_contracts.canonical import canonical_json, digest
from inferbus_contracts.resources.annotations import REVISION_ALGORITHM
from inferbus_workload_reconciler.observed import controller_of, is_orphan, is_owned
from inferbus_workload_reconciler.policy_meaning import meaning
from inferbus_workload_reconciler.workload import PodTemplate, RoleTemplate, WorkloadSpec

HISTORY_LIMIT = 10
"""Snapshots kept beyond those that are referenced, as for a Deployment's history."""

TEMPLATES_KEPT = 4096
"""Templates that are read once: those of a whole fleet are read anew with each look at it."""

HASH_LENGTH = 10
_DIGITS = str.maketrans("0123456789abcdef", "bcdfghjkmnpqrstv")


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """A revision as it was stored."""

    label: str
    number: int
    name: str
    uid: str
    roles: tuple[RoleTemplate, ...]
    replicas: Mapping[str, int]
    """Replicas per role when the snapshot was written."""

    def role(self, name: str) -> RoleTemplate | None:
        """The template of the role of that name."""
        return next((role for role in self.roles if role.name == name), None)


class OrphanedSnapshot(NamedTuple):
    """A snapshot of an earlier object of the same name."""

    name: str
    uid: str
    owner_uid: str


@dataclass(frozen=True, slots=True)
class RevisionHistory:
    """All snapshots of a workload, by label."""

    snapshots: Mapping[str, Snapshot]
    orphans: tuple[OrphanedSnapshot, ...] = ()

    def get(self, label: str) -> Snapshot | None:
        """The snapshot of a revision."""
        return self.snapshots.get(label)

    def most_common(self, labels: Iterable[str]) -> str:
        """The label that occurs most; of equally frequent ones the oldest.

        Raises `ValueError` without any.
        """
        counts = Counter(labels)

        def rank(label: str) -> tuple[int, int, str]:
            snapshot = self.get(label)
            return (-counts[label], snapshot.number if snapshot else 0, label)

        return min(counts, key=rank)

    @property
    def next_number(self) -> int:
        """The number of the next snapshot, from 1."""
        return 1 + max((one.number for one in self.snapshots.values()), default=0)


def label_safe_hash(content: Any) -> str:
    """Ten consonants of a digest: valid in names and labels, and never mistaken for a number."""
    return digest(content)[:HASH_LENGTH].translate(_DIGITS)


def role_template(role: Mapping[str, Any]) -> RoleTemplate:
    """The template part of one entry of `template.roles`.

    Name, worker count and the two pod templates count, with absent and null fields alike; replicas,
    maxUnavailable, partition and everything a later schema adds do not (modelserving spec 2.8).
    """
    content = {
        "name": role["name"],
        "workerReplicas": role.get("workerReplicas") or 0,
        "entryTemplate": role.get("entryTemplate") or {},
    }
    worker = role.get("workerTemplate")
    if worker is not None:
        content["workerTemplate"] = worker
    return _role_template(canonical_json(content))


@lru_cache(maxsize=TEMPLATES_KEPT)
def _role_template(written: bytes) -> RoleTemplate:
    content = _without_nulls(json.loads(written))
    worker = content.get("workerTemplate")
    return RoleTemplate(
        name=content["name"],
        worker_replicas=content["workerReplicas"],
        entry=_pod_template(content["entryTemplate"]),
        worker=None if worker is None else _pod_template(worker),
        content=content,
        hash=label_safe_hash(content),
        meaning=label_safe_hash(meaning(content)),
    )


def revision_hash(roles: Iterable[RoleTemplate]) -> str:
    """The hash of the ordered templates of all roles."""
    return label_safe_hash([role.content for role in roles])


def same_content(one: Iterable[RoleTemplate], other: Iterable[RoleTemplate]) -> bool:
    """Whether two sets of templates mean the same, though another writer stored one of them."""
    return [role.meaning for role in one] == [role.meaning for role in other]


def parse_history(
    revisions: Iterable[Mapping[str, Any]], workload: WorkloadSpec
) -> RevisionHistory:
    """The history in a workload's ControllerRevisions.

    Objects of another owner, and those that hold no list of roles (another controller's), describe
    no revision of this workload.
    """
    snapshots = {}
    orphans = []
    for revision in revisions:
        metadata = revision["metadata"]
        owner = controller_of(metadata)
        snapshot = _parse_snapshot(revision, workload) if is_owned(owner, workload) else None
        if snapshot is not None:
            snapshots[snapshot.label] = snapshot
        elif owner is not None and is_orphan(owner, workload):
            orphans.append(OrphanedSnapshot(metadata["name"], metadata["uid"], owner.uid))
    return RevisionHistory(snapshots, tuple(orphans))


def render_snapshot(workload: WorkloadSpec, label: str, number: int) -> dict[str, Any]:
    """The ControllerRevision of the workload's templates (modelserving spec 2.7)."""
    return {
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": {
            "name": f"{workload.name}-{label}",
            "namespace": workload.namespace,
            "labels": {
                workload.convention.name_label: workload.name,
                workload.convention.revision_label: label,
            },
            "annotations": {REVISION_ALGORITHM: "1"},
            "ownerReferences": [workload.owner_reference],
        },
        "revision": number,
        "data": {
            "data": [
                {**role.template.content, "replicas": role.replicas} for role in workload.roles
            ]
        },
    }


def surplus_snapshots(history: RevisionHistory, referenced: Iterable[str]) -> list[Snapshot]:
    """The oldest snapshots that nothing refers to, beyond `HISTORY_LIMIT`."""
    kept = set(referenced)
    idle = sorted(
        (one for one in history.snapshots.values() if one.label not in kept),
        key=lambda one: (one.number, one.label),
    )
    return idle[: max(0, len(idle) - HISTORY_LIMIT)]


def _parse_snapshot(revision: Mapping[str, Any], workload: WorkloadSpec) -> Snapshot | None:
    metadata = revision["metadata"]
    label = (metadata.get("labels") or {}).get(workload.convention.revision_label)
    data = revision.get("data")
    roles = data.get("data") if isinstance(data, Mapping) else None
    if not (label and isinstance(roles, list)):
        return None
    return Snapshot(
        label=label,
        number=int(revision.get("revision") or 0),
        name=metadata["name"],
        uid=metadata.get("uid", ""),
        roles=tuple(role_template(role) for role in roles),
        replicas={role["name"]: role.get("replicas", 1) for role in roles},
    )


def _pod_template(template: Mapping[str, Any]) -> PodTemplate:
    metadata = template.get("metadata") or {}
    return PodTemplate(
        labels=metadata.get("labels") or {},
        annotations=metadata.get("annotations") or {},
        spec=template.get("spec") or {},
    )


def _without_nulls(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list | tuple):
        return [_without_nulls(item) for item in value]
    return value
