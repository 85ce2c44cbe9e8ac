"""Two instances: one acts, the other takes over what the first leaves."""

import asyncio
import contextlib
import itertools
from collections.abc import AsyncIterator
from pathlib import Path

from expansion_builders import open_model, playground
from watching import (
    Document,
    apply,
    delete,
    find,
    gone,
    saying,
    spec_watcher,
    subjects,
    there,
    write,
)

from inferbus_contracts.services import Service
from inferbus_contracts.topology import MEMBERS_BUCKET
from inferbus_shared.bus.bus import Bus
from inferbus_shared.bus.membership import Membership
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


@contextlib.asynccontextmanager
async def elder(server: NatsServer) -> AsyncIterator[None]:
    """An older instance that is there and does nothing, as one that hangs."""
    async with server.bus(Service.SPEC_WATCHER, "elder") as bus:
        running = asyncio.create_task(Membership(bus, "elder").run())
        members = bus.bucket(MEMBERS_BUCKET)
        await eventually(lambda: members.get("spec-watcher.elder"))
        try:
            yield
        finally:
            running.cancel()
            await asyncio.wait([running])


async def test_what_the_other_left_undone_is_done(nats_server: NatsServer, tmp_path: Path) -> None:
    write(tmp_path / "a.yaml", open_model("manifest"))
    orphan = open_model("orphan")
    lost = {"apiVersion": "llmaz.io/v1alpha1", "kind": "OpenModel", "name": "x", "uid": "lost"}
    orphan["metadata"]["ownerReferences"] = [{**lost, "controller": True}]
    waiting = contextlib.AsyncExitStack()
    async with waiting, nats_server.bus(Service.CLI) as bus:
        await waiting.enter_async_context(elder(nats_server))
        async with spec_watcher(nats_server, "younger", folder=tmp_path):
            await apply(bus, open_model(), playground("play"), orphan)
            asked = itertools.count()
            await eventually(lambda: has_been_asked(bus, next(asked)))
            assert await find(bus, "Service/default/play") is None
            assert await find(bus, "BackendRuntime/_/vllm") is None
            assert await find(bus, "OpenModel/_/manifest") is None
            (model,) = await there(bus, "OpenModel/_/opt")
            assert "status" not in model
            await there(bus, "OpenModel/_/orphan")
            assert await subjects(nats_server, "spec.changed") == {}

            await waiting.aclose()
            await serving(bus, "play")
            await saying(bus, "OpenModel/_/opt", Accepted=("True", "Accepted"))
            await gone(bus, "OpenModel/_/orphan")
            await there(bus, "BackendRuntime/_/vllm", "OpenModel/_/manifest")
            await eventually(lambda: count_of_facts(nats_server, "play"))


async def test_what_went_while_the_other_slept_comes_back(nats_server: NatsServer) -> None:
    route = "ModelRoute/default/play"
    waiting = contextlib.AsyncExitStack()
    async with waiting, nats_server.bus(Service.CLI) as bus:
        async with spec_watcher(nats_server, "before"):
            await apply(bus, open_model(), playground("play"))
            await serving(bus, "play")
        await waiting.enter_async_context(elder(nats_server))
        async with spec_watcher(nats_server, "younger"):
            await delete(bus, route)
            assert await find(bus, route) is None
            await waiting.aclose()
            await there(bus, route)


async def has_been_asked(bus: Bus, times: int) -> bool:
    """After so many questions an instance that acts would have begun to."""
    await apply(bus, open_model("marker"))
    return times == 20


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
