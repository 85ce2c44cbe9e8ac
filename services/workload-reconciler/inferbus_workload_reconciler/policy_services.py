"""Which headless services come and go (modelserving spec 2.6, 3.3).

Invariant: a role replica that stands has its service, one that is on its way out gets none, and one
that comes back after a failure keeps the one it has. Services that aren't named by us are never
touched, whoever owns them.
"""

from collections.abc import Iterator, Mapping

from inferbus_workload_reconciler.actions import (
    ChildKind,
    Create,
    Delete,
    Motive,
    Reason,
    Update,
    orphaned,
)
from inferbus_workload_reconciler.observed import Observed, ObservedService, is_orphan, is_owned
from inferbus_workload_reconciler.policy_decisions import Decisions
from inferbus_workload_reconciler.policy_merge import service_changes
from inferbus_workload_reconciler.policy_pods import render_service
from inferbus_workload_reconciler.workload import ReplicaId, RoleTemplate, ServiceShape, Slot


def missing_services(decisions: Decisions, observed: Observed) -> Iterator[Create]:
    """Services of role replicas that stand or are being built."""
    workload = decisions.book.workload
    present = {service.name for service in observed.services}
    for name, shape in _shapes(decisions, _standing(decisions)).items():
        if name not in present:
            yield Create(
                child=ChildKind.SERVICE,
                manifest=render_service(workload, name, shape),
                motive=Motive(Reason.SERVICE_MISSING, f"service {name} doesn't exist"),
            )


def changed_services(decisions: Decisions, observed: Observed) -> Iterator[Update]:
    """Services of ours that don't select what they should."""
    workload = decisions.book.workload
    shapes = _shapes(decisions, _standing(decisions))
    for service in observed.services:
        shape = shapes.get(service.name)
        if shape is None or service.deleting or not is_owned(service.owner, workload):
            continue
        if changes := service_changes(service, shape):
            cause = f"service {service.name} has other labels or another selector"
            yield Update(
                child=ChildKind.SERVICE,
                name=service.name,
                uid=service.uid,
                resource_version=service.resource_version,
                changes=changes,
                motive=Motive(Reason.SERVICE_DIFFERS, cause),
            )


def unused_services(decisions: Decisions, observed: Observed) -> Iterator[Delete]:
    """Services of role replicas that are gone or going for good, and of earlier objects."""
    workload = decisions.book.workload
    standing = _standing(decisions)
    kept = {*_shapes(decisions, standing), *_waiting(decisions, standing)}
    for service in sorted(observed.services, key=lambda one: one.name):
        slot = workload.convention.slot_of(workload.name, service.name, {})
        if service.owner is None or service.deleting:
            continue
        if is_owned(service.owner, workload):
            if slot is not None and service.name not in kept:
                cause = f"replica {slot.replica} has no use for it"
                yield _delete(service, Motive(Reason.SERVICE_UNUSED, cause))
        elif is_orphan(service.owner, workload) and (slot or service.name == workload.name):
            yield _delete(service, orphaned(service.owner.uid))


def _delete(service: ObservedService, motive: Motive) -> Delete:
    return Delete(child=ChildKind.SERVICE, name=service.name, uid=service.uid, motive=motive)


def _shapes(
    decisions: Decisions, standing: Mapping[ReplicaId, RoleTemplate]
) -> dict[str, ServiceShape]:
    workload = decisions.book.workload
    return workload.convention.services(workload.name, standing.items())


def _standing(decisions: Decisions) -> dict[ReplicaId, RoleTemplate]:
    """Role replicas that stand or are being built, with their templates."""
    standing = {
        replica.id: replica.template
        for replica in decisions.standing_replicas()
        if replica.template is not None
    }
    for decision in decisions.members.values():
        standing |= {new.slot.replica: new.template for new in decision.pods}
    return standing


def _waiting(decisions: Decisions, standing: Mapping[ReplicaId, RoleTemplate]) -> Iterator[str]:
    """Names for role replicas that come back, or whose template isn't known."""
    workload = decisions.book.workload
    for ordinal, group in decisions.fleet.groups.items():
        decision = decisions.members.get(ordinal)
        removed = decision.removed if decision else {}
        for replica in group.replicas:
            gone = ordinal in decisions.groups.removed or replica in removed
            if not gone and replica not in standing:
                yield workload.convention.pod_name(workload.name, Slot(*replica, 0))
