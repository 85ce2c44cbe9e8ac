"""Which processes make a platform, and with what environment each runs.

Pure: everything that was chosen is handed in. Every process has an address of its own in the
platform's subnet for its metrics and health pages, so that no port has to be chosen or found.
"""

import ipaddress
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from inferbus_cli.platform.directory import PlatformDirectory, PlatformState
from inferbus_contracts.services import Service
from inferbus_shared.processes.addresses import RESERVED_ADDRESSES

SIMULATOR_PREFIX = "INFERBUS_ENGINE_SIMULATOR_"
"""Settings of simulated engines, which the node agent hands on."""

KUBE_PREFIX = "INFERBUS_KUBE_"
"""How services reach an API server; one service's own have its prefix instead of `INFERBUS_`."""

HEALTH_PORT = 9100
"""On the address of each process."""
FIRST_ADDRESS = 2
"""In the subnet; the one before it holds the claim."""
MOST_PROCESSES = RESERVED_ADDRESSES - FIRST_ADDRESS
"""As many as there are addresses for."""
DEFAULT_STARTUP_SECONDS = 1
"""Of a simulated engine: long enough to be seen starting, too short to wait for."""

ROUTER_SOCKET = "router"
ROUTER_DESCRIPTOR = 3
SUBNET_SOCKET = "subnet"

NATS = "nats"
PROVISION = "provision"

SERVICES = (
    Service.SPEC_WATCHER,
    Service.WORKLOAD_RECONCILER,
    Service.NODE_AGENT,
    Service.ROUTER_CONFIG_PUBLISHER,
    Service.ROUTER,
    Service.METRICS_COLLECTOR,
    Service.AUTOSCALER,
    Service.OPTIMIZER,
    Service.MODEL_DOWNLOADER,
    Service.CONSOLE,
)
"""In the order they are started: what a first request needs comes first."""

SINGLE = frozenset({Service.NODE_AGENT})
"""One per machine, whatever is asked for."""

PRELOADED = (
    "inferbus_shared.bus.service",
    "inferbus_shared.bus.folding",
    "inferbus_shared.bus.membership",
    "inferbus_shared.bus.observer",
    "inferbus_engine_simulator.main",
    "inferbus_engine_simulator.responder",
    "inferbus_engine_agent.main",
    "inferbus_node_agent.pause",
    *(
        f"inferbus_{service.value.replace('-', '_')}.main"
        for service in SERVICES
        if service is not Service.MODEL_DOWNLOADER
    ),
)
"""What processes share in memory because the fork server imports it once."""


@dataclass(frozen=True, kw_only=True)
class PlatformOptions:
    """What `up` was asked for."""

    instances: Mapping[Service, int] = field(default_factory=dict)
    """How many of a service; one, and two routers, unless given."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """INFERBUS_… settings that win over the platform's own choices."""


@dataclass(frozen=True, kw_only=True)
class ProcessPlan:
    """One process of the platform."""

    name: str
    service: Service
    entry_point: str
    environment: Mapping[str, str]
    health_address: str
    listeners: Mapping[int, str] = field(default_factory=dict)

    @property
    def health_url(self) -> str:
        """Where its pages are."""
        return f"http://{self.health_address}:{HEALTH_PORT}"


def instances_of(service: Service, options: PlatformOptions) -> int:
    """How many processes of a service there are."""
    if service in SINGLE:
        return 1
    return options.instances.get(service, 2 if service is Service.ROUTER else 1)


def process_plans(
    directory: PlatformDirectory,
    state: PlatformState,
    options: PlatformOptions,
    subnet: ipaddress.IPv4Network,
    inherited: Mapping[str, str],
) -> list[ProcessPlan]:
    """The processes in starting order; `inherited` is the environment of who asked.

    Raises `ValueError` when there are more than the subnet has addresses for.
    """
    wanted = [
        (service, number)
        for service in SERVICES
        for number in range(instances_of(service, options))
    ]
    if len(wanted) > MOST_PROCESSES:
        raise ValueError(f"{len(wanted)} processes are more than the {MOST_PROCESSES} possible")
    plans = []
    for index, (service, number) in enumerate(wanted):
        address = str(subnet[FIRST_ADDRESS + index])
        several = instances_of(service, options) > 1
        name = f"{service.value}-{number}" if several else service.value
        module = f"inferbus_{service.value.replace('-', '_')}"
        routes = service is Service.ROUTER
        plans.append(
            ProcessPlan(
                name=name,
                service=service,
                entry_point=f"{module}.main:main",
                environment=_base(inherited)
                | _common(directory, state, service, name, address)
                | _own(directory, state, service, subnet)
                | _wished(options.environment, service),
                health_address=address,
                listeners={ROUTER_DESCRIPTOR: ROUTER_SOCKET} if routes else {},
            )
        )
    return plans


def _base(inherited: Mapping[str, str]) -> dict[str, str]:
    """What any program of this user needs; no settings of another platform."""
    return {name: value for name, value in inherited.items() if not name.startswith("INFERBUS_")}


def _common(
    directory: PlatformDirectory,
    state: PlatformState,
    service: Service,
    name: str,
    address: str,
) -> dict[str, str]:
    prefix = service.setting_prefix
    return {
        "INFERBUS_NATS_URL": f"nats://127.0.0.1:{state.nats_port}",
        "INFERBUS_NATS_CREDENTIALS": str(directory.credentials_of(service)),
        "INFERBUS_INSTANCE": name,
        "INFERBUS_CLOCK_RATE": repr(state.clock_rate),
        f"{prefix}HTTP_HOST": address,
        f"{prefix}HTTP_PORT": str(HEALTH_PORT),
    }


def _own(
    directory: PlatformDirectory,
    state: PlatformState,
    service: Service,
    subnet: ipaddress.IPv4Network,
) -> dict[str, str]:
    own: dict[Service, dict[str, str]] = {
        Service.SPEC_WATCHER: {
            "FOLDER": str(directory.manifests),
            "SECRETS": str(directory.secrets),
            "LOADER_TAKES_ARGUMENTS": "true",
        },
        Service.NODE_AGENT: {
            "NODE": state.node,
            "DIRECTORY": str(directory.node),
            "SECRETS": str(directory.secrets),
            "SUBNET": str(subnet),
            "ENGINES": state.engines,
            "FORK_SERVER_SOCKET": str(directory.fork_server_socket),
            "FORK_SERVER_LOG": str(directory.logs / "fork-server.log"),
            "PRELOAD": json_list(PRELOADED),
        },
        Service.WORKLOAD_RECONCILER: {"NODE": state.node},
        Service.MODEL_DOWNLOADER: {"NODE": state.node, "CACHE_DIR": str(directory.models)},
        Service.ROUTER: {
            "LISTEN_FD": str(ROUTER_DESCRIPTOR),
            "ACCESS_LOG_PATH": str(directory.logs / "access.log"),
            "GRACE_SECONDS": "10",
            "SECRETS": str(directory.secrets),
        },
    }
    prefix = service.setting_prefix
    settings = {f"{prefix}{name}": value for name, value in own.get(service, {}).items()}
    if service is Service.NODE_AGENT:
        settings[f"{SIMULATOR_PREFIX}STARTUP_SECONDS"] = str(DEFAULT_STARTUP_SECONDS)
    return settings


def _wished(environment: Mapping[str, str], service: Service) -> dict[str, str]:
    """What was asked for, with the service's own identity at the API server if it has one.

    In a cluster each service has an environment of its own, and so a service account; here one
    environment is given to all of them, e.g. `INFERBUS_SPEC_WATCHER_KUBE_TOKEN_FILE`.
    """
    own = f"{service.setting_prefix}KUBE_"
    return {
        **environment,
        **{
            f"{KUBE_PREFIX}{name.removeprefix(own)}": value
            for name, value in environment.items()
            if name.startswith(own)
        },
    }


def json_list(values: Sequence[str]) -> str:
    """A list as a setting takes it."""
    quoted = ", ".join(f'"{value}"' for value in values)
    return f"[{quoted}]"
