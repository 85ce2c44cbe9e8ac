"""Settings of the optimizer."""

from typing import ClassVar

from pydantic import Field
from pydantic_settings import SettingsConfigDict

from inferbus_contracts.services import Service
from inferbus_optimizer.facts import DeciderSettings
from inferbus_shared.settings import ServiceSettings


class OptimizerSettings(ServiceSettings):
    """`INFERBUS_OPTIMIZER_…`; times are virtual."""

    model_config = SettingsConfigDict(
        env_prefix="INFERBUS_OPTIMIZER_",
        frozen=True,
        extra="ignore",
        use_attribute_docstrings=True,
    )

    service: ClassVar[Service] = Service.OPTIMIZER

    repeat_seconds: int = Field(default=600, ge=1)
    """An allocation is made again at least that often while demands arrive."""

    @property
    def decider(self) -> DeciderSettings:
        """The knobs that the core reads."""
        return DeciderSettings(repeat_ms=self.repeat_seconds * 1000)
