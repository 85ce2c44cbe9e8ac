"""BackendRuntimes that come with the platform: there from the start, and anybody's to replace."""

from functools import partial

from expansion_builders import open_model, playground, runtime
from watching import apply, delete, listed, saying, spec_watcher, subjects, there

from inferbus_contracts.services import Service
from inferbus_shared.bus.bus import Bus
from tests.support.eventually import eventually
from tests.support.nats import NatsServer

NAMES = {"vllm", "sglang", "llamacpp", "tgi", "tensorrt-llm", "ollama"}
VLLM = "BackendRuntime/_/vllm"


async def all_there(bus: Bus) -> bool:
    return {one["metadata"]["name"] for one in await listed(bus, "BackendRuntime")} == NAMES


async def test_they_are_there_from_the_start_and_a_restart_writes_none_again(
    nats_server: NatsServer,
) -> None:
    for _ in range(2):
        async with spec_watcher(nats_server), nats_server.bus(Service.CLI) as bus:
            await eventually(partial(all_there, bus))
            await saying(bus, VLLM, Accepted=("True", "Accepted"))
            await eventually(lambda: each_is_told_once(nats_server))


async def each_is_told_once(server: NatsServer) -> bool:
    return list((await subjects(server, "spec.changed")).values()) == [1] * len(NAMES)


async def test_ones_own_replaces_the_built_in_whole_and_that_returns_when_it_goes(
    nats_server: NatsServer,
) -> None:
    async with spec_watcher(nats_server), nats_server.bus(Service.CLI) as bus:
        await eventually(lambda: all_there(bus))
        (built_in,) = await there(bus, VLLM)
        await apply(bus, open_model(), playground())
        own = runtime("vllm")
        await apply(bus, own)
        await eventually(lambda: runs(bus, "registry/engine:v1"))
        (stored,) = await there(bus, VLLM)
        assert set(stored["spec"]) < set(built_in["spec"])
        assert stored["spec"]["recommendedConfigs"][0]["args"] == ["--model", "{{ .ModelPath }}"]
        await delete(bus, VLLM)
        await eventually(lambda: runs(bus, built_in["spec"]["image"]))
        assert (await there(bus, VLLM))[0]["spec"] == built_in["spec"]


async def runs(bus: Bus, image: str) -> bool:
    (workload,) = await there(bus, "LeaderWorkerSet/default/play")
    return image in str(workload["spec"])


async def test_a_restart_adds_nothing_to_ones_own(nats_server: NatsServer) -> None:
    """What is built in would go well with it, and is no part of it all the same."""
    async with spec_watcher(nats_server), nats_server.bus(Service.CLI) as bus:
        await eventually(lambda: all_there(bus))
        (built_in,) = await there(bus, VLLM)
        own = runtime("vllm")
        own["spec"] = {name: built_in["spec"][name] for name in ("image", "version", "command")}
        await apply(bus, own)
        (before,) = await there(bus, VLLM)
        assert set(before["spec"]) < set(built_in["spec"])
    async with spec_watcher(nats_server), nats_server.bus(Service.CLI) as bus:
        await delete(bus, "BackendRuntime/_/tgi")
        await eventually(lambda: all_there(bus))
        assert (await there(bus, VLLM))[0]["spec"] == before["spec"]
