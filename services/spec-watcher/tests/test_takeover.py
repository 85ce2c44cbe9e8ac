"""Two instances: one acts, the other takes over what the first leaves."""

import contextlib
from pathlib import Path

from expansion_builders import open_model, playground
from watching import Document, apply, find, saying, spec_watcher, subjects, there, write

from inferbus_contracts.services import Service
from inferbus_shared.bus.bus import Bus
from tests.support.eventually import eventually
from tests.support.nats import NatsServer

CHILDREN = ("Service/default/{}", "LeaderWorkerSet/default/{}", "ModelRoute/default/{}")


async def serving(bus: Bus, name: str) -> list[Document]:
    found = await there(bus, *(key.format(name) for key in CHILDREN))
    await saying(bus, f"Playground/default/{name}", Progressing=("True", "Pending"))
    return found


async def test_the_one_that_stays_goes_on_where_the_other_left(
    nats_server: NatsServer, tmp_path: Path
) -> None:
    """Each has a folder of its own here: what stands in them tells which of the two acts."""
    folders = {name: tmp_path / name for name in ("first", "second")}
    for name, folder in folders.items():
        folder.mkdir()
        write(folder / f"{name}.yaml", open_model(name))
    first, second = contextlib.AsyncExitStack(), contextlib.AsyncExitStack()
    async with nats_server.bus(Service.CLI) as bus, first, second:
        await first.enter_async_context(spec_watcher(nats_server, "first", folder=folders["first"]))
        await there(bus, "OpenModel/_/first")
        await second.enter_async_context(
            spec_watcher(nats_server, "second", folder=folders["second"])
        )
        await apply(bus, open_model(), playground("early"))
        await serving(bus, "early")
        assert await find(bus, "OpenModel/_/second") is None

        await first.aclose()
        await there(bus, "OpenModel/_/second")
        await apply(bus, playground("late"))
        await serving(bus, "late")
        await there(bus, *(key.format("early") for key in CHILDREN))


async def test_two_tell_each_fact_once(nats_server: NatsServer) -> None:
    async with (
        spec_watcher(nats_server, "first"),
        spec_watcher(nats_server, "second"),
        nats_server.bus(Service.CLI) as bus,
    ):
        await apply(bus, open_model(), playground("early"))
        await serving(bus, "early")
    async with (
        spec_watcher(nats_server, "third"),
        spec_watcher(nats_server, "first"),
        nats_server.bus(Service.CLI) as bus,
    ):
        await apply(bus, playground("late"))
        await serving(bus, "late")
        await eventually(lambda: count_of_facts(nats_server, "late"))
    for name in ("early", "late"):
        assert await count_of_facts(nats_server, name) == 5 * [1]


async def count_of_facts(server: NatsServer, name: str) -> list[int] | None:
    """Facts about a Playground and its four announced children, once there are some of each."""
    facts = await subjects(server, "spec.changed")
    counts = [count for subject, count in facts.items() if subject.endswith(f".{name}")]
    return counts if len(counts) == 5 else None
