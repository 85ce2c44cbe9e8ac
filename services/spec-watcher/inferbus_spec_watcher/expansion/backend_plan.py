"""Everything about one backend of a ModelBooster that its children are built from.

Invariant: names, labels, ports and paths are computed here once, so that ModelServing, ModelServer,
route and policy agree on them.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from inferbus_contracts.admission.rules_booster import SINGLE_ROLE
from inferbus_contracts.admission.rules_workers import port_of
from inferbus_contracts.admission.uris import claim_of
from inferbus_contracts.resources.booster import (
    Backend,
    BackendType,
    ModelBooster,
    Worker,
    WorkerType,
)
from inferbus_contracts.resources.names import LABEL_LENGTH, fitted_name
from inferbus_contracts.resources.networking import InferenceEngine
from inferbus_spec_watcher.expansion.engine_flags import options_of
from inferbus_spec_watcher.expansion.manifests import derived_name, part_name

GROUP = "workload.serving.volcano.sh"
MODEL_NAME = f"{GROUP}/model-name"
BACKEND_NAME = f"{GROUP}/backend-name"
MANAGED_BY = f"{GROUP}/managed-by"
MODEL_UID = f"{GROUP}/model-uid"

DEFAULT_MOUNT = "/cache"
"""Where the models of a backend without cacheURI lie; the reference has no working default."""

SERVED_MODEL_NAME = "served-model-name"

_ENGINES: Mapping[BackendType, tuple[InferenceEngine, int]] = {
    BackendType.VLLM: (InferenceEngine.VLLM, 8000),
    BackendType.VLLM_DISAGGREGATED: (InferenceEngine.VLLM, 8000),
    BackendType.SGLANG: (InferenceEngine.SGLANG, 30000),
    BackendType.MINDIE: (InferenceEngine.MINDIE, 1025),
    BackendType.MINDIE_DISAGGREGATED: (InferenceEngine.MINDIE, 1025),
}
"""The engine of each type and its default port (modelbooster spec 2; rulings SGLang, MindIE)."""

_ANSWERING = (WorkerType.COORDINATOR, WorkerType.SERVER)
_SPARE_DIGITS = 4


@dataclass(frozen=True, kw_only=True)
class BackendPlan:
    """One backend of one booster."""

    booster: ModelBooster
    uid: str
    backend: Backend
    path: str
    """Where the backend stands in the booster, e.g. `spec.backends[0]`."""

    @property
    def model(self) -> str:
        """The name clients use: `spec.name`, else the booster's (defect MB_7_1_12)."""
        return model_of(self.booster)

    @property
    def engine(self) -> InferenceEngine:
        """The engine of the backend's type."""
        return _ENGINES[self.backend.type][0]

    @cached_property
    def workers(self) -> dict[WorkerType, Worker]:
        """Workers by type, as they are given; of several of one type the first counts."""
        found: dict[WorkerType, Worker] = {}
        for worker in self.backend.workers:
            found.setdefault(worker.type, worker)
        return found

    @property
    def server(self) -> Worker:
        """The one worker of a backend whose prefill and decode aren't apart."""
        return self.backend.workers[0]

    def role_of(self, worker: Worker) -> str:
        """The role that a worker becomes."""
        if self.backend.type in (BackendType.VLLM, BackendType.SGLANG):
            return SINGLE_ROLE
        return worker.type.value

    @property
    def answering_role(self) -> str | None:
        """The role that takes requests; None where any entry pod may, or prefill and decode do."""
        if self.engine is not InferenceEngine.MINDIE:
            return None
        return next((kind.value for kind in _ANSWERING if kind in self.workers), None)

    def port_of(self, worker: Worker) -> int:
        """The port a worker's engine listens on."""
        return port_of(worker) or _ENGINES[self.backend.type][1]

    @property
    def port(self) -> int:
        """The port that requests go to."""
        answering = [kind for kind in _ANSWERING if kind in self.workers]
        return self.port_of(self.workers[answering[0]] if answering else self.server)

    @cached_property
    def name(self) -> str:
        """Name of the backend's ModelServing and ModelServer: `BOOSTER-BACKEND` where the names of
        its pods then fit, else a shortened one (modelbooster spec 2.1)."""
        full = f"{self.booster.metadata.name}-{self.backend.name}"
        if derived_name(full, self._room(digits=1)) == full:
            return full
        return derived_name(full, self._room(digits=_SPARE_DIGITS))

    def _room(self, digits: int) -> int:
        """Characters that the pods' names leave, with at least so many digits for each ordinal: a
        shortened name should not change with every further replica."""
        return LABEL_LENGTH - max(len(self._suffix(one, digits)) for one in self.backend.workers)

    def _suffix(self, worker: Worker, digits: int) -> str:
        numbers = (self.backend.bounds[1], worker.effective_replicas, worker.effective_pods)
        group, replica, pod = (f"{number:0{digits}}" for number in numbers)
        return f"-{group}-{self.role_of(worker)}-{replica}-{pod}"

    @cached_property
    def served_model(self) -> str:
        """The name the engines know the model by: the first served-model-name, a server's or
        decode worker's before others', else the booster's name (modelbooster spec 2.11)."""
        order = sorted(self.backend.workers, key=lambda worker: worker.type is WorkerType.PREFILL)
        for worker in order:
            value = options_of(worker.config).get(SERVED_MODEL_NAME)
            names = value if isinstance(value, list) else [value]
            if names and isinstance(names[0], str) and names[0]:
                return names[0]
        return self.booster.metadata.name

    @cached_property
    def selector(self) -> dict[str, str]:
        """Labels that only this backend's pods have (defect MB_7_1_4)."""
        return {
            MODEL_UID: self.uid,
            BACKEND_NAME: fitted_name(self.backend.name),
        }

    @cached_property
    def pod_labels(self) -> dict[str, str]:
        """Labels of every pod; no revision, or any change of the backend would replace all pods
        (modelbooster spec 3.4)."""
        return {**common_labels(self.booster, self.uid), **self.selector}

    @property
    def volume(self) -> str:
        """Name of the cache volume."""
        return part_name(self.backend.name, "-weights")

    @property
    def mount_path(self) -> str:
        """Where the cache volume is mounted (modelbooster spec 2.5)."""
        uri, claim = self.backend.cache_uri, claim_of(self.backend.cache_uri)
        if uri is None:
            return DEFAULT_MOUNT
        return f"/{claim}" if claim else _absolute(uri.partition("://")[2])

    @property
    def volume_source(self) -> dict[str, Any]:
        """What is behind the cache volume."""
        claim = claim_of(self.backend.cache_uri)
        if self.backend.cache_uri is None:
            return {"emptyDir": {}}
        if claim:
            return {"persistentVolumeClaim": {"claimName": claim}}
        return {"hostPath": {"path": self.mount_path, "type": "DirectoryOrCreate"}}

    def path_of(self, uri: str) -> str:
        """Where a model or adapter lies: a folder named by the MD5 of its URI."""
        folder = hashlib.md5(uri.encode(), usedforsecurity=False).hexdigest()
        return f"{self.mount_path.rstrip('/')}/{folder}"

    @property
    def model_path(self) -> str:
        """Where the model lies."""
        return self.path_of(self.backend.model_uri)


def model_of(booster: ModelBooster) -> str:
    """The name clients use for a booster's model."""
    return booster.spec.name or booster.metadata.name


def common_labels(booster: ModelBooster, uid: str) -> dict[str, str]:
    """Labels of everything that a booster owns; `backend-name` is empty for what belongs to no
    backend (modelbooster spec 2.2)."""
    return {
        MODEL_NAME: fitted_name(booster.metadata.name),
        BACKEND_NAME: "",
        MANAGED_BY: GROUP,
        MODEL_UID: uid,
    }


def _absolute(path: str) -> str:
    return "/" + "/".join(part for part in path.split("/") if part)
