"""Wires the node agent: settings and adapters in, an agent that can be run out.

`main` gives it the bus or an API server, as the setting `substrate` says; another caller of
`build_agent` says where pods come from and where their status goes, see `ports`.
"""

import os
from collections.abc import Sequence

from inferbus_contracts.resources.kinds import POD
from inferbus_contracts.services import Service
from inferbus_node_agent.adapters_bus import BusConfigs, BusModels, BusPods, BusStatuses
from inferbus_node_agent.adapters_probes import SocketProber
from inferbus_node_agent.adapters_processes import ForkServerAddress, ProcessRuntime
from inferbus_node_agent.bound_pods import BoundPods
from inferbus_node_agent.effects import Effects
from inferbus_node_agent.handlers import AgentConfig, NodeAgent
from inferbus_node_agent.policy_environment import NodeFacts
from inferbus_node_agent.ports import Outside
from inferbus_node_agent.preparation import NodeContext, Preparation
from inferbus_node_agent.run_folder import RunFolder
from inferbus_node_agent.settings import NodeAgentSettings
from inferbus_shared.bus.folding import fold
from inferbus_shared.bus.service import Runtime, run_service
from inferbus_shared.clock import Clock
from inferbus_shared.objects.client import ObjectClient
from inferbus_shared.objects.picture import ObjectPicture
from inferbus_shared.objects.secrets import SecretFiles
from inferbus_shared.processes.addresses import Subnet, SubnetClaim, claim_subnet
from inferbus_shared.settings import SubstrateName

HOST_ADDRESS = "127.0.0.1"
FOLDED = ("model.ready", "model.failed")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the service; it takes no arguments."""
    del argv
    return run_service(Service.NODE_AGENT, NodeAgentSettings, serve)


async def serve(runtime: Runtime[NodeAgentSettings]) -> None:
    """Run the pods that the objects bucket or the API server binds to this node."""
    settings = runtime.settings
    claim = subnet_of(settings)
    models = BusModels(settings.node)
    await fold(runtime, FOLDED, models.take)
    if settings.substrate is SubstrateName.KUBERNETES:
        # Imported where it is needed: on one machine nobody pays for a Kubernetes client.
        from inferbus_node_agent.wiring_kubernetes import cluster

        outside = await cluster(runtime, node_facts(settings.node), models)
    else:
        outside = _platform(runtime, models)
    agent = build_agent(settings, claim.subnet, outside, runtime.bus.clock)
    runtime.background(_held(agent, claim), "agent")


def _platform(runtime: Runtime[NodeAgentSettings], models: BusModels) -> Outside:
    settings, bus = runtime.settings, runtime.bus
    picture = ObjectPicture(bus, POD)
    client = ObjectClient(bus, manager=Service.NODE_AGENT.value)
    runtime.background(picture.run(), "pods")
    return Outside(
        source=BoundPods(BusPods(picture), settings.node),
        sink=BusStatuses(client),
        configs=BusConfigs(client, SecretFiles(settings.secrets_directory)),
        models=models,
    )


async def _held(agent: NodeAgent, claim: SubnetClaim) -> None:
    """Run the agent; the claim on its addresses lasts as long."""
    try:
        await agent.run()
    finally:
        if claim.lock is not None:
            claim.lock.close()


def build_agent(
    settings: NodeAgentSettings, subnet: Subnet, outside: Outside, clock: Clock
) -> NodeAgent:
    """An agent; `run()` it."""
    directory = settings.directory.absolute()
    folder = RunFolder(directory / "run")
    server = ForkServerAddress(
        settings.socket_path, settings.fork_server_log_path, settings.preload
    )
    runtime = ProcessRuntime(folder, server, clock)
    context = NodeContext(
        mode=settings.engines,
        node=node_facts(settings.node),
        volumes=directory / "volumes",
        environment=os.environ,
    )
    preparation = Preparation(context, folder, outside.configs, clock)
    effects = Effects(preparation, folder, runtime, SocketProber(clock), outside.models, clock)
    config = AgentConfig(
        subnet=subnet,
        timing=settings.timing(clock.anchor.rate),
        simulated_delay_ms=round(settings.simulated_start_up_seconds * 1000),
        log_limit=settings.log_limit,
    )
    return NodeAgent(config, effects, runtime, folder, outside.source, outside.sink, clock)


def subnet_of(settings: NodeAgentSettings) -> SubnetClaim:
    """The subnet that the supervisor claimed, or else a claim of this agent's own.

    Raises `ProblemsError` (NO_ADDRESS_SPACE).
    """
    if settings.subnet is not None:
        return SubnetClaim(settings.subnet, None)
    settings.directory.mkdir(parents=True, exist_ok=True)
    return claim_subnet(settings.directory)


def node_facts(name: str) -> NodeFacts:
    """What this machine says of itself."""
    pages, page_bytes = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
    return NodeFacts(name, HOST_ADDRESS, os.cpu_count() or 1, pages * page_bytes)
