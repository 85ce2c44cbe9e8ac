"""Rules about the workers of a ModelBooster: which there must be, and their images and ports.

(modelbooster spec 1.5 rules 3 to 6 and 12; ruling F18.)
"""

from collections.abc import Iterator
from typing import Any

from inferbus_contracts.admission import rules_connector as connector
from inferbus_contracts.admission import rules_pods as pods
from inferbus_contracts.admission.backends import backends_of, workers_of
from inferbus_contracts.admission.rule import Finding, Rule, accepted, error, warning
from inferbus_contracts.errors import ErrorCode
from inferbus_contracts.resources.booster import (
    Backend,
    BackendType,
    ModelBooster,
    Worker,
    WorkerType,
)

_ANSWERING = frozenset({WorkerType.SERVER, WorkerType.COORDINATOR})


def images_pullable(resource: ModelBooster) -> Iterator[Finding]:
    """No white space in an image (MB-3)."""
    for path, _, worker in workers_of(resource):
        yield from pods.image_pullable(worker.image, f"{path}.image")


def images_given(resource: ModelBooster) -> Iterator[Finding]:
    """Without an image Kubernetes refuses the pods."""
    for path, _, worker in workers_of(resource):
        if not worker.image:
            yield Finding(
                code=ErrorCode.MISSING_FIELD,
                field=f"{path}.image",
                message="no image is given; Kubernetes refuses such pods",
                remedy="add the image of the engine",
            )


def types_fit(resource: ModelBooster) -> Iterator[Finding]:
    """The workers that the type of a backend is made of (MB-4, MB-5)."""
    for path, backend in backends_of(resource):
        field = f"{path}.workers"
        if backend.type is BackendType.VLLM_DISAGGREGATED:
            yield from _prefill_and_decode(backend, field)
        elif not backend.type.disaggregated:
            yield from _one_server(backend, field)


def _one_server(backend: Backend, field: str) -> Iterator[Finding]:
    types = [worker.type.value for worker in backend.workers]
    if types != [WorkerType.SERVER.value]:
        yield Finding(
            field=field,
            message=f"a {backend.type.value} backend has exactly one worker, of type server",
            value=", ".join(types),
            remedy="keep one worker of type server, or choose a disaggregated type",
        )


def _prefill_and_decode(backend: Backend, field: str) -> Iterator[Finding]:
    wanted = (WorkerType.PREFILL, WorkerType.DECODE)
    types = {worker.type for worker in backend.workers}
    for index, worker in enumerate(backend.workers):
        if worker.type not in wanted:
            yield Finding(
                field=f"{field}[{index}].type",
                message=f"a {backend.type.value} backend has prefill and decode workers only",
                value=worker.type.value,
                remedy="use prefill or decode",
            )
    for missing in (kind.value for kind in wanted if kind not in types):
        yield Finding(
            code=ErrorCode.MISSING_FIELD,
            field=field,
            message=f"there is no {missing} worker",
            remedy=f"add a worker of type {missing}",
        )


def types_once(resource: ModelBooster) -> Iterator[Finding]:
    """Workers become roles, and a role's name is its type."""
    for path, backend in backends_of(resource):
        seen: set[WorkerType] = set()
        for index, worker in enumerate(backend.workers if backend.type.disaggregated else ()):
            if worker.type in seen:
                yield Finding(
                    field=f"{path}.workers[{index}].type",
                    message=f"is the second {worker.type.value} worker; the first one counts",
                    value=worker.type.value,
                    remedy="keep one worker of each type",
                )
            seen.add(worker.type)


def somebody_answers(resource: ModelBooster) -> Iterator[Finding]:
    """Requests to MindIE go to a server or a coordinator (ruling "MindIE")."""
    for path, backend in backends_of(resource):
        if backend.type is BackendType.MINDIE_DISAGGREGATED and not any(
            worker.type in _ANSWERING for worker in backend.workers
        ):
            yield Finding(
                field=f"{path}.workers",
                message="no worker takes requests",
                remedy="add a worker of type coordinator or server",
            )


def counts_given(resource: ModelBooster) -> Iterator[Finding]:
    """Absent or 0, replicas and pods of a worker that serves count as 1 (ruling F18)."""
    for path, backend, worker in workers_of(resource):
        counts = {"replicas": worker.replicas}
        if not backend.type.disaggregated:
            counts["pods"] = worker.pods
        for name, value in counts.items():
            if worker.type.serves and not value:
                yield Finding(
                    field=f"{path}.{name}",
                    message="is absent or 0, and counts as 1",
                    value=value,
                    remedy=f"write {name}: 1",
                )


def port_of(worker: Worker) -> int | None:
    """The engine's port in `config.port`, None when absent; raises `ValueError` for no port."""
    config = worker.config or {}
    if "port" not in config:
        return None
    value: Any = config["port"]
    if isinstance(value, str) and value.isascii() and value.isdigit():
        value = int(value[:6])
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 65535:
        raise ValueError("should be a port, 1 to 65535")
    return value


def ports_valid(resource: ModelBooster) -> Iterator[Finding]:
    """A port is a port (MB-12)."""
    for path, _, worker in workers_of(resource):
        try:
            port_of(worker)
        except ValueError as wrong:
            yield Finding(
                code=ErrorCode.VALUE_OUT_OF_RANGE,
                field=f"{path}.config.port",
                message=str(wrong),
                value=(worker.config or {}).get("port"),
                remedy="write a port, or remove it",
            )


def ports_agree(resource: ModelBooster) -> Iterator[Finding]:
    """A ModelServer has one port for prefill and decode pods (MB-12)."""
    for path, backend in backends_of(resource):
        if backend.type is BackendType.VLLM_DISAGGREGATED:
            ports = {str((worker.config or {}).get("port")) for worker in backend.workers}
            if len(ports) > 1:
                yield Finding(
                    field=f"{path}.workers",
                    message="prefill and decode workers have different ports",
                    value=", ".join(sorted(ports)),
                    remedy="give all workers the same config.port",
                )


RULES: tuple[Rule, ...] = (
    error("MB-3a", "modelbooster 1.5 (3)", "it can't be pulled", images_pullable),
    warning("MB-3b", "modelbooster 1.3", "the schema accepts it", images_given),
    error("MB-4", "modelbooster 1.5 (4), (5)", "nothing can be derived from it", types_fit),
    warning("MB-5", "modelbooster 2.6", "v0.1.0 takes one of them", types_once),
    accepted("MB-6a", "modelbooster 1.5 (6)", "MindIE's workers are taken as given"),
    warning("MB-6b", "ruling MindIE", "it may be reached in other ways", somebody_answers),
    warning("MB-F18", "ruling F18", "the shipped examples mean 1", counts_given),
    error("MB-12a", "modelbooster 1.5 (12)", "no engine could listen there", ports_valid),
    error("MB-12b", "modelbooster 1.5 (12)", "one of them is out of reach", ports_agree),
    *connector.RULES,
)
