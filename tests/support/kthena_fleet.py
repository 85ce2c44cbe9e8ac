"""Fleets as Kthena's own controllers left them (modelserving spec 2, 3.15, 4.2).

Written down manifest by manifest from the specification's tables, with nothing of the project's:
names, labels, variables, owners, snapshots, services and PodGroups of v0.1 and of the newest
version. Revisions and hashes are such as that program computes, and mean nothing to anybody else.
"""

import copy
from dataclasses import dataclass
from typing import Any

from tests.support.kube_calls import KubeCalls, path_of

Document = dict[str, Any]

GROUP = "workload.serving.volcano.sh"
LABEL = "modelserving.volcano.sh"
NAME_LABEL, GROUP_LABEL = f"{LABEL}/name", f"{LABEL}/group-name"
ROLE_LABEL, ID_LABEL, ENTRY_LABEL = f"{LABEL}/role", f"{LABEL}/role-id", f"{LABEL}/entry"
REVISION_LABEL, HASH_LABEL = f"{LABEL}/revision", f"{LABEL}/role-template-hash"
VOLCANO = "scheduling.volcano.sh"
OLD, NEW = "67b8d4b8c7", "5f9d6c8b4d"
HASHES = {("prefill", OLD): "b4d8c6", ("decode", OLD): "c9f5", ("prefill", NEW): "8d7b6f"}
NAME = "sample"


@dataclass(frozen=True)
class KthenaFleet:
    """A ModelServing with prefill (an entry and two workers) and decode (two replicas alone)."""

    first: bool
    """v0.1; otherwise the newest version."""
    gang: bool = False
    scheduler: str = "volcano"
    pod_groups: bool = True
    """Whether PodGroups are served."""
    revisions: tuple[str, ...] = (OLD, OLD)
    """What each group was built from."""

    @property
    def is_rolling(self) -> bool:
        """Whether a partition holds some groups back."""
        return NEW in self.revisions

    @property
    def has_pod_groups(self) -> bool:
        """Whether groups have PodGroups: always with the newest, for a gang alone with v0.1."""
        if not self.pod_groups:
            return False
        return self.gang if self.first else self.scheduler == "volcano"

    def serving(self) -> Document:
        """The object as its user wrote it."""
        template: Document = {"roles": self.roles(self.revisions[-1])}
        if self.gang:
            template["gangPolicy"] = {"minRoleReplicas": {"prefill": 1, "decode": 1}}
        spec: Document = {
            "replicas": len(self.revisions),
            "schedulerName": self.scheduler,
            "recoveryPolicy": "RoleRecreate",
            "template": template,
        }
        if self.is_rolling:
            partition = self.revisions.count(OLD)
            spec["rolloutStrategy"] = {
                "type": "ServingGroupRollingUpdate",
                "rollingUpdateConfiguration": {"partition": partition, "maxUnavailable": 1},
            }
        return {
            "apiVersion": f"{GROUP}/v1alpha1",
            "kind": "ModelServing",
            "metadata": {"name": NAME},
            "spec": spec,
        }

    def roles(self, revision: str) -> list[Document]:
        """Its roles at a revision."""
        image = "vllm:1" if revision == OLD else "vllm:2"
        return [
            {
                "name": "prefill",
                "replicas": 1,
                "workerReplicas": 2,
                "entryTemplate": _template(image, "entry"),
                "workerTemplate": _template(image, "worker"),
            },
            {
                "name": "decode",
                "replicas": 2,
                "workerReplicas": 0,
                "entryTemplate": _template("vllm:1", "decode"),
            },
        ]

    def pods(self, namespace: str, owner: Document) -> list[Document]:
        """The pods of all groups."""
        return [
            self._pod(namespace, owner, group, role, ordinal, index)
            for group, revision in enumerate(self.revisions)
            for role in self.roles(revision)
            for ordinal in range(role["replicas"])
            for index in range(role["workerReplicas"] + 1)
        ]

    def _pod(
        self, namespace: str, owner: Document, group: int, role: Document, ordinal: int, index: int
    ) -> Document:
        revision, replica = self.revisions[group], f"{role['name']}-{ordinal}"
        entry = f"{NAME}-{group}-{replica}-0"
        template = copy.deepcopy(role["workerTemplate" if index else "entryTemplate"])
        labels = {
            NAME_LABEL: NAME,
            GROUP_LABEL: f"{NAME}-{group}",
            ROLE_LABEL: role["name"],
            ID_LABEL: replica,
            REVISION_LABEL: revision,
        }
        if not index:
            labels[ENTRY_LABEL] = "true"
        if not self.first:
            labels[HASH_LABEL] = HASHES[role["name"], revision if role["name"] != "decode" else OLD]
        annotations = {}
        if self.has_pod_groups:
            annotations = {"scheduling.k8s.io/group-name": f"{NAME}-{group}"}
            annotations["volcano.sh/task-spec"] = replica
        spec = template["spec"]
        if not (self.first and index):
            spec["schedulerName"] = self.scheduler
        for container in [*spec.get("initContainers", []), *spec["containers"]]:
            _inject(container, GROUP_SIZE=str(role["workerReplicas"] + 1))
            _inject(container, ENTRY_ADDRESS=f"{entry}.{namespace}", WORKER_INDEX=str(index))
            container["volumeMounts"] = [*container.get("volumeMounts", []), TOKEN_MOUNT]
        spec["volumes"] = [*spec.get("volumes", []), TOKEN_VOLUME]
        spec["tolerations"] = [*spec.get("tolerations", []), *DEFAULT_TOLERATIONS]
        return {
            "metadata": {
                "name": f"{NAME}-{group}-{replica}-{index}",
                "labels": {**labels, **template["metadata"].get("labels", {})},
                "annotations": annotations,
                "ownerReferences": [owner],
            },
            "spec": spec,
        }

    def services(self, pods: list[Document], owner: Document) -> list[Document]:
        """The headless services of roles with workers."""
        return [
            self._service(pod["metadata"], owner)
            for pod in pods
            if pod["metadata"]["labels"].get(ENTRY_LABEL)
            and pod["metadata"]["labels"][ROLE_LABEL] == "prefill"
        ]

    def _service(self, entry: Document, owner: Document) -> Document:
        labels = entry["labels"]
        own = {key: labels[key] for key in (GROUP_LABEL, ROLE_LABEL, ID_LABEL)}
        selector = dict(labels) if self.first else {**own, ENTRY_LABEL: "true"}
        return {
            "metadata": {
                "name": entry["name"],
                "labels": own if self.first else {NAME_LABEL: NAME, **own},
                "ownerReferences": [owner],
            },
            "spec": {
                "clusterIP": "None",
                "publishNotReadyAddresses": True,
                "selector": selector,
            },
        }

    def snapshots(self, owner: Document) -> list[Document]:
        """The ControllerRevisions: v0.1 made none."""
        if self.first:
            return []
        return [
            {
                "metadata": {
                    "name": f"{NAME}-{revision}",
                    "labels": {NAME_LABEL: NAME, REVISION_LABEL: revision},
                    "ownerReferences": [owner],
                },
                "data": {"data": [_typed(role) for role in self.roles(revision)]},
                "revision": number,
            }
            for number, revision in enumerate(sorted(set(self.revisions), reverse=True), 1)
        ]

    def groups(self, owner: Document) -> list[Document]:
        """The PodGroups."""
        if not self.has_pod_groups:
            return []
        least = 3 + (1 if self.gang else 2)
        owner = {name: value for name, value in owner.items() if name != "blockOwnerDeletion"}
        return [
            {
                "apiVersion": f"{VOLCANO}/v1beta1",
                "kind": "PodGroup",
                "metadata": {
                    "name": f"{NAME}-{group}",
                    "labels": {NAME_LABEL: NAME, GROUP_LABEL: f"{NAME}-{group}"},
                    "annotations": {"scheduling.k8s.io/group-name": f"{NAME}-{group}"},
                    "ownerReferences": [owner],
                },
                "spec": {
                    "minMember": least,
                    "minResources": {"cpu": str(least), "memory": f"{2 * least}Gi"},
                    **(self._tasks() if self.first else self._subgroups()),
                },
            }
            for group in range(len(self.revisions))
        ]

    def _tasks(self) -> Document:
        return {"minTaskMember": {"prefill-0": 3, "decode-0": 1}}

    def _subgroups(self) -> Document:
        sizes = {"prefill": (3, 1), "decode": (1, 1 if self.gang else 2)}
        return {
            "queue": "default",
            "subGroupPolicy": [
                {
                    "name": role,
                    "labelSelector": {"matchLabels": {NAME_LABEL: NAME, ROLE_LABEL: role}},
                    "matchLabelKeys": [ID_LABEL],
                    "subGroupSize": size,
                    "minSubGroups": least,
                }
                for role, (size, least) in sizes.items()
            ],
        }

    def status(self) -> Document:
        """The status that was written last."""
        number, updated = len(self.revisions), self.revisions.count(self.revisions[-1])
        counts = {
            "observedGeneration": 1,
            "replicas": number,
            "availableReplicas": number,
            "updatedReplicas": updated,
            "currentReplicas": number - updated if self.is_rolling else updated,
            "conditions": [
                {
                    "type": "Available",
                    "status": "True",
                    "reason": "AllGroupsReady",
                    "message": "All Serving groups are ready",
                    "lastTransitionTime": "2026-01-01T00:00:00Z",
                }
            ],
        }
        if self.first:
            return counts
        items = (ENTRY_LABEL + "=true", f"{NAME_LABEL}={NAME}", f"{ID_LABEL}=prefill-0")
        return {
            **counts,
            "currentRevision": self.revisions[0],
            "updateRevision": self.revisions[-1],
            "labelSelector": ",".join([*items, f"{ROLE_LABEL}=prefill"]),
        }

    async def install(self, calls: KubeCalls, namespace: str) -> Document:
        """Put everything there, as it stands after those controllers; answers the object."""
        place = path_of("modelservings", namespace, group=GROUP, version="v1alpha1")
        made = await calls.post(place, self.serving())
        assert made.code == 201, made
        owner = {
            "apiVersion": f"{GROUP}/v1alpha1",
            "kind": "ModelServing",
            "name": NAME,
            "uid": made.body["metadata"]["uid"],
            "controller": True,
            "blockOwnerDeletion": True,
        }
        pods = self.pods(namespace, owner)
        for path, documents in (
            (path_of("controllerrevisions", namespace, group="apps"), self.snapshots(owner)),
            (
                path_of("podgroups", namespace, group=VOLCANO, version="v1beta1"),
                self.groups(owner),
            ),
            (path_of("pods", namespace), pods),
            (path_of("services", namespace), self.services(pods, owner)),
        ):
            for document in documents:
                answer = await calls.post(path, document)
                assert answer.code == 201, answer
        answer = await calls.merge(f"{place}/{NAME}/status", {"status": self.status()})
        assert answer.ok, answer
        return answer.body


def _template(image: str, word: str) -> Document:
    return {
        "metadata": {"labels": {"team": "blue"}},
        "spec": {
            "initContainers": [{"name": "fetch", "image": "busybox:1"}],
            "containers": [
                {
                    "name": "engine",
                    "image": image,
                    "args": ["--as", word],
                    "env": [
                        {"name": "EMPTY", "value": ""},
                        {"name": "WORKER_INDEX", "value": "none"},
                        {"name": "WORD", "value": word},
                    ],
                    "resources": {"requests": {"cpu": "1000m", "memory": "2048Mi"}},
                    "volumeMounts": [{"name": "cache", "mountPath": "/cache", "readOnly": False}],
                }
            ],
            "volumes": [{"name": "cache", "emptyDir": {}}],
            "tolerations": [{"key": "gpu", "operator": "Exists"}],
            "nodeSelector": {},
        },
    }


def _inject(container: Document, **variables: str) -> None:
    """Variables at the end, in place of those of the same names."""
    own = [one for one in container.get("env", []) if one["name"] not in variables]
    injected = [{"name": name, "value": value} for name, value in variables.items()]
    container["env"] = [*own, *injected]


def _typed(role: Document) -> Document:
    """A role as a program writes it that has read it into types: what is empty is left out."""
    found = copy.deepcopy(role)
    found["maxUnavailable"] = 1
    for part in ("entryTemplate", "workerTemplate"):
        if part not in found:
            continue
        spec = found[part]["spec"]
        del spec["nodeSelector"]
        for container in [*spec["initContainers"], *spec["containers"]]:
            container.setdefault("resources", {})
            for variable in container.get("env", []):
                if not variable["value"]:
                    del variable["value"]
            for mount in container.get("volumeMounts", []):
                del mount["readOnly"]
            if "requests" in container["resources"]:
                container["resources"]["requests"] = {"cpu": "1", "memory": "2Gi"}
    return found


TOKEN_VOLUME = {"name": "kube-api-access-7xk2p", "projected": {"sources": []}}
TOKEN_MOUNT = {
    "name": "kube-api-access-7xk2p",
    "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount",
    "readOnly": True,
}
DEFAULT_TOLERATIONS = [
    {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
    for key in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
]
"""What admission gives to every pod."""
