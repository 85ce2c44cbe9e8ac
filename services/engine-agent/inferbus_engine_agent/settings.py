"""The settings of the sidecar that its command line doesn't have.

Invariant: every wait of the sidecar has a bound, and it is set here.
"""

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict


class AgentSettings(BaseSettings):
    """Prefix `INFERBUS_ENGINE_AGENT_`; real seconds."""

    model_config = SettingsConfigDict(
        env_prefix="INFERBUS_ENGINE_AGENT_",
        frozen=True,
        extra="ignore",
        use_attribute_docstrings=True,
    )

    health_timeout_seconds: float = Field(default=0.8, gt=0, le=60)
    """How long the engine may take to say that it is healthy; below the probe's own second."""
    scrape_timeout_seconds: float = Field(default=5.0, gt=0, le=300)
    """How long the engine may take for its metrics page."""
    adapter_timeout_seconds: float = Field(default=300.0, gt=0, le=3600)
    """How long the engine may take to load or unload an adapter."""


class PodSettings(BaseSettings):
    """What the pod knows of itself, prefix `INFERBUS_`."""

    model_config = SettingsConfigDict(
        env_prefix="INFERBUS_", frozen=True, extra="ignore", use_attribute_docstrings=True
    )

    pod_ip: str = ""
    """The pod's own address; set where pods are processes of one machine."""
