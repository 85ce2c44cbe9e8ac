"""Children of short objects on a real server: they come, come back, go, and wait for what lacks."""

from expansion_builders import backend, booster, config_map, open_model, playground, service
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
)

from inferbus_contracts.services import Service
from inferbus_shared.bus.bus import Bus
from tests.support.eventually import eventually
from tests.support.nats import NatsServer

CHILDREN = (
    "Service/default/play",
    "LeaderWorkerSet/default/play",
    "CoreService/default/play-lb",
    "ModelServer/default/play",
    "ModelRoute/default/play",
)
"""Of the Playground `play`, and of its inference Service."""


def route(name: str = "play", model: str = "mine") -> Document:
    """A ModelRoute that somebody wrote."""
    return {
        "apiVersion": "networking.serving.volcano.sh/v1alpha1",
        "kind": "ModelRoute",
        "metadata": {"name": name},
        "spec": {
            "modelName": model,
            "rules": [{"name": "all", "targetModels": [{"modelServerName": "elsewhere"}]}],
        },
    }


async def test_a_playground_becomes_its_children_and_all_go_with_it(
    nats_server: NatsServer,
) -> None:
    async with spec_watcher(nats_server), nats_server.bus(Service.CLI) as bus:
        await apply(bus, open_model(), playground())
        children = await there(bus, *CHILDREN)
        parents = [one["metadata"]["ownerReferences"][0]["name"] for one in children]
        assert parents == ["play"] * len(CHILDREN)
        await delete(bus, "Playground/default/play")
        await gone(bus, *CHILDREN)
        assert await find(bus, "OpenModel/_/opt") is not None


async def test_a_deleted_child_comes_back_with_its_own_children(nats_server: NatsServer) -> None:
    async with spec_watcher(nats_server), nats_server.bus(Service.CLI) as bus:
        await apply(bus, open_model(), playground())
        before = {one["metadata"]["uid"] for one in await there(bus, *CHILDREN)}
        await delete(bus, CHILDREN[0])

        async def made_anew() -> bool:
            uids = {one["metadata"]["uid"] for one in await there(bus, *CHILDREN)}
            return not uids & before

        await eventually(made_anew)


async def test_an_edited_child_is_put_right(nats_server: NatsServer) -> None:
    async with spec_watcher(nats_server), nats_server.bus(Service.CLI) as bus:
        await apply(bus, open_model(), playground())
        server = (await there(bus, "ModelServer/default/play"))[0]
        port = server["spec"]["workloadPort"]["port"]
        edited = {name: server[name] for name in ("apiVersion", "kind", "spec")}
        edited["metadata"] = {"name": "play"}
        edited["spec"] = server["spec"] | {"workloadPort": {"port": port + 1}}
        await apply(bus, edited, force=True)
        await eventually(lambda: has_port(bus, port))


async def has_port(bus: Bus, port: int) -> bool:
    (server,) = await there(bus, "ModelServer/default/play")
    return bool(server["spec"]["workloadPort"]["port"] == port)


async def test_a_child_that_is_rendered_no_longer_goes_and_the_others_stay(
    nats_server: NatsServer,
) -> None:
    async with spec_watcher(nats_server), nats_server.bus(Service.CLI) as bus:
        await apply(bus, booster(backend(name="a"), backend(name="b")))
        kept = "ModelServing/llm/chat-a"
        uid = (await there(bus, kept, "ModelServing/llm/chat-b"))[0]["metadata"]["uid"]
        await apply(bus, booster(backend(name="a")))
        await gone(bus, "ModelServing/llm/chat-b", "ModelServer/llm/chat-b")
        assert (await there(bus, kept))[0]["metadata"]["uid"] == uid


async def test_children_are_stored_once_however_often_they_are_looked_at(
    nats_server: NatsServer,
) -> None:
    async with spec_watcher(nats_server), nats_server.bus(Service.CLI) as bus:
        await apply(bus, open_model(), playground())
        await there(bus, *CHILDREN)
        await saying(bus, "Playground/default/play", Progressing=("True", "Pending"))
        await eventually(lambda: about_play(nats_server))
        before = await about_play(nats_server)
    for _ in range(2):
        async with spec_watcher(nats_server), nats_server.bus(Service.CLI) as bus:
            await apply(bus, open_model(), playground())
            await saying(bus, "Service/default/play", Expanded=("True", "ChildrenRendered"))
    assert await about_play(nats_server) == before


async def about_play(server: NatsServer) -> dict[str, int] | None:
    """Facts about the Playground and its four announced children, once there is one of each."""
    facts = await subjects(server, "spec.changed")
    found = {subject: count for subject, count in facts.items() if subject.endswith(".play")}
    return found if len(found) == 5 else None


async def test_a_missing_model_blocks_and_heals(nats_server: NatsServer) -> None:
    async with spec_watcher(nats_server), nats_server.bus(Service.CLI) as bus:
        await apply(bus, playground())
        key = "Playground/default/play"
        said = await saying(
            bus,
            key,
            Expanded=("False", "OpenModelMissing"),
            Progressing=("False", "AbortProcessing"),
        )
        told = {one["type"]: one["message"] for one in said["status"]["conditions"]}
        assert "OpenModel" in told["Expanded"]
        assert "opt" in told["Expanded"]
        assert await find(bus, CHILDREN[0]) is None
        await apply(bus, open_model())
        await there(bus, *CHILDREN)
        await saying(
            bus, key, Expanded=("True", "ChildrenRendered"), Progressing=("True", "Pending")
        )


async def test_deleting_the_model_of_what_runs_deletes_nothing_else(
    nats_server: NatsServer,
) -> None:
    async with spec_watcher(nats_server), nats_server.bus(Service.CLI) as bus:
        await apply(bus, open_model(), playground())
        before = [one["metadata"]["uid"] for one in await there(bus, *CHILDREN)]
        await delete(bus, "OpenModel/_/opt")
        blocked = ("False", "OpenModelMissing")
        await saying(bus, "Playground/default/play", Expanded=blocked)
        await saying(bus, "Service/default/play", Expanded=blocked)
        after = [one["metadata"]["uid"] for one in await there(bus, *CHILDREN)]
        assert after == before
        await apply(bus, open_model())
        await saying(bus, "Playground/default/play", Expanded=("True", "ChildrenRendered"))
        assert [one["metadata"]["uid"] for one in await there(bus, *CHILDREN)] == before


async def test_a_changed_model_changes_what_runs(nats_server: NatsServer) -> None:
    async with spec_watcher(nats_server), nats_server.bus(Service.CLI) as bus:
        await apply(bus, open_model(), playground())
        await there(bus, *CHILDREN)
        await apply(bus, open_model(source={"modelHub": {"modelID": "facebook/opt-350m"}}))
        await eventually(lambda: serves(bus, "opt-350m"))


async def serves(bus: Bus, model: str) -> bool:
    (workload,) = await there(bus, "LeaderWorkerSet/default/play")
    return model in str(workload["spec"])


async def test_the_autoscaler_goes_with_what_asked_for_it(nats_server: NatsServer) -> None:
    """The reference leaves it behind (llmaz spec 4.4)."""
    scaler = "HorizontalPodAutoscaler/default/play"
    metric = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization"}}}
    trigger = {"hpa": {"metrics": [metric]}}
    elastic = {"minReplicas": 1, "maxReplicas": 3, "scaleTrigger": trigger}
    async with spec_watcher(nats_server), nats_server.bus(Service.CLI) as bus:
        await apply(bus, open_model(), playground(elasticConfig=elastic))
        await there(bus, scaler, *CHILDREN)
        await apply(bus, playground())
        await gone(bus, scaler)
        await there(bus, *CHILDREN)


async def test_the_platforms_configuration_reaches_what_runs(nats_server: NatsServer) -> None:
    async with spec_watcher(nats_server), nats_server.bus(Service.CLI) as bus:
        await apply(bus, open_model(), playground())
        await there(bus, *CHILDREN)
        data = {"config.data": "scheduler-name: slow-and-sure"}
        await apply(bus, config_map("llmaz-system", "llmaz-global-config", **data))
        await eventually(lambda: serves(bus, "slow-and-sure"))


async def test_what_is_stored_after_its_owner_went_goes_too(nats_server: NatsServer) -> None:
    gone_owner = {"apiVersion": "inference.llmaz.io/v1alpha1", "kind": "Playground", "uid": "gone"}
    late = route("late")
    late["metadata"]["ownerReferences"] = [{**gone_owner, "name": "play", "controller": True}]
    async with spec_watcher(nats_server), nats_server.bus(Service.CLI) as bus:
        await saying(bus, "BackendRuntime/_/vllm", Accepted=("True", "Accepted"))
        await apply(bus, late)
        await gone(bus, "ModelRoute/default/late")


async def test_a_route_that_was_there_before_wins(nats_server: NatsServer) -> None:
    async with spec_watcher(nats_server), nats_server.bus(Service.CLI) as bus:
        await apply(bus, route())
        await apply(bus, open_model(), playground())
        key = "Service/default/play"
        await saying(bus, key, RouteTaken=("True", "RouteTaken"))
        assert await route_model(bus) == "mine"
        await delete(bus, "ModelRoute/default/play")
        await eventually(lambda: has_route_to(bus, "opt"))
        await saying(bus, key, RouteTaken=("False", "Resolved"))


async def test_a_route_that_comes_later_wins_too(nats_server: NatsServer) -> None:
    async with spec_watcher(nats_server), nats_server.bus(Service.CLI) as bus:
        await apply(bus, open_model(), playground())
        await there(bus, *CHILDREN)
        await apply(bus, route())
        await saying(bus, "Service/default/play", RouteTaken=("True", "RouteTaken"))
        (own,) = await there(bus, "ModelRoute/default/play")
        assert own["spec"]["modelName"] == "mine"
        assert "ownerReferences" not in own["metadata"]
        await delete(bus, "Playground/default/play")
        await gone(bus, *CHILDREN[:-1])
        assert await route_model(bus) == "mine"


async def route_model(bus: Bus) -> str:
    (found,) = await there(bus, "ModelRoute/default/play")
    return str(found["spec"]["modelName"])


async def has_route_to(bus: Bus, model: str) -> bool:
    return await route_model(bus) == model


async def test_a_workload_of_somebody_else_stays_and_the_condition_says_so(
    nats_server: NatsServer,
) -> None:
    async with spec_watcher(nats_server), nats_server.bus(Service.CLI) as bus:
        await apply(bus, open_model(), service("play"))
        (own,) = await there(bus, "Service/default/play")
        await apply(bus, playground())
        key = "Playground/default/play"
        await saying(
            bus, key, Expanded=("False", "NameTaken"), Progressing=("False", "AbortProcessing")
        )
        (after,) = await there(bus, "Service/default/play")
        assert after["spec"] == own["spec"]
        assert "ownerReferences" not in after["metadata"]
        await delete(bus, "Service/default/play")
        await saying(bus, key, Expanded=("True", "ChildrenRendered"))
        (made,) = await there(bus, "Service/default/play")
        assert made["metadata"]["ownerReferences"][0]["kind"] == "Playground"
