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

    unplaced_seconds: int = Field(default=120, ge=1)
    """A replica of a mix that waits for a node for longer waits in vain: others take its load."""
    probe_seconds: int = Field(default=300, ge=1)
    """The first pause after which a target that was short of accelerators is tried again."""
    longest_probe_seconds: int = Field(default=3600, ge=1)
    """The longest such pause; each failure doubles it."""

    @property
    def decider(self) -> DeciderSettings:
        """The knobs that the core reads."""
        return DeciderSettings(
            repeat_ms=self.repeat_seconds * 1000,
            stale_ms=self.stale_seconds * 1000,
            idle_ms=self.idle_seconds * 1000,
            unplaced_ms=self.unplaced_seconds * 1000,
            probe_ms=self.probe_seconds * 1000,
            longest_probe_ms=self.longest_probe_seconds * 1000,
        )
