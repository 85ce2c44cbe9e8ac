"""The node agent's outside on Kubernetes: pods, statuses and configuration of the API server.

Invariant: nothing is written about a pod whose uid is another than the agent meant, and while the
API server is away nothing changes: the pods run on and their statuses wait.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from inferbus_contracts.errors import ErrorCode, Problem, ProblemsError
from inferbus_contracts.keys import ObjectKey
from inferbus_node_agent.policy_environment import SourceKind, SourceName
from inferbus_node_agent.ports import Document
from inferbus_shared.kube.client import KubeClient
from inferbus_shared.kube.problems import KubeError
from inferbus_shared.kube.reflector import Reflector
from inferbus_shared.kube.resources import CONFIG_MAP, POD, SECRET
from inferbus_shared.kube.transport import STRATEGIC_MERGE_PATCH

MANAGER = "inferbus-node-agent"
_RESOURCES = {SourceKind.CONFIG_MAP: CONFIG_MAP, SourceKind.SECRET: SECRET}
_ABSENT: Mapping[str, Any] = {"reason": None, "message": None}
"""Fields of a status that go when it doesn't name them."""
_OF_EVERY_WRITE = frozenset({"managedFields", "resourceVersion"})


def wanted_part(document: Mapping[str, Any]) -> Document:
    """What a pod's object wants, without what changes at every status that the agent reports."""
    metadata = {
        name: value for name, value in document["metadata"].items() if name not in _OF_EVERY_WRITE
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": document.get("spec") or {},
    }


class ApiPods:
    """A `PodPicture` of the API server's pods."""

    def __init__(self, reflector: Reflector[Document]) -> None:
        """`reflector` holds pods, read by `wanted_part`."""
        self._reflector = reflector

    async def ready(self) -> None:
        """Wait for the first complete list."""
        await self._reflector.ready()

    def on_change(self, listener: Callable[[ObjectKey], None]) -> None:
        """Call back with the key of every pod that changed or went."""
        self._reflector.on_change(listener)

    def pods(self) -> Iterable[tuple[ObjectKey, Document]]:
        """All of them."""
        return self._reflector.items()

    def pod(self, key: ObjectKey) -> Document | None:
        """One; None when there is none."""
        return self._reflector.get(key)


class ApiStatuses:
    """A `StatusSink`: the status subresource of pods, and their deletion."""

    def __init__(self, client: KubeClient) -> None:
        self._client = client

    async def report(self, key: str, uid: str, status: Document) -> None:
        """Set the status of a pod, if it is still the same one.

        Conditions that others tell of the pod stay, as with the kubelet: readiness gates are such.
        """
        pod = ObjectKey.parse(key)
        change = {"metadata": {"uid": uid}, "status": {**_ABSENT, **status}}
        try:
            await self._client.patch(
                POD,
                pod.namespace,
                pod.name,
                change,
                content_type=STRATEGIC_MERGE_PATCH,
                subresource="status",
                manager=MANAGER,
            )
        except KubeError as error:
            if any(problem.field == "metadata.uid" for problem in error.problems):
                raise _replaced(key, uid) from None
            raise

    async def finalise(self, key: str, uid: str) -> None:
        """Remove the object of a pod that has stopped, if it is still the same one."""
        pod = ObjectKey.parse(key)
        await self._client.delete(POD, pod.namespace, pod.name, uid=uid, grace_period_seconds=0)


def _replaced(key: str, uid: str) -> ProblemsError:
    """A pod's uid never changes, which is what the API server says in a case like this."""
    return ProblemsError(
        Problem(
            code=ErrorCode.CONFLICT,
            message="another pod has this name now",
            object=key,
            field="metadata.uid",
            value=uid,
            remedy="nothing to do: what was to be told of the pod concerns nobody any more",
        )
    )


class ApiConfigs:
    """A `ConfigSource`: ConfigMaps and Secrets as they stand when a container needs them.

    Nothing is kept: the values of a Secret are in memory until its container is prepared.
    """

    def __init__(self, client: KubeClient) -> None:
        self._client = client

    async def get(self, namespace: str, name: SourceName) -> Document | None:
        """The object; None when there is none."""
        return await self._client.get(_RESOURCES[name.kind], namespace, name.name)
