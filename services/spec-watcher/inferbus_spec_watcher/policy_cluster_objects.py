"""Objects of the API server as this service keeps them: admitted, and without what nobody reads.

Pure. Invariants: a kind of the platform's own is kept as admission normalises it, or, where it was
refused, as it stands with the reasons; a revision is the `resourceVersion` as a number, which grows
with every write of one object (Kubernetes 1.35 promises the order, etcd always kept it).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from inferbus_contracts.admission import admit
from inferbus_contracts.errors import Problem, ProblemsError
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.leader_worker_sets import rule_fields
from inferbus_contracts.resources.kinds import (
    AUTOSCALING_POLICY,
    AUTOSCALING_POLICY_BINDING,
    CORE_SERVICE,
    KINDS,
    LEADER_WORKER_SET,
)
from inferbus_shared.kube.resources import ApiResource
from inferbus_shared.objects.picture import StoredObject
from inferbus_spec_watcher.policy_field_managers import (
    foreign_appliers,
    is_own,
    last_change,
    manager_of,
    spec_entries,
)
from inferbus_spec_watcher.policy_objects import EXPANDER
from inferbus_spec_watcher.policy_units import missing_policy

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
"""kubectl's own copy of a manifest: as long as the object, and read by kubectl alone."""

_IDENTITY = ("name", "namespace", "uid", "ownerReferences", "deletionTimestamp")


@dataclass(frozen=True, slots=True)
class ClusterObject(StoredObject):
    """An object as it stands on the API server.

    `metadata.managedFields` says who has a part in it, in the form of the bucket's objects; which
    fields those are stays with the API server, except for what the platform applied itself.
    """

    problems: tuple[Problem, ...] = ()
    """Why admission refuses it; empty for what is admitted."""
    claims: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """`fieldsV1` of what each of the platform's managers applied."""
    appliers: frozenset[str] = frozenset()
    """Who else applies manifests of it."""
    origin: Mapping[str, Any] = field(default_factory=dict)
    """Of a LeaderWorkerSet, what says who runs it (`leader_worker_sets`)."""


def read_object(resource: ApiResource, document: Mapping[str, Any]) -> ClusterObject:
    """An object of the API server; raises `KeyError` or `ValueError` for what is none."""
    metadata = document["metadata"]
    managed = metadata.get("managedFields") or ()
    claims = _claims(managed)
    body, problems = _body(resource, _plain(resource, document), EXPANDER in claims)
    body["metadata"] |= {
        "uid": metadata["uid"],
        "generation": metadata.get("generation", 1),
        "managedFields": _parts(managed),
    }
    if "status" in document:
        body["status"] = document["status"]
    return ClusterObject(
        body,
        int(metadata["resourceVersion"]),
        problems,
        claims,
        foreign_appliers(managed),
        rule_fields(document) if resource.kind == LEADER_WORKER_SET else {},
    )


def refusal(
    key: ObjectKey, stored: StoredObject, lookup: Callable[[ObjectKey], object | None]
) -> tuple[Problem, ...]:
    """Why an object is no fact: what admission says of it, or that it binds a missing policy."""
    own = stored.problems if isinstance(stored, ClusterObject) else ()
    if own or key.kind != AUTOSCALING_POLICY_BINDING:
        return own
    problem = missing_policy(key, stored.object, lookup)
    return () if problem is None else (problem,)


def bound_policy(key: ObjectKey, stored: StoredObject) -> ObjectKey | None:
    """The policy that a binding needs; None for everything else."""
    if key.kind != AUTOSCALING_POLICY_BINDING or (
        isinstance(stored, ClusterObject) and stored.problems
    ):
        return None
    name = str(stored.object["spec"]["policyRef"]["name"])
    return ObjectKey(AUTOSCALING_POLICY, key.namespace, name)


def _plain(resource: ApiResource, document: Mapping[str, Any]) -> dict[str, Any]:
    """A copy with its kind, which items of the server's own lists don't say, and without what is
    read apart."""
    metadata = {name: v for name, v in document["metadata"].items() if name != "managedFields"}
    annotations = metadata.get("annotations") or {}
    if LAST_APPLIED in annotations:
        metadata["annotations"] = {n: v for n, v in annotations.items() if n != LAST_APPLIED}
    body = {name: value for name, value in document.items() if name != "status"}
    kind = {"apiVersion": resource.api_version, "kind": resource.api_kind}
    return {**body, **kind, "metadata": metadata}


def _body(
    resource: ApiResource, plain: dict[str, Any], is_own_child: bool
) -> tuple[dict[str, Any], tuple[Problem, ...]]:
    if resource.kind == CORE_SERVICE and not is_own_child:
        metadata = plain["metadata"]
        identity = {name: metadata[name] for name in _IDENTITY if name in metadata}
        return {**{n: plain[n] for n in ("apiVersion", "kind")}, "metadata": identity}, ()
    if KINDS[resource.kind].supporting:
        return plain, ()
    try:
        return admit(plain).object, ()
    except ProblemsError as error:
        return plain, error.problems


def _claims(managed: Any) -> dict[str, Mapping[str, Any]]:
    return {
        manager_of(str(one["manager"])): one.get("fieldsV1") or {}
        for one in spec_entries(managed)
        if one.get("operation") == "Apply" and is_own(str(one.get("manager")))
    }


def _parts(managed: Any) -> list[dict[str, Any]]:
    last = last_change(managed)
    changed_by = manager_of(str(last.get("manager"))) if last else ""
    names = {manager_of(str(one.get("manager"))) for one in spec_entries(managed)}
    return [
        {"manager": name, "fields": [], **({"last": True} if name == changed_by else {})}
        for name in sorted(names)
    ]
