"""Settings of the workload-reconciler."""

from typing import ClassVar

from pydantic import Field
from pydantic_settings import SettingsConfigDict

from inferbus_contracts.services import Service
from inferbus_shared.settings import ServiceSettings


class WorkloadReconcilerSettings(ServiceSettings):
    """`INFERBUS_WORKLOAD_RECONCILER_…`."""

    model_config = SettingsConfigDict(
        env_prefix="INFERBUS_WORKLOAD_RECONCILER_",
        frozen=True,
        extra="ignore",
        use_attribute_docstrings=True,
    )

    service: ClassVar[Service] = Service.WORKLOAD_RECONCILER

    node: str = Field(default="local", min_length=1)
    """The node that pods of the process substrate are bound to."""
    concurrency: int = Field(default=4, ge=1, le=64)
    """Workloads reconciled at a time."""
