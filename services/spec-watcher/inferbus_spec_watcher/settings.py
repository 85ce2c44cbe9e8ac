"""Settings of the spec-watcher."""

from pathlib import Path
from typing import ClassVar

from pydantic import Field
from pydantic_settings import SettingsConfigDict

from inferbus_contracts.services import Service
from inferbus_shared.settings import ServiceSettings


class SpecWatcherSettings(ServiceSettings):
    """`INFERBUS_SPEC_WATCHER_…`."""

    model_config = SettingsConfigDict(
        env_prefix="INFERBUS_SPEC_WATCHER_",
        frozen=True,
        extra="ignore",
        use_attribute_docstrings=True,
    )

    service: ClassVar[Service] = Service.SPEC_WATCHER

    folder: Path | None = None
    """A folder of manifests that is applied and kept applied; None: none."""
    folder_interval_seconds: float = Field(default=1.0, gt=0)
    """How often the folder is looked at."""
    secrets: Path | None = None
    """Where values of Secrets from the folder are kept, files of mode 0600; None: next to nothing
    is kept and Secrets in the folder are refused."""
