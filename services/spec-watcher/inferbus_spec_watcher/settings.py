"""Settings of the spec-watcher."""

from pathlib import Path
from typing import ClassVar

from pydantic import Field
from pydantic_settings import SettingsConfigDict

from inferbus_contracts.leader_worker_sets import LeaderWorkerSets
from inferbus_contracts.services import Service
from inferbus_shared.settings import ServiceSettings, SubstrateName
from inferbus_spec_watcher.expansion.settings import ExpansionSettings

_EXPANSION = ExpansionSettings()


class SpecWatcherSettings(ServiceSettings):
    """`INFERBUS_SPEC_WATCHER_…`."""

    model_config = SettingsConfigDict(
        env_prefix="INFERBUS_SPEC_WATCHER_",
        frozen=True,
        extra="ignore",
        use_attribute_docstrings=True,
    )

    service: ClassVar[Service] = Service.SPEC_WATCHER

    substrate: SubstrateName = SubstrateName.PROCESSES
    """Where objects are kept: the bucket `objects`, or the API server of a cluster, which the
    variables `INFERBUS_KUBE_…` name (the one that this pod runs in, unless they do)."""
    leader_worker_sets: LeaderWorkerSets = LeaderWorkerSets.AUTO
    """On a cluster, who runs LeaderWorkerSets: `auto` (their own controller where it is seen, and
    groups that are there stay as they are), `controller`, or `platform`: then they are
    ModelServings. The workload-reconciler has to be told the same."""
    leader_worker_namespace: str = Field(default="lws-system", min_length=1)
    """Where LeaderWorkerSet's controller elects its leader."""
    folder: Path | None = None
    """A folder of manifests that is applied and kept applied; None: none."""
    folder_interval_seconds: float = Field(default=1.0, gt=0)
    """How often the folder is looked at."""
    secrets: Path | None = None
    """Where values of Secrets from the folder are kept, files of mode 0600; None: next to nothing
    is kept and Secrets in the folder are refused."""

    downloader_image: str = _EXPANSION.downloader_image
    """Loads the models of a ModelBooster, unless its configuration names another."""
    runtime_image: str = _EXPANSION.runtime_image
    """The sidecar beside each engine of a ModelBooster, unless its configuration names another."""
    loader_image: str = _EXPANSION.loader_image
    """Loads the models of an inference Service, unless its configuration names another."""
    loader_takes_arguments: bool = _EXPANSION.loader_takes_arguments
    """`loader_image` is told source and destination by arguments too."""
    scheduler_name: str = _EXPANSION.scheduler_name
    """Scheduler of an inference Service's pods; empty leaves it to the cluster."""
    engine_startup_seconds: int = Field(
        default=_EXPANSION.engine_startup_seconds, ge=10, multiple_of=10
    )
    """How long an engine may load before it is started anew."""
    hpa_max_cap: int = Field(default=_EXPANSION.hpa_max_cap, ge=1)
    """maxReplicas of a HorizontalPodAutoscaler whose Playground names none."""

    @property
    def expansion(self) -> ExpansionSettings:
        """What expansion is told."""
        return ExpansionSettings(
            downloader_image=self.downloader_image,
            runtime_image=self.runtime_image,
            loader_image=self.loader_image,
            loader_takes_arguments=self.loader_takes_arguments,
            scheduler_name=self.scheduler_name,
            engine_startup_seconds=self.engine_startup_seconds,
            hpa_max_cap=self.hpa_max_cap,
        )
