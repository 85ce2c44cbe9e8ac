"""A LeaderWorkerSet as a ModelServing, for clusters where nothing runs LeaderWorkerSets.

Invariant: pods, their names, labels and variables, the headless service and what becomes of a group
whose pod restarts are the same either way (ruling "without LWS"); only the owner is another.
"""

from collections.abc import Mapping
from typing import Any, Final

from inferbus_contracts.resources.annotations import NAMING, Naming
from inferbus_contracts.resources.inference import RestartPolicy
from inferbus_contracts.resources.serving import RecoveryPolicy, RolloutType
from inferbus_spec_watcher.expansion.manifests import present

ROLE: Final = "default"
ANNOTATIONS: Final = {NAMING: Naming.LEADER_WORKER_SET.value}
DEFAULT_SCHEDULER: Final = "default-scheduler"


def serving_spec(groups: Mapping[str, Any]) -> dict[str, Any]:
    """`spec` of the ModelServing that runs what the `spec` of a LeaderWorkerSet describes.

    How a group is divided (`subGroupPolicy`) has no counterpart: it steers placement alone.
    """
    template = groups["leaderWorkerTemplate"]
    worker = template["workerTemplate"]
    leader = template.get("leaderTemplate") or worker
    workers = template["size"] - 1
    role = present(
        name=ROLE,
        replicas=1,
        workerReplicas=workers,
        entryTemplate=leader,
        workerTemplate=worker if workers else None,
    )
    recreates = template["restartPolicy"] == RestartPolicy.RECREATE_GROUP
    recovery = RecoveryPolicy.SERVING_GROUP_RECREATE if recreates else RecoveryPolicy.NONE
    return {
        "replicas": groups["replicas"],
        "schedulerName": leader["spec"].get("schedulerName") or DEFAULT_SCHEDULER,
        "recoveryPolicy": recovery.value,
        "rolloutStrategy": present(
            type=RolloutType.SERVING_GROUP.value,
            rollingUpdateConfiguration=groups["rolloutStrategy"].get("rollingUpdateConfiguration"),
        ),
        "template": {"roles": [role]},
    }
