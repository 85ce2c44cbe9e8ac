"""Names, labels and environment of a LeaderWorkerSet's children.

Users' commands and selectors are written for LeaderWorkerSet, so groups that run without it, as a
ModelServing too, look the same (llmaz spec 2.4, 2.5; the variables come before the user's, as
LeaderWorkerSet puts them).

Invariant: `slot_of(pod_name(slot)) == slot`; the group's only role is `ROLE`, which appears in no
name and no label.
"""

import hashlib
import re
from collections.abc import Iterable, Mapping

from inferbus_workload_reconciler.policy_naming import GROUP_NAME
from inferbus_workload_reconciler.policy_naming import NAME as SERVING_NAME
from inferbus_workload_reconciler.workload import (
    InjectedEnv,
    ReplicaId,
    RoleTemplate,
    ServiceShape,
    Slot,
)

ROLE = "default"
"""The planner's name of the one role."""

_DOMAIN = "leaderworkerset.sigs.k8s.io"
NAME = f"{_DOMAIN}/name"
GROUP_INDEX = f"{_DOMAIN}/group-index"
WORKER_INDEX = f"{_DOMAIN}/worker-index"
GROUP_KEY = f"{_DOMAIN}/group-key"
TEMPLATE_REVISION_HASH = f"{_DOMAIN}/template-revision-hash"
SIZE = f"{_DOMAIN}/size"
LEADER_NAME = f"{_DOMAIN}/leader-name"

_PLACE = re.compile(r"(?P<group>\d+)(-(?P<index>\d+))?\Z")


class LeaderWorkerConvention:
    """The conventions of LeaderWorkerSet."""

    name_label = NAME
    revision_label = TEMPLATE_REVISION_HASH
    template_hash_label: str | None = None

    def group_name(self, workload: str, group: int) -> str:
        """`<workload>-<group>`, which is also the leader's name."""
        return f"{workload}-{group}"

    def role_id(self, replica: ReplicaId) -> str:
        """Empty: groups have no roles."""
        return ""

    def pod_name(self, workload: str, slot: Slot) -> str:
        """`<workload>-<group>` for the leader, `<workload>-<group>-<index>` for a worker."""
        leader = self.group_name(workload, slot.group)
        return leader if slot.worker_index == 0 else f"{leader}-{slot.worker_index}"

    def slot_of(self, workload: str, name: str, labels: Mapping[str, str]) -> Slot | None:
        """Read from the name, because a name can't be edited."""
        prefix = f"{workload}-"
        found = _PLACE.match(name, len(prefix)) if name.startswith(prefix) else None
        return found and Slot(int(found["group"]), ROLE, 0, int(found["index"] or 0))

    def pod_labels(self, namespace: str, workload: str, slot: Slot) -> dict[str, str]:
        """Workload, group, index, and the key that all pods of a group share."""
        leader = self.group_name(workload, slot.group)
        return {
            NAME: workload,
            GROUP_INDEX: str(slot.group),
            WORKER_INDEX: str(slot.worker_index),
            GROUP_KEY: hashlib.sha1(
                f"{namespace}/{leader}".encode(), usedforsecurity=False
            ).hexdigest(),
        }

    def pod_annotations(self, workload: str, slot: Slot, size: int) -> dict[str, str]:
        """The group's size, and on workers the leader's name."""
        annotations = {SIZE: str(size)}
        if slot.worker_index > 0:
            annotations[LEADER_NAME] = self.group_name(workload, slot.group)
        return annotations

    def pod_fields(self, workload: str, slot: Slot) -> dict[str, str]:
        """Host name and subdomain, so that the leader's address resolves."""
        return {"hostname": self.pod_name(workload, slot), "subdomain": workload}

    def environment(self, namespace: str, workload: str, slot: Slot, size: int) -> InjectedEnv:
        """`LWS_LEADER_ADDRESS`, `LWS_GROUP_SIZE`, `LWS_WORKER_INDEX`, before the user's."""
        leader = self.group_name(workload, slot.group)
        return InjectedEnv(
            (
                {"name": "LWS_LEADER_ADDRESS", "value": f"{leader}.{workload}.{namespace}"},
                {"name": "LWS_GROUP_SIZE", "value": str(size)},
                {"name": "LWS_WORKER_INDEX", "value": str(slot.worker_index)},
            ),
            first=True,
        )

    def services(
        self, workload: str, replicas: Iterable[tuple[ReplicaId, RoleTemplate]]
    ) -> dict[str, ServiceShape]:
        """One for the whole workload, named like it, whatever its replicas."""
        labels = {NAME: workload}
        return {workload: ServiceShape(labels, labels)}

    def label_selector(self, workload: str, role: str, ordinal: int) -> str:
        """Leaders."""
        return f"{NAME}={workload},{WORKER_INDEX}=0"


class LeaderWorkerServingConvention(LeaderWorkerConvention):
    """The same of a ModelServing that stands in for a LeaderWorkerSet.

    Beside LeaderWorkerSet's labels there are those by which children of ModelServings are found.
    """

    name_label = SERVING_NAME

    def pod_labels(self, namespace: str, workload: str, slot: Slot) -> dict[str, str]:
        """LeaderWorkerSet's, and the ModelServing's name."""
        return {**super().pod_labels(namespace, workload, slot), SERVING_NAME: workload}

    def services(
        self, workload: str, replicas: Iterable[tuple[ReplicaId, RoleTemplate]]
    ) -> dict[str, ServiceShape]:
        """One for the whole workload; its group is no group of pods but all of them."""
        labels = {SERVING_NAME: workload, GROUP_NAME: workload, NAME: workload}
        return {workload: ServiceShape(labels, {NAME: workload})}


LEADER_WORKER = LeaderWorkerConvention()
LEADER_WORKER_SERVING = LeaderWorkerServingConvention()
