"""Settings of the console."""

from typing import ClassVar

from pydantic_settings import SettingsConfigDict

from inferbus_contracts.services import Service
from inferbus_shared.settings import ServiceSettings


class ConsoleSettings(ServiceSettings):
    """`INFERBUS_CONSOLE_…`: only what every service has."""

    model_config = SettingsConfigDict(
        env_prefix="INFERBUS_CONSOLE_",
        frozen=True,
        extra="ignore",
        use_attribute_docstrings=True,
    )

    service: ClassVar[Service] = Service.CONSOLE
