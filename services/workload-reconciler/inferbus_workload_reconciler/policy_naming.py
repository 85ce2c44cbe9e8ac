"""Names, labels and environment of a ModelServing's children.

Routers, autoscalers and users' manifests depend on them, so they are kept exactly as the API
documents them (modelserving spec 2.1 to 2.6). A role may be written with capitals; names derived
from it are lower-cased, its labels keep what was written.

Invariant: `slot_of(pod_name(slot)) == slot` for every slot of the workload.
"""

import re
from collections.abc import Iterable, Mapping

from inferbus_workload_reconciler.workload import (
    InjectedEnv,
    ReplicaId,
    RoleTemplate,
    ServiceShape,
    Slot,
)

NAME = "modelserving.volcano.sh/name"
GROUP_NAME = "modelserving.volcano.sh/group-name"
ROLE = "modelserving.volcano.sh/role"
ROLE_ID = "modelserving.volcano.sh/role-id"
ENTRY = "modelserving.volcano.sh/entry"
REVISION = "modelserving.volcano.sh/revision"
ROLE_TEMPLATE_HASH = "modelserving.volcano.sh/role-template-hash"

_PLACE = re.compile(r"(?P<group>\d+)-(?P<role>.+)-(?P<ordinal>\d+)-(?P<index>\d+)\Z")


class ModelServingConvention:
    """The conventions of Kthena's ModelServing."""

    name_label = NAME
    revision_label = REVISION
    template_hash_label: str | None = ROLE_TEMPLATE_HASH

    def group_name(self, workload: str, group: int) -> str:
        """`<workload>-<group>`."""
        return f"{workload}-{group}"

    def role_id(self, replica: ReplicaId) -> str:
        """`<role>-<ordinal>`, as the role is written."""
        return f"{replica.role}-{replica.ordinal}"

    def pod_name(self, workload: str, slot: Slot) -> str:
        """`<workload>-<group>-<role>-<ordinal>-<index>`, lower case."""
        role = slot.role.lower()
        return f"{workload}-{slot.group}-{role}-{slot.ordinal}-{slot.worker_index}"

    def slot_of(self, workload: str, name: str, labels: Mapping[str, str]) -> Slot | None:
        """Read from the name, because a name can't be edited; the role label restores capitals."""
        prefix = f"{workload}-"
        found = _PLACE.match(name, len(prefix)) if name.startswith(prefix) else None
        if found is None:
            return None
        written = labels.get(ROLE, "")
        role = written if written.lower() == found["role"] else found["role"]
        return Slot(int(found["group"]), role, int(found["ordinal"]), int(found["index"]))

    def pod_labels(self, namespace: str, workload: str, slot: Slot) -> dict[str, str]:
        """Workload, group, role, role replica, and `entry` on entry pods alone."""
        labels = {**self._replica_labels(workload, slot.replica)}
        if slot.worker_index == 0:
            labels[ENTRY] = "true"
        return labels

    def pod_annotations(self, workload: str, slot: Slot, size: int) -> dict[str, str]:
        """None: those of gang scheduling come with the PodGroup."""
        return {}

    def pod_fields(self, workload: str, slot: Slot) -> dict[str, str]:
        """None: host name and subdomain pass through from the template."""
        return {}

    def environment(self, namespace: str, workload: str, slot: Slot, size: int) -> InjectedEnv:
        """`GROUP_SIZE`, `ENTRY_ADDRESS`, `WORKER_INDEX`, after the user's variables."""
        entry = self.pod_name(workload, slot._replace(worker_index=0))
        return InjectedEnv(
            (
                {"name": "GROUP_SIZE", "value": str(size)},
                {"name": "ENTRY_ADDRESS", "value": f"{entry}.{namespace}"},
                {"name": "WORKER_INDEX", "value": str(slot.worker_index)},
            ),
            first=False,
        )

    def services(
        self, workload: str, replicas: Iterable[tuple[ReplicaId, RoleTemplate]]
    ) -> dict[str, ServiceShape]:
        """One per role replica whose role has a worker template, named like its entry pod."""
        shapes = {}
        for replica, template in replicas:
            if template.worker is None:
                continue
            labels = self._replica_labels(workload, replica)
            selector = {key: labels[key] for key in (GROUP_NAME, ROLE, ROLE_ID)} | {ENTRY: "true"}
            shapes[self.pod_name(workload, Slot(*replica, 0))] = ServiceShape(labels, selector)
        return shapes

    def label_selector(self, workload: str, role: str, ordinal: int) -> str:
        """Items sorted as whole strings (modelserving spec 3.13)."""
        labels = {ENTRY: "true", NAME: workload, ROLE: role, ROLE_ID: f"{role}-{ordinal}"}
        return ",".join(sorted(f"{key}={value}" for key, value in labels.items()))

    def _replica_labels(self, workload: str, replica: ReplicaId) -> dict[str, str]:
        return {
            NAME: workload,
            GROUP_NAME: self.group_name(workload, replica.group),
            ROLE: replica.role,
            ROLE_ID: self.role_id(replica),
        }


MODEL_SERVING = ModelServingConvention()
