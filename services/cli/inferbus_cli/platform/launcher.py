"""Starting what a platform consists of: the fork server, the event log, streams, each process.

Invariant: every step finds what is there already, so all of it may be run again at any time.
"""

import os
from collections.abc import Mapping

from inferbus_cli.platform.directory import PlatformDirectory
from inferbus_cli.platform.embedded_nats import binary, wait_until_ready, write_config
from inferbus_cli.platform.family import Family
from inferbus_cli.platform.last_words import exit_code, said
from inferbus_cli.platform.plan import (
    NATS,
    PRELOADED,
    PROVISION,
    ROUTER_SOCKET,
    SUBNET_SOCKET,
    PlatformOptions,
    ProcessPlan,
    process_plans,
)
from inferbus_cli.platform.provision_request import ProvisionRequest
from inferbus_contracts.errors import ProblemsError
from inferbus_contracts.services import Service
from inferbus_shared.processes.addresses import Subnet, claim_subnet
from inferbus_shared.processes.client import ForkServerClient
from inferbus_shared.processes.commands import keep, listen, listeners
from inferbus_shared.processes.files import read_json
from inferbus_shared.processes.identity import ProcessIdentity
from inferbus_shared.processes.session import ChildEvent
from inferbus_shared.processes.start import start_fork_server

PROVISION_SECONDS = 30.0


class Launcher:
    """One platform's; methods raise `ProblemsError`, NOT_RUNNING when the fork server died."""

    def __init__(self, directory: PlatformDirectory) -> None:
        """`connect` comes before anything else."""
        self._directory = directory
        self._state = directory.state()
        self._client: ForkServerClient | None = None
        self._plans: dict[str, ProcessPlan] = {}

    @property
    def plans(self) -> Mapping[str, ProcessPlan]:
        """The services' processes by name; none before `connect`."""
        return self._plans

    def connect(self) -> None:
        """Find a fork server or start one, and put sockets and subnet into its hands."""
        if self._client is not None:
            self._client.close()
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
        log = self._directory.logs / "fork-server.log"
        start_fork_server(self._directory.fork_server_socket, PRELOADED, log, environment)
        self._client = ForkServerClient(self._directory.fork_server_socket)
        self._plan(self._claim_subnet(self._client))
        routers = [plan.name for plan in self._plans.values() if plan.service is Service.ROUTER]
        workers = [found for name in routers if (found := self.running(name)) is not None]
        self._client.call(listen(ROUTER_SOCKET, "127.0.0.1", self._state.router_port, workers))

    def next_event(self, seconds: float) -> ChildEvent | None:
        """The next beginning or end of a process; None when there is none in time."""
        assert self._client is not None
        return self._client.next_event(seconds)

    def running(self, name: str) -> ProcessIdentity | None:
        """The living process of that name; None where there is none."""
        return self._family.running(name)

    def start(self, name: str) -> ProcessIdentity:
        """Find or start the event log or a process of the plan."""
        if name == NATS:
            return self._start_nats()
        plan = self._plans[name]
        return self._family.find_or_start(
            plan.name,
            entry_point=plan.entry_point,
            environment=plan.environment,
            listeners=plan.listeners,
        )

    def provision(self) -> None:
        """Make streams, consumers and buckets what they should be."""
        environment = {
            **os.environ,
            "INFERBUS_NATS_URL": f"nats://127.0.0.1:{self._state.nats_port}",
            "INFERBUS_NATS_CREDENTIALS": str(self._directory.credentials_of(Service.PROVISIONER)),
        }
        self._family.find_or_start(
            PROVISION,
            entry_point="inferbus_cli.platform.provisioning:main",
            argv=[ProvisionRequest.of(self._directory, self._state).argument],
            environment=environment,
        )
        code = exit_code(self._directory, PROVISION, PROVISION_SECONDS)
        if code != 0:
            what = f"ended with exit code {code}"
            raise ProblemsError(said(self._directory, PROVISION, what))

    @property
    def _family(self) -> Family:
        assert self._client is not None
        return Family(self._directory, self._client)

    def _start_nats(self) -> ProcessIdentity:
        if self.running(NATS) is None:
            config = write_config(self._directory, self._state)
        else:
            config = self._directory.nats / "nats.conf"
        environment = {**os.environ, "GOMEMLIMIT": "128MiB"}
        argv = [str(binary()), "-c", str(config)]
        identity = self._family.find_or_start(NATS, argv=argv, environment=environment)
        wait_until_ready(self._directory)
        return identity

    def _claim_subnet(self, client: ForkServerClient) -> Subnet:
        memory = self._directory.root / "subnet.json"
        if SUBNET_SOCKET in client.call(listeners()):
            known = read_json(memory)
            assert known is not None, "a claimed subnet is remembered"
            return Subnet(known["subnet"])
        claim = claim_subnet(self._directory.root)
        assert claim.lock is not None
        client.call(keep(SUBNET_SOCKET, claim.lock.fileno()))
        claim.lock.close()
        return claim.subnet

    def _plan(self, subnet: Subnet) -> None:
        options = PlatformOptions(
            instances={Service(name): n for name, n in self._state.instances.items()},
            environment=self._state.environment,
        )
        plans = process_plans(self._directory, self._state, options, subnet, os.environ)
        self._plans = {plan.name: plan for plan in plans}
