"""A folder of manifests that a spec-watcher on a real server keeps applied, and what is in it."""

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

from watching import Document, listed, spec_watcher, subjects, there

from inferbus_contracts.services import Service
from inferbus_shared.bus.bus import Bus
from tests.support.eventually import eventually
from tests.support.nats import NatsServer


def model(name: str, family: str = "opt") -> Document:
    """The smallest object there is."""
    return {
        "apiVersion": "llmaz.io/v1alpha1",
        "kind": "OpenModel",
        "metadata": {"name": name},
        "spec": {"familyName": family, "source": {"modelHub": {"modelID": f"x/{name}"}}},
    }


def key(name: str) -> str:
    return f"OpenModel/_/{name}"


async def names(bus: Bus) -> set[str]:
    return {one["metadata"]["name"] for one in await listed(bus, "OpenModel")}


async def holds(bus: Bus, *expected: str) -> None:
    """Returns once the models are these and no others."""

    async def same() -> bool:
        return await names(bus) == set(expected)

    await eventually(same, what=f"the models are {expected}")


async def uid(bus: Bus, name: str) -> str:
    (found,) = await there(bus, key(name))
    return str(found["metadata"]["uid"])


@contextlib.asynccontextmanager
async def watching(server: NatsServer, folder: Path, instance: str = "w") -> AsyncIterator[Bus]:
    async with (
        spec_watcher(server, instance, folder=folder, secrets=folder.parent / "secrets"),
        server.bus(Service.CLI) as bus,
    ):
        yield bus


async def count_of_rejections(server: NatsServer) -> int:
    return sum((await subjects(server, "spec.rejected")).values())


async def is_told(server: NatsServer, count: int) -> bool:
    return await count_of_rejections(server) == count
