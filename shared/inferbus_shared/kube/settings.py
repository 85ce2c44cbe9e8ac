"""How a service reaches the Kubernetes API server, and how hard it may press it.

Invariant: the settings name at most one way in. A server's address wins over nothing else: with a
kubeconfig beside it they are refused.
"""

from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import Field, field_validator, model_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict


class KubeSettings(BaseSettings):
    """Prefix `INFERBUS_KUBE_`. Without `server` and `kubeconfig` the service runs in the cluster.

    Then address, token and CA are those that the kubelet put into the pod (Kubernetes, "Accessing
    the Kubernetes API from a Pod").
    """

    model_config = SettingsConfigDict(
        env_prefix="INFERBUS_KUBE_", frozen=True, extra="ignore", use_attribute_docstrings=True
    )

    server: str = ""
    """`https://host:port` of the API server; goes with `token_file` and `ca_file`."""
    token_file: Path | None = None
    """Holds the bearer token for `server`; read again every minute, because tokens rotate."""
    ca_file: Path | None = None
    """PEM file with the certificates that sign `server`'s; None: those the system trusts."""
    kubeconfig: Path | None = None
    """A kubeconfig file, exec plugins and OIDC included."""
    context: str = ""
    """The context of `kubeconfig`; empty: its current one."""
    namespaces: Annotated[tuple[str, ...], NoDecode] = ()
    """The only namespaces that are looked at, separated by commas; empty: all."""

    max_connections: int = Field(default=64, ge=1, le=1024)
    """Connections for calls; each watch has its own beside them."""
    max_concurrent_writes: int = Field(default=32, ge=1, le=1024)
    requests_per_second: float = Field(default=0.0, ge=0.0)
    """How many calls may begin per second, a second's worth at once; 0: as many as there are."""
    connect_timeout_seconds: float = Field(default=5.0, gt=0.0, le=300.0)
    read_timeout_seconds: float = Field(default=30.0, gt=0.0, le=300.0)
    """The longest silence during a call."""
    watch_timeout_seconds: int = Field(default=270, ge=1, le=3600)
    """After how long the server is asked to end a watch; each watch takes up to a tenth more."""
    watch_margin_seconds: float = Field(default=15.0, gt=0.0, le=300.0)
    """A watch that is silent for this much longer than its time is taken for dead."""
    discovery_poll_seconds: float = Field(default=10.0, gt=0.0, le=3600.0)
    """How often to look whether a resource that isn't served is by now."""
    page_size: int = Field(default=500, ge=1, le=10_000)
    """How many objects a page of a list holds at most."""

    @field_validator("namespaces", mode="before")
    @classmethod
    def _separated(cls, value: Any) -> Any:
        if not isinstance(value, str):
            return value
        return tuple(part.strip() for part in value.split(",") if part.strip())

    @model_validator(mode="after")
    def _one_way_in(self) -> Self:
        if self.server and self.kubeconfig:
            raise ValueError("give a server or a kubeconfig, not both")
        if self.server and not self.server.startswith(("https://", "http://")):
            raise ValueError("the server must begin with https:// or http://")
        return self
