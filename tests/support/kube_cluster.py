"""The controllers of a cluster that an API server alone lacks: a scheduler and a garbage collector.

They work on one namespace, level by level, and only on what the API server shows.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

from inferbus_contracts.resources.kinds import KINDS
from inferbus_shared.kube.client import KubeClient
from inferbus_shared.kube.problems import KubeError
from inferbus_shared.kube.reflector import Reflector
from inferbus_shared.kube.resources import POD, ApiResource, resource_of

COLLECT_SECONDS = 0.25

Document = dict[str, Any]


@contextlib.asynccontextmanager
async def running_cluster(client: KubeClient, namespace: str, node: str) -> AsyncIterator[None]:
    """Bind the namespace's pods to a node and collect its garbage, until the block ends."""
    work = [asyncio.create_task(_schedule(client, namespace, node))]
    work.append(asyncio.create_task(_collect(client, namespace)))
    try:
        yield
    finally:
        for task in work:
            task.cancel()
        results = await asyncio.gather(*work, return_exceptions=True)
    for result in results:
        if isinstance(result, Exception):
            raise result


async def _schedule(client: KubeClient, namespace: str, node: str) -> None:
    unbound: asyncio.Queue[str] = asyncio.Queue()
    pods = Reflector(client, POD, namespaces=[namespace], read=dict)

    def look(key: Any) -> None:
        pod = pods.get(key)
        if pod is not None and not pod["spec"].get("nodeName"):
            unbound.put_nowait(key.name)

    pods.on_change(look)
    following = asyncio.create_task(pods.run())
    try:
        while True:
            await _bind(client, namespace, await unbound.get(), node)
    finally:
        following.cancel()


async def _bind(client: KubeClient, namespace: str, name: str, node: str) -> None:
    binding = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": name, "namespace": namespace},
        "target": {"apiVersion": "v1", "kind": "Node", "name": node},
    }
    path = f"pods/{name}/binding"
    with contextlib.suppress(KubeError):
        await client.create(ApiResource("", "v1", path, "Binding"), binding)


async def _collect(client: KubeClient, namespace: str) -> None:
    kinds = [resource_of(kind) for kind in KINDS]
    served = [one for one in kinds if one.namespaced and await client.serves(one)]
    while True:
        with contextlib.suppress(KubeError):
            found = [
                (resource, document)
                for resource in served
                for document in (await client.list(resource, namespace)).items
            ]
            alive = {document["metadata"]["uid"] for _, document in found}
            for resource, document in found:
                metadata = document["metadata"]
                owners = metadata.get("ownerReferences", ())
                if owners and not any(owner["uid"] in alive for owner in owners):
                    if "deletionTimestamp" in metadata:
                        continue
                    await client.delete(resource, namespace, metadata["name"], uid=metadata["uid"])
        await asyncio.sleep(COLLECT_SECONDS)
