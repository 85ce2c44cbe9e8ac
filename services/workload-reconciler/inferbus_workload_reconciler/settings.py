"""Settings of the workload-reconciler."""

from typing import Annotated, ClassVar

from pydantic import BeforeValidator, Field
from pydantic_settings import NoDecode, SettingsConfigDict

from inferbus_contracts.leader_worker_sets import LeaderWorkerSets
from inferbus_contracts.services import Service
from inferbus_shared.settings import ServiceSettings, SubstrateName
from inferbus_workload_reconciler.policy_guard import Budget, parse_budgets


def _budgets(value: object) -> object:
    """Read the setting; a default is no text."""
    return parse_budgets(value) if isinstance(value, str) else value


class WorkloadReconcilerSettings(ServiceSettings):
    """`INFERBUS_WORKLOAD_RECONCILER_…`."""

    model_config = SettingsConfigDict(
        env_prefix="INFERBUS_WORKLOAD_RECONCILER_",
        frozen=True,
        extra="ignore",
        use_attribute_docstrings=True,
    )

    service: ClassVar[Service] = Service.WORKLOAD_RECONCILER

    substrate: SubstrateName = SubstrateName.PROCESSES
    """Where pods run; `kubernetes` takes the cluster's address from `INFERBUS_KUBE_…`."""
    beside_kthena: bool = False
    """Act though Kthena's own controllers run: both would work on the same objects."""
    kthena_namespace: str = Field(default="kthena-system", min_length=1)
    """Where Kthena's controllers elect their leader."""
    leader_worker_sets: LeaderWorkerSets = LeaderWorkerSets.AUTO
    """Who runs LeaderWorkerSets: `auto` (their own controller where it is seen), `controller`, or
    `platform`. The spec-watcher has to be told the same."""
    leader_worker_namespace: str = Field(default="lws-system", min_length=1)
    """Where LeaderWorkerSet's controller elects its leader."""
    node: str = Field(default="local", min_length=1)
    """The node that pods of the process substrate are bound to."""
    concurrency: int = Field(default=64, ge=1, le=256)
    """Workloads reconciled at a time."""
    accelerator_budgets: Annotated[tuple[Budget, ...], NoDecode, BeforeValidator(_budgets)] = ()
    """The most that workloads may ask for of a resource, `namespace/resource=N,…`, e.g.
    `default/nvidia.com/gpu=16`; `*` stands for all namespaces together. No decision goes above."""
