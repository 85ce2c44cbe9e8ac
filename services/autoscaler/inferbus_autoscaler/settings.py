"""Settings of the autoscaler."""

from typing import ClassVar

from pydantic import Field
from pydantic_settings import SettingsConfigDict

from inferbus_autoscaler.facts import DeciderSettings
from inferbus_contracts.services import Service
from inferbus_shared.settings import ServiceSettings


class AutoscalerSettings(ServiceSettings):
    """`INFERBUS_AUTOSCALER_…`; times are virtual."""

    model_config = SettingsConfigDict(
        env_prefix="INFERBUS_AUTOSCALER_",
        frozen=True,
        extra="ignore",
        use_attribute_docstrings=True,
    )

    service: ClassVar[Service] = Service.AUTOSCALER

    repeat_seconds: int = Field(default=600, ge=1)
    """A decision is made again at least that often while samples arrive."""
    stale_seconds: int = Field(default=60, ge=1)
    """An older sample is no ground for scaling down."""
    idle_seconds: int = Field(default=300, ge=1)
    """By an objective alone: without any request for so long, no replica is needed."""

    @property
    def decider(self) -> DeciderSettings:
        """The knobs that the core reads."""
        return DeciderSettings(
            repeat_ms=self.repeat_seconds * 1000,
            stale_ms=self.stale_seconds * 1000,
            idle_ms=self.idle_seconds * 1000,
        )
