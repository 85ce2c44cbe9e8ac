"""A platform on an API server, used as its users do: objects by server-side apply, answers from the
router.

Every service has an account of its own there. The node agent of the platform is the cluster's only
kubelet; the cluster's controllers that the platform doesn't replace are played by `kube_cluster`.
"""

import asyncio
import contextlib
import uuid
from collections.abc import AsyncIterator, Mapping
from functools import partial
from typing import Any

from inferbus_contracts.errors import ErrorCode
from inferbus_contracts.resources.kinds import KINDS, LEADER_WORKER_SET, key_of
from inferbus_contracts.services import Service
from inferbus_shared.kube.client import KubeClient
from inferbus_shared.kube.problems import KubeError
from inferbus_shared.kube.resources import (
    CUSTOM_RESOURCE_DEFINITION,
    NAMESPACE,
    NODE,
    POD,
    ApiResource,
    resource_of,
)
from inferbus_shared.kube.settings import KubeSettings
from inferbus_shared.kube.transport import MERGE_PATCH
from tests.fakes.kubernetes.crds import leader_worker_set_definition
from tests.support.eventually import eventually
from tests.support.kube import KubeServer
from tests.support.kube_calls import KubeCalls
from tests.support.kube_cluster import KubeCluster
from tests.support.kube_manifests import manifests
from tests.support.platform import Answer, Platform, engines, running_platform

ON_KUBERNETES = (Service.SPEC_WATCHER, Service.WORKLOAD_RECONCILER, Service.NODE_AGENT)
"""The services whose substrate is a setting."""
MANAGER = "kubectl"
SCHEDULING_SECONDS = 0.05
COLLECTING_SECONDS = 0.5
_RBAC = ("rbac.authorization.k8s.io", "v1")
CLUSTER_ROLE_BINDING = ApiResource(
    *_RBAC, "clusterrolebindings", "ClusterRoleBinding", namespaced=False
)
_RIGHTS = {
    one.kind: one
    for one in (
        NAMESPACE,
        CLUSTER_ROLE_BINDING,
        ApiResource(*_RBAC, "clusterroles", "ClusterRole", namespaced=False),
        ApiResource(*_RBAC, "roles", "Role"),
        ApiResource(*_RBAC, "rolebindings", "RoleBinding"),
        ApiResource("", "v1", "serviceaccounts", "ServiceAccount"),
    )
}
_KUBELET = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRoleBinding",
    "metadata": {"name": "node-agents-are-kubelets"},
    "roleRef": {
        "apiGroup": "rbac.authorization.k8s.io",
        "kind": "ClusterRole",
        "name": "system:node",
    },
    "subjects": [
        {
            "kind": "ServiceAccount",
            "namespace": "inferbus",
            "name": Service.NODE_AGENT.value,
        }
    ],
}

Document = dict[str, Any]


def platform_settings(server: KubeServer, namespace: str, node: str) -> dict[str, str]:
    """The settings of a platform that works on one namespace of a cluster, as one node of it."""
    settings = {
        "INFERBUS_KUBE_SERVER": server.url,
        "INFERBUS_KUBE_NAMESPACES": namespace,
        f"{Service.NODE_AGENT.setting_prefix}NODE": node,
    }
    if server.ca_file is not None:
        settings["INFERBUS_KUBE_CA_FILE"] = str(server.ca_file)
    for service in ON_KUBERNETES:
        own = server.token_file(service.value)
        settings[f"{service.setting_prefix}SUBSTRATE"] = "kubernetes"
        settings[f"{service.setting_prefix}KUBE_TOKEN_FILE"] = str(own)
    return settings


class KubePlatform:
    """A platform and the namespace that it works on; `platform_on` makes and ends both.

    Its one machine is called as the namespace is.
    """

    def __init__(self, platform: Platform, client: KubeClient, namespace: str) -> None:
        self.platform = platform
        self.client = client
        self.namespace = namespace

    async def apply(self, *documents: Mapping[str, Any]) -> None:
        """As `kubectl apply --server-side` does, one after the other."""
        for document in documents:
            resource = resource_of(key_of(document).kind)
            metadata = dict(document["metadata"])
            if resource.namespaced:
                metadata["namespace"] = self.namespace
            await self.client.apply(
                resource, {**document, "metadata": metadata}, manager=MANAGER, force=True
            )

    async def get(self, kind: str, name: str) -> Document | None:
        """One object of the namespace, by its kind's token; None when there is none."""
        return await self.client.get(resource_of(kind), self.namespace, name)

    async def delete(self, kind: str, name: str) -> None:
        """As `kubectl delete` does."""
        await self.client.delete(resource_of(kind), self.namespace, name)

    async def taint(self, key: str) -> None:
        """Keep pods off the node agent's machine, as `kubectl taint nodes` does."""
        taints = [{"key": key, "value": "test", "effect": "NoExecute"}]
        await self.client.patch(
            NODE, "", self.namespace, {"spec": {"taints": taints}}, content_type=MERGE_PATCH
        )

    async def pods(self) -> list[Document]:
        """All pods of the namespace, those that end included."""
        return (await self.client.list(POD, self.namespace)).items

    async def ready_pods(self) -> list[Document]:
        """Those that are ready and not asked to end."""
        return [pod for pod in await self.pods() if _is_ready(pod)]

    async def left(self) -> list[str]:
        """What is in the namespace of all kinds that the platform makes, as `kind/name`."""
        kinds = [resource_of(kind) for kind in KINDS]
        served = [one for one in kinds if one.namespaced and await self.client.serves(one)]
        return [
            f"{resource.kind}/{document['metadata']['name']}"
            for resource in served
            for document in (await self.client.list(resource, self.namespace)).items
        ]

    async def until_empty(self, timeout: float = 60.0) -> None:
        """Wait until nothing is left, neither an object nor a process."""

        async def empty() -> bool:
            left = [*await self.left(), *engines(self.platform)]
            assert not left, left
            return True

        await eventually(empty, timeout, "nothing is left")

    async def until_no_pods(self, timeout: float = 60.0) -> None:
        """Wait until there is neither a pod nor a process."""

        async def none() -> bool:
            return not await self.pods() and not engines(self.platform)

        await eventually(none, timeout, "no pods are left")

    async def every_pod_has_one_process(self) -> bool:
        """Whether each pod has one process, and each process a pod."""
        running = engines(self.platform)
        uids = {pod["metadata"]["uid"] for pod in await self.pods()}
        return running.keys() == uids and all(len(one) == 1 for one in running.values())

    async def complete(self, model: str, max_tokens: int = 3) -> Answer:
        """A short text completion, asked of the router."""
        return await asyncio.to_thread(self.platform.complete, model, max_tokens)

    async def until_it_serves(self, model: str, timeout: float = 60.0) -> None:
        """Wait until the router answers for a model with 200."""

        async def answers() -> bool:
            return (await self.complete(model)).status == 200

        await eventually(answers, timeout, f"{model} serves")

    async def until_ready(self, number: int, timeout: float = 60.0) -> list[Document]:
        """Wait until so many pods are there, and all of them are ready."""

        async def there() -> bool:
            return len(await self.ready_pods()) == number == len(await self.pods())

        await eventually(there, timeout, f"{number} pods are ready")
        return await self.pods()


def _is_ready(pod: Document) -> bool:
    conditions = pod.get("status", {}).get("conditions", ())
    ready = any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)
    return ready and "deletionTimestamp" not in pod["metadata"]


async def install(client: KubeClient) -> None:
    """The CRDs, served, and what each service may do; the node agent may do what a kubelet may.

    LeaderWorkerSets are served too, and no controller is there for them. What is there already
    stays as it is.
    """
    for definition in (*manifests("crds"), leader_worker_set_definition()):
        await _create(client, definition, CUSTOM_RESOURCE_DEFINITION)
    for kind, row in KINDS.items():
        if not row.supporting or kind == LEADER_WORKER_SET:
            await eventually(partial(client.serves, resource_of(kind)), 30, kind)
    if not await client.serves(CLUSTER_ROLE_BINDING):
        return
    for document in manifests("rbac"):
        await _create(client, document, _RIGHTS[document["kind"]])
    await _create(client, _KUBELET, CLUSTER_ROLE_BINDING)


async def _create(client: KubeClient, document: Document, resource: ApiResource) -> None:
    try:
        await client.create(resource, document)
    except KubeError as error:
        if error.code is not ErrorCode.ALREADY_EXISTS:
            raise


@contextlib.asynccontextmanager
async def platform_on(
    server: KubeServer, *options: str, environment: Mapping[str, str] | None = None
) -> AsyncIterator[KubePlatform]:
    """A platform on a namespace of its own of this API server; down and gone afterwards."""
    name = f"e2e-{uuid.uuid4().hex[:10]}"
    async with KubeClient(KubeSettings(**server.settings())) as client:
        await install(client)
        await client.create(
            NAMESPACE, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        )
        settings = {**platform_settings(server, name, name), **(environment or {})}
        async with (
            server.calls() as calls,
            _scheduler(calls, name).playing(SCHEDULING_SECONDS),
            _collector(calls, name).playing(COLLECTING_SECONDS),
            _in_a_thread(
                running_platform("--startup", "0", *options, environment=settings)
            ) as platform,
        ):
            yield KubePlatform(platform, client, name)


def _scheduler(calls: KubeCalls, name: str) -> KubeCluster:
    """Binds the namespace's pods to its one node, the node agent's; that runs and ends them."""
    scheduler = KubeCluster(calls, name, nodes=(name,), collects=False)
    scheduler.runs = scheduler.ends = _never
    return scheduler


def _collector(calls: KubeCalls, name: str) -> KubeCluster:
    """Collects garbage and nothing else; less often, because it asks for all kinds."""
    collector = KubeCluster(calls, name)
    collector.binds = collector.runs = collector.ends = _never
    return collector


def _never(_: Document) -> bool:
    return False


@contextlib.asynccontextmanager
async def _in_a_thread(
    manager: contextlib.AbstractContextManager[Platform],
) -> AsyncIterator[Platform]:
    """Begin and end it without holding up the cluster, which runs in this loop."""
    platform = await asyncio.to_thread(manager.__enter__)
    try:
        yield platform
    except BaseException as error:
        await asyncio.to_thread(manager.__exit__, type(error), error, error.__traceback__)
        raise
    await asyncio.to_thread(manager.__exit__, None, None, None)
