"""Settings of the metrics collector, prefix `INFERBUS_METRICS_COLLECTOR_`."""

import os
from typing import Annotated, Any, ClassVar

from pydantic import BeforeValidator, Field
from pydantic_settings import NoDecode, SettingsConfigDict

from inferbus_contracts.services import Service
from inferbus_shared.settings import ServiceSettings


def _pairs(value: Any) -> Any:
    """`a/b,c/d` as a set of pairs; leaves what isn't text to validation."""
    if not isinstance(value, str):
        return value
    pairs = [part.strip().split("/") for part in value.split(",") if part.strip()]
    if any(len(pair) != 2 or not all(pair) for pair in pairs):
        raise ValueError("should be pairs such as policies/models, separated by commas")
    return {tuple(pair) for pair in pairs}


class MetricsCollectorSettings(ServiceSettings):
    """How often, how long and how much is read."""

    service: ClassVar[Service] = Service.METRICS_COLLECTOR
    model_config = SettingsConfigDict(
        env_prefix="INFERBUS_METRICS_COLLECTOR_",
        frozen=True,
        extra="ignore",
        use_attribute_docstrings=True,
    )

    interval_seconds: float = Field(default=5.0, ge=0.1, le=600)
    """Time between two samples of one target, virtual time."""
    window_seconds: float = Field(default=15.0, ge=0, le=3600)
    """How far rates and quantiles look back, virtual time; at least one interval."""
    timeout_seconds: float = Field(default=3.0, ge=0.05, le=60)
    """The most that one page or query may take, real time."""
    most_page_bytes: int = Field(default=4 * 1024 * 1024, ge=1024, le=256 * 1024 * 1024)
    """A larger page is refused."""
    loopback: bool = Field(default_factory=lambda: "KUBERNETES_SERVICE_HOST" not in os.environ)
    """Whether pods and servers may be on this machine's own addresses; inside a cluster they may
    not, unless this says so."""
    concurrency: int = Field(default=256, ge=1, le=10_000)
    """Pages that are read at the same time."""
    namespace_grants: Annotated[frozenset[tuple[str, str]], NoDecode, BeforeValidator(_pairs)] = (
        frozenset()
    )
    """Policies of which namespace may name targets of which other: `from/to,from/to`; `*` is any.
    Without a grant a policy reaches its own namespace only."""
