"""Settings come from the environment, are typed, and a bad one is told by its variable's name.

Every service subclasses `ServiceSettings` in its `settings.py`; the variable of a field is the
class's prefix and the field's name in capitals, e.g. `INFERBUS_AUTOSCALER_KEEPALIVE_SECONDS`.
Settings that all services share carry the prefix `INFERBUS_` alone.
"""

import socket
from enum import StrEnum
from pathlib import Path
from typing import ClassVar, TypeVar

from pydantic import Field, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from inferbus_contracts.errors import ErrorCode, Problem, ProblemsError, shorten
from inferbus_contracts.services import Service


class SubstrateName(StrEnum):
    """What a service that touches pods and objects works on."""

    PROCESSES = "processes"
    """The objects bucket and the node agent of one machine."""
    KUBERNETES = "kubernetes"
    """An API server."""


class BusSettings(BaseSettings):
    """How to reach the bus and the clock; shared by all services, prefix `INFERBUS_`."""

    model_config = SettingsConfigDict(
        env_prefix="INFERBUS_", frozen=True, extra="ignore", use_attribute_docstrings=True
    )

    nats_url: str = "nats://127.0.0.1:4222"
    nats_credentials: Path | None = None
    """JSON file with one `{user: password}` entry per service; None: no authentication."""
    instance: str = Field(default_factory=socket.gethostname, min_length=1, max_length=64)
    """Tells instances of one service apart in logs, memberships and event sources."""
    subject_prefix: str = ""
    """Put before every subject, e.g. `replay.r1.`; live services use none."""


class ServiceSettings(BaseSettings):
    """The base of every service's settings; a subclass sets `service` and its env prefix."""

    model_config = SettingsConfigDict(frozen=True, extra="ignore", use_attribute_docstrings=True)

    service: ClassVar[Service]

    http_host: str = "127.0.0.1"
    http_port: int = Field(default=0, ge=0, le=65535)
    """Where /metrics, /healthz and /readyz are served; 0 lets the system choose."""


SettingsT = TypeVar("SettingsT", bound=BaseSettings)


def load_settings(settings: type[SettingsT]) -> SettingsT:
    """Settings from the environment; raises `ProblemsError` with one problem per bad variable."""
    try:
        return settings()
    except ValidationError as error:
        raise ProblemsError(*(_problem(settings, detail) for detail in error.errors())) from None


def _problem(settings: type[BaseSettings], detail: object) -> Problem:
    assert isinstance(detail, dict)
    name = "_".join(str(part) for part in detail["loc"])
    variable = f"{settings.model_config.get('env_prefix', '')}{name}".upper()
    return Problem(
        code=ErrorCode.BAD_SETTING,
        message=f"{detail['msg']}",
        field=variable,
        value=shorten(detail.get("input")),
        remedy=f"set the environment variable {variable} to a valid value, or unset it",
    )
