"""Wires the node agent to a Kubernetes API server.

It has a module of its own because importing it imports a Kubernetes client.
"""

from contextlib import AsyncExitStack

from inferbus_node_agent.adapters_kubernetes import ApiConfigs, ApiPods, ApiStatuses, wanted_part
from inferbus_node_agent.adapters_kubernetes_node import NodeObject
from inferbus_node_agent.bound_pods import BoundPods
from inferbus_node_agent.policy_environment import NodeFacts
from inferbus_node_agent.ports import Document, ModelGate, Outside
from inferbus_node_agent.settings import NodeAgentSettings
from inferbus_shared.bus.service import Runtime
from inferbus_shared.kube.client import KubeClient
from inferbus_shared.kube.metrics import KubeMetrics
from inferbus_shared.kube.reflector import Reflector
from inferbus_shared.kube.resources import POD
from inferbus_shared.kube.settings import KubeSettings
from inferbus_shared.settings import load_settings


async def cluster(
    runtime: Runtime[NodeAgentSettings], facts: NodeFacts, models: ModelGate
) -> Outside:
    """The API server as the agent's outside, with the Node object of this machine kept on it.

    Raises `ProblemsError` (BAD_SETTING) where the settings name no way in.
    """
    clock = runtime.bus.clock
    stack = AsyncExitStack()
    metrics = KubeMetrics(runtime.service, runtime.registry)
    client = KubeClient(load_settings(KubeSettings), metrics=metrics)
    await stack.enter_async_context(client)
    runtime.on_stop(stack.aclose)
    pods = Reflector(client, POD, read=wanted_part)
    runtime.background(pods.run(), "pods")
    runtime.requires(lambda: {} if pods.problem is None else {"pods": str(pods.problem)})
    runtime.background(NodeObject(client, facts, clock).run(), "node")
    return outside_of(client, pods, facts.name, models)


def outside_of(
    client: KubeClient, pods: Reflector[Document], node: str, models: ModelGate
) -> Outside:
    """What an agent sees of the API server; `pods` is kept current by the caller."""
    return Outside(
        source=BoundPods(ApiPods(pods), node),
        sink=ApiStatuses(client),
        configs=ApiConfigs(client),
        models=models,
    )
