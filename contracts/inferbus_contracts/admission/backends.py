"""Walks over the backends and workers of a ModelBooster, each with its path."""

from collections.abc import Iterator

from inferbus_contracts.resources.booster import Backend, ModelBooster, Worker


def backends_of(resource: ModelBooster) -> Iterator[tuple[str, Backend]]:
    """Each backend with its path."""
    if resource.spec.backend is not None:
        yield "spec.backend", resource.spec.backend
    for index, backend in enumerate(resource.spec.backends):
        yield f"spec.backends[{index}]", backend


def workers_of(resource: ModelBooster) -> Iterator[tuple[str, Backend, Worker]]:
    """Each worker with its path and its backend."""
    for path, backend in backends_of(resource):
        for index, worker in enumerate(backend.workers):
            yield f"{path}.workers[{index}]", backend, worker
