"""Steps in which a group starts: workers after their entry pod, roles one after another (MS_D41).

Only who asks for it gets it (`inferbus.dev/startup-order`, LeaderWorkerSet's `startupPolicy`). A
gang can't start in steps, because none of it is scheduled before all of it exists; there the order
is ignored, and a condition says so.

Invariant: a step holds back the creation of pods and nothing else: what runs stays, whatever
becomes of what it was to wait for.
"""

from collections.abc import Iterable

from inferbus_contracts.resources.annotations import StartupStep
from inferbus_workload_reconciler.policy_census import GroupView
from inferbus_workload_reconciler.policy_members import NewPod
from inferbus_workload_reconciler.workload import Slot


def startable(
    steps: Iterable[StartupStep], group: GroupView, pods: tuple[NewPod, ...]
) -> tuple[NewPod, ...]:
    """Those of a group's new pods whose turn it is."""
    asked = frozenset(steps)
    if not asked:
        return pods
    waiting = _waiting_roles(group) if StartupStep.ROLES_IN_ORDER in asked else frozenset()
    entry_first = StartupStep.ENTRY_FIRST in asked
    return tuple(
        pod
        for pod in pods
        if pod.slot.role not in waiting and not (entry_first and _waits_for_entry(group, pod.slot))
    )


def _waits_for_entry(group: GroupView, slot: Slot) -> bool:
    if slot.worker_index == 0:
        return False
    replica = group.replicas.get(slot.replica)
    entry = replica.pods.get(0) if replica else None
    return entry is None or not entry.ready or entry.deleting


def _waiting_roles(group: GroupView) -> frozenset[str]:
    """Roles after the first one that doesn't run with all its replicas."""
    present = group.by_role()
    names = [wanted.template.name for wanted in group.shape or ()]
    for position, wanted in enumerate(group.shape or ()):
        running = sum(replica.running for replica in present.get(wanted.template.name, ()))
        if running < wanted.replicas:
            return frozenset(names[position + 1 :])
    return frozenset()
