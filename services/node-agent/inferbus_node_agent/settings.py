"""The settings of the node agent."""

from ipaddress import IPv4Network
from pathlib import Path
from typing import ClassVar

from pydantic import Field
from pydantic_settings import SettingsConfigDict

from inferbus_contracts.services import Service
from inferbus_node_agent.plan import Timing
from inferbus_node_agent.policy_containers import EngineMode
from inferbus_shared.processes.logs import LogLimit
from inferbus_shared.settings import ServiceSettings, SubstrateName


class NodeAgentSettings(ServiceSettings):
    """Prefix `INFERBUS_NODE_AGENT_`."""

    model_config = SettingsConfigDict(
        env_prefix="INFERBUS_NODE_AGENT_",
        frozen=True,
        extra="ignore",
        use_attribute_docstrings=True,
    )
    service: ClassVar[Service] = Service.NODE_AGENT

    substrate: SubstrateName = SubstrateName.PROCESSES
    """Where pods come from: the objects bucket, or a Kubernetes API server."""
    node: str = Field(default="local", min_length=1, max_length=253)
    """The name of this machine in the pods' `spec.nodeName`."""
    directory: Path = Path(".inferbus")
    """The platform's directory: `run/` for pods, `volumes/` for host paths and claims."""
    secrets: Path | None = None
    """Where the values of Secrets are kept; None: `secrets` in the directory."""
    subnet: IPv4Network | None = None
    """The platform's part of 127.0.0.0/8, as the supervisor claimed it; None: claim one."""
    engines: EngineMode = EngineMode.SIMULATED
    """What containers run as: simulators, or themselves."""
    fork_server_socket: Path | None = None
    """Where the fork server listens; None: `fork.sock` in the directory."""
    fork_server_log: Path | None = None
    """Where a fork server of this agent's logs; None: `fork-server.log` beside the socket."""
    preload: tuple[str, ...] = (
        "inferbus_engine_simulator.main",
        "inferbus_engine_simulator.responder",
        "inferbus_engine_agent.main",
        "inferbus_node_agent.pause",
    )
    """Modules that a fork server which this agent starts imports first (a JSON list)."""
    restart_backoff_seconds: float = Field(default=10.0, gt=0)
    """Virtual seconds before the second restart of a container; doubles with each further one."""
    restart_backoff_max_seconds: float = Field(default=300.0, gt=0)
    simulated_start_up_seconds: float = Field(default=0.0, ge=0)
    """Cap, in virtual seconds, of `initialDelaySeconds` for simulated containers: what the manifest
    allows for loading a real model."""
    quick_probe_ms: int = Field(default=100, ge=10)
    """Real milliseconds between the first probes of a simulated container that isn't ready yet."""
    quick_probe_max_ms: int = Field(default=250, ge=10)
    log_max_bytes: int = Field(default=8 * 1024 * 1024, ge=65536)
    """Size at which a container's log is cut."""
    log_generations: int = Field(default=2, ge=0, le=100)
    """Older parts of a log that are kept."""

    @property
    def secrets_directory(self) -> Path:
        """Where the values of Secrets are kept."""
        return self.secrets or self.directory.absolute() / "secrets"

    @property
    def socket_path(self) -> Path:
        """Where the fork server listens."""
        return self.fork_server_socket or self.directory.absolute() / "fork.sock"

    @property
    def fork_server_log_path(self) -> Path:
        """Where a fork server of this agent's logs."""
        return self.fork_server_log or self.socket_path.with_name("fork-server.log")

    @property
    def log_limit(self) -> LogLimit:
        """How much of a container's output is kept."""
        return LogLimit(self.log_max_bytes, self.log_generations)

    def timing(self, clock_rate: float) -> Timing:
        """The core's times, in virtual milliseconds."""
        defaults = Timing()
        return Timing(
            backoff_first_ms=round(self.restart_backoff_seconds * 1000),
            backoff_most_ms=round(self.restart_backoff_max_seconds * 1000),
            quick_first_ms=round(self.quick_probe_ms * clock_rate),
            quick_most_ms=round(max(self.quick_probe_max_ms, self.quick_probe_ms) * clock_rate),
            quick_window_ms=round(defaults.quick_window_ms * clock_rate),
            retry_ms=round(defaults.retry_ms * clock_rate),
            orphan_grace_ms=round(defaults.orphan_grace_ms * clock_rate),
        )
