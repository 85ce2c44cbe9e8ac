"""Settings of the router-config-publisher."""

from typing import ClassVar

from pydantic import Field
from pydantic_settings import SettingsConfigDict

from inferbus_contracts.services import Service
from inferbus_shared.settings import ServiceSettings


class RouterConfigPublisherSettings(ServiceSettings):
    """`INFERBUS_ROUTER_CONFIG_PUBLISHER_…`."""

    model_config = SettingsConfigDict(
        env_prefix="INFERBUS_ROUTER_CONFIG_PUBLISHER_",
        frozen=True,
        extra="ignore",
        use_attribute_docstrings=True,
    )

    service: ClassVar[Service] = Service.ROUTER_CONFIG_PUBLISHER

    coalesce_ms: float = Field(default=5.0, ge=0, le=60_000)
    """How long a change waits for others to go with, real time; an endpoint that takes no more
    requests never waits."""
    lagging_seconds: float = Field(default=15.0, ge=0.1, le=3600)
    """A router that hasn't taken a new table for that long is logged, virtual time."""
    gone_seconds: float = Field(default=600.0, ge=1, le=86_400)
    """A router that hasn't taken a new table for that long is taken for gone, virtual time."""
