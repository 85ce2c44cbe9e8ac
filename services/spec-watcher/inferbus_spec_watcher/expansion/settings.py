"""The knobs of expansion, with the reference platforms' own defaults.

Invariant: two instances with equal settings expand alike; nothing else of the surroundings counts.
"""

from dataclasses import dataclass

from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.resources.kinds import CONFIG_MAP, LEADER_WORKER_SET


@dataclass(frozen=True, kw_only=True)
class ExpansionSettings:
    """Images, schedulers and limits that no object says."""

    downloader_image: str = "kthena/downloader:latest"
    """Loads the models of a ModelBooster (modelbooster spec 2.7)."""
    runtime_image: str = "kthena/runtime:latest"
    """The sidecar beside each engine of a ModelBooster (modelbooster spec 2.9)."""
    loader_image: str = "inftyai/model-loader:v0.0.10"
    """Loads the models of an inference Service (llmaz spec 1.7)."""
    loader_takes_arguments: bool = False
    """The loader is Inferbus' own, which is told source and destination by arguments, beside the
    environment that llmaz's loader reads."""
    scheduler_name: str = ""
    """Scheduler of an inference Service's pods; empty leaves it to the cluster."""
    booster_configuration: ObjectKey = ObjectKey(  # noqa: RUF009 - a tuple can't be changed
        CONFIG_MAP, "kthena-system", "model-booster-controller-config"
    )
    """Kthena's own configuration; what it says wins over the two images above."""
    llmaz_configuration: ObjectKey = ObjectKey(  # noqa: RUF009 - a tuple can't be changed
        CONFIG_MAP, "llmaz-system", "llmaz-global-config"
    )
    """llmaz's own configuration; what it says wins over loader image and scheduler name."""
    groups: str | None = LEADER_WORKER_SET
    """The kind whose objects run the groups of an inference Service; None while it isn't known
    which there is somebody for."""
    keeps_groups: bool = True
    """Groups that are there already go on as the kind that they are."""
    engine_startup_seconds: int = 3600
    """How long an engine may load before it is started anew; whole tens of seconds."""
    hpa_max_cap: int = 100
    """maxReplicas of a HorizontalPodAutoscaler whose Playground names none (rulings F9 to F12)."""
