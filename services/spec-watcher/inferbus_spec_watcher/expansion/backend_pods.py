"""Pods of a ModelBooster's engines: containers, volumes and probes.

Invariant: every container that touches weights mounts the cache volume, and an engine is asked for
its health only after its start-up, which may take as long as the settings say (modelbooster spec
2.7 to 2.10, probes as 7.6 item 6 has them).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from inferbus_contracts.resources.booster import Worker
from inferbus_spec_watcher.expansion.backend_environment import (
    Sidecar,
    engine_variables,
    sidecar_variables,
)
from inferbus_spec_watcher.expansion.backend_plan import BackendPlan
from inferbus_spec_watcher.expansion.environment import without_repeats
from inferbus_spec_watcher.expansion.manifests import part_name, present
from inferbus_spec_watcher.expansion.pod_annotations import pod_annotations

TERMINATION_GRACE_SECONDS = 300
SHARED_MEMORY = {"name": "dshm", "mountPath": "/dev/shm"}
_PROBE_PERIOD_SECONDS = 10


@dataclass(frozen=True, kw_only=True)
class Images:
    """What runs beside the engine."""

    downloader: str
    runtime: str


@dataclass(frozen=True, kw_only=True)
class Health:
    """How an engine is asked whether it is well."""

    probe: dict[str, Any]
    """core/v1 ProbeHandler."""
    startup_seconds: int
    liveness: bool = True

    @classmethod
    def http(cls, port: int, startup_seconds: int) -> "Health":
        """By its health page."""
        probe = {"httpGet": {"path": "/health", "port": port}}
        return cls(probe=probe, startup_seconds=startup_seconds)

    @classmethod
    def tcp(cls, port: int, startup_seconds: int) -> "Health":
        """By its open port, which says little of a running engine."""
        probe = {"tcpSocket": {"port": port}}
        return cls(probe=probe, startup_seconds=startup_seconds, liveness=False)

    @property
    def probes(self) -> dict[str, Any]:
        """Start-up, readiness and liveness; a busy engine has a minute to answer."""
        alive = {"periodSeconds": 10, "timeoutSeconds": 5, "failureThreshold": 6}
        return present(
            startupProbe={
                **self.probe,
                "periodSeconds": _PROBE_PERIOD_SECONDS,
                "timeoutSeconds": 5,
                "failureThreshold": max(1, self.startup_seconds // _PROBE_PERIOD_SECONDS),
            },
            readinessProbe={
                **self.probe,
                "periodSeconds": 5,
                "timeoutSeconds": 1,
                "successThreshold": 1,
                "failureThreshold": 3,
            },
            livenessProbe={**self.probe, **alive} if self.liveness else None,
        )


def entry_template(
    plan: BackendPlan, worker: Worker, images: Images, containers: Sequence[dict[str, Any]]
) -> dict[str, Any]:
    """The pod that holds an engine which answers."""
    annotations = pod_annotations(plan.port_of(worker), plan.served_model)
    return _template(plan, worker, images, containers, annotations)


def worker_template(
    plan: BackendPlan, worker: Worker, images: Images, container: dict[str, Any]
) -> dict[str, Any]:
    """A pod that helps the engine of its group's entry pod."""
    return _template(plan, worker, images, [container], {})


def runtime_container(
    plan: BackendPlan, worker: Worker, images: Images, sidecar: Sidecar
) -> dict[str, Any]:
    """The sidecar: normalised metrics, adapters, key-value events."""
    words = {
        "--port": str(sidecar.port),
        "--engine": plan.backend.type.value.lower(),
        "--engine-base-url": sidecar.engine_url,
        "--engine-metrics-path": sidecar.engine_metrics_path,
        "--pod": "$(POD_NAME).$(NAMESPACE)",
        "--model": plan.model,
    }
    return present(
        name="runtime",
        image=images.runtime,
        args=[word for pair in words.items() for word in pair],
        ports=[{"containerPort": sidecar.port}],
        env=sidecar_variables(plan, worker.type),
        envFrom=plan.backend.env_from,
        readinessProbe={
            "httpGet": {"path": "/health", "port": sidecar.port},
            "initialDelaySeconds": 5,
            "periodSeconds": 10,
        },
        volumeMounts=[_cache_mount(plan)],
    )


def engine_container(plan: BackendPlan, worker: Worker, name: str, **fields: Any) -> dict[str, Any]:
    """An engine that answers; `fields` are command, probes and what else its kind needs."""
    return present(
        name=name,
        image=worker.image,
        ports=[{"containerPort": plan.port_of(worker)}],
        envFrom=plan.backend.env_from,
        resources=worker.resources,
        volumeMounts=_engine_mounts(plan),
        **{"env": engine_variables(plan, worker.type), **fields},
    )


def helper_container(plan: BackendPlan, worker: Worker, **fields: Any) -> dict[str, Any]:
    """The one container of a worker pod (modelbooster spec 2.9)."""
    return present(
        name=part_name(plan.backend.name, f"-{plan.backend.type.value.lower()}-worker"),
        image=worker.image,
        envFrom=plan.backend.env_from,
        resources=worker.resources,
        volumeMounts=_engine_mounts(plan),
        **{"env": without_repeats(plan.backend.env), **fields},
    )


def _template(
    plan: BackendPlan,
    worker: Worker,
    images: Images,
    containers: Sequence[dict[str, Any]],
    annotations: dict[str, str],
) -> dict[str, Any]:
    spec = present(
        terminationGracePeriodSeconds=TERMINATION_GRACE_SECONDS,
        runtimeClassName=plan.backend.runtime_class_name,
        affinity=worker.affinity,
        tolerations=worker.tolerations,
        initContainers=_downloaders(plan, images),
        containers=list(containers),
        volumes=[
            {"name": plan.volume, **plan.volume_source},
            {"name": SHARED_MEMORY["name"], "emptyDir": {"medium": "Memory"}},
        ],
    )
    return {"metadata": present(labels=plan.pod_labels, annotations=annotations), "spec": spec}


def _downloaders(plan: BackendPlan, images: Images) -> list[dict[str, Any]]:
    booster = plan.booster.metadata.name
    sources = {part_name(booster, "-model-downloader"): plan.backend.model_uri} | {
        part_name(booster, f"-lora-downloader-{index}"): adapter.artifact_url
        for index, adapter in enumerate(plan.backend.lora_adapters)
    }
    return [_downloader(plan, images, name, source) for name, source in sources.items()]


def _downloader(plan: BackendPlan, images: Images, name: str, source: str) -> dict[str, Any]:
    """All of the backend's environment reaches it, credentials included (modelbooster spec 7.3)."""
    return present(
        name=name,
        image=images.downloader,
        args=["--source", source, "--output-dir", plan.path_of(source)],
        env=without_repeats(plan.backend.env),
        envFrom=plan.backend.env_from,
        volumeMounts=[_cache_mount(plan)],
    )


def _cache_mount(plan: BackendPlan) -> dict[str, Any]:
    return {"name": plan.volume, "mountPath": plan.mount_path}


def _engine_mounts(plan: BackendPlan) -> list[dict[str, Any]]:
    return [_cache_mount(plan), SHARED_MEMORY]
