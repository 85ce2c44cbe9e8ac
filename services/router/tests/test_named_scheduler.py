"""Routers whose endpoints are chosen by plugins that a configuration file names."""

import asyncio
from collections import Counter

from services.router.tests.builders import server, server_key
from services.router.tests.client import chat
from services.router.tests.engine import Gate, Turn
from services.router.tests.named_fleet import Fleet, StartFleet, plugins
from tests.support.eventually import eventually


async def answers(turn: Turn) -> None:
    await turn.respond({"usage": {"prompt_tokens": 3, "completion_tokens": 5}})


async def test_t056_equal_prompts_go_where_the_first_went(start_fleet: StartFleet) -> None:
    fleet = await start_fleet(plugins("prefix-cache"), answers, answers, answers)
    client = await fleet.client()
    for _ in range(20):
        assert (await client.post(chat())).status == 200

    assert sorted(fleet.served) == [0, 0, 20]


async def test_rt_12_a_cold_cache_alone_serves(start_fleet: StartFleet) -> None:
    """The reference answers 503 while its only plugin knows nothing."""
    fleet = await start_fleet(plugins("prefix-cache"), answers, answers)
    client = await fleet.client()
    bodies = [chat(messages=[{"role": "user", "content": f"{n} {n}"}]) for n in range(8)]
    for body in bodies:
        assert (await client.post(body)).status == 200

    assert min(fleet.served) > 0


async def test_t058_random_takes_every_endpoint(start_fleet: StartFleet) -> None:
    fleet = await start_fleet(plugins("random"), answers, answers, answers)
    client = await fleet.client()
    for _ in range(60):
        await client.post(chat())

    assert min(fleet.served) > 0


async def test_rt_11_prefixes_are_kept_by_the_name_that_engines_know(
    start_fleet: StartFleet,
) -> None:
    fleet = await start_fleet(plugins("prefix-cache"), answers, answers, model="upstream")
    client = await fleet.client()
    for _ in range(6):
        await client.post(chat())

    assert sorted(fleet.served) == [0, 6]
    scheduler = fleet.router.running.router.state.scheduler
    assert scheduler is not None
    (plugin,) = scheduler.pipeline.remembering
    assert plugin.owners.models() == ["upstream"]  # type: ignore[attr-defined]


async def test_a_failed_endpoint_is_tried_once_and_learns_nothing(
    start_fleet: StartFleet,
) -> None:
    async def fails(turn: Turn) -> None:
        await turn.respond({}, status=503)

    fleet = await start_fleet(
        plugins("prefix-cache"), fails, answers, retry_attempts=1, retry_interval_ms=0
    )
    client = await fleet.client()
    statuses = Counter([(await client.post(chat())).status for _ in range(4)])

    assert statuses == {200: 4}
    assert fleet.served[0] <= 1


async def test_rt_36_the_scheduler_changes_while_requests_run(start_fleet: StartFleet) -> None:
    gate = asyncio.Event()

    async def waits(turn: Turn) -> None:
        await gate.wait()
        await answers(turn)

    fleet = await start_fleet("", waits, waits)
    state = fleet.router.running.router.state
    running = [asyncio.ensure_future((await fleet.client()).post(chat())) for _ in range(4)]
    await eventually(lambda: sum(fleet.served) == 4)
    fleet.path.write_text(plugins("prefix-cache"))
    await eventually(lambda: state.scheduler is not None)
    gate.set()
    assert [(await each).status for each in running] == [200] * 4
    before = fleet.served
    client = await fleet.client()
    for _ in range(6):
        await client.post(chat())

    assert sorted(now - then for now, then in zip(fleet.served, before, strict=True)) == [0, 6]
    fleet.path.write_text("")
    await eventually(lambda: state.scheduler is None)


async def test_rt_36_a_bad_file_is_told_and_changes_nothing(start_fleet: StartFleet) -> None:
    fleet = await start_fleet(plugins("prefix-cache"), answers)
    assert await fleet.metric("inferbus_router_configuration_good") == 1
    state = fleet.router.running.router.state
    before = state.scheduler
    fleet.path.write_text(plugins("prefix-cash"))
    await eventually(lambda: fleet.metric("inferbus_router_configuration_failures"))
    admin = await fleet.router.client(fleet.router.admin_port)

    assert await fleet.metric("inferbus_router_configuration_good") == 0
    assert state.scheduler is before
    assert (await admin.get("/readyz")).status == 200
    assert (await (await fleet.client()).post(chat())).status == 200


async def test_the_same_configuration_again_keeps_what_was_learned(
    start_fleet: StartFleet,
) -> None:
    fleet = await start_fleet(plugins("prefix-cache"), answers)
    state = fleet.router.running.router.state
    before = state.scheduler
    fleet.path.write_text("# a word\n" + plugins("prefix-cache"))

    async def is_loaded() -> bool:
        return await fleet.metric("inferbus_router_configuration_loads") == 2

    await eventually(is_loaded)
    assert state.scheduler is before


async def test_rt_36_authentication_is_switched_on_and_off_by_the_file(
    start_fleet: StartFleet,
) -> None:
    fleet = await start_fleet('auth: {jwksUri: "http://127.0.0.1:9/keys"}', answers)
    client = await fleet.client()
    refused = await client.post(chat())
    fleet.path.write_text("auth: {}")

    async def is_let_in() -> bool:
        return (await (await fleet.client()).post(chat())).status == 200

    assert refused.status == 401
    await eventually(is_let_in)


def blocks_by_pod(fleet: Fleet) -> dict[str, int]:
    """What the only cache-aware plugin remembers."""
    (cache,) = fleet.router.running.operations.configuration.scheduling.caches()
    by_endpoint = cache.owners.blocks_by_endpoint()
    return {
        each.pod: by_endpoint[each]
        for each in fleet.router.running.router.state.fleet.endpoints()
        if each in by_endpoint
    }


async def test_t060_an_endpoint_that_is_gone_is_forgotten(start_fleet: StartFleet) -> None:
    fleet = await start_fleet(plugins("prefix-cache"), answers)
    client = await fleet.client()
    await client.post(chat())
    before = blocks_by_pod(fleet)
    (cache,) = fleet.router.running.operations.configuration.scheduling.caches()
    fleet.serve()

    assert before == {f"pod-{fleet.engines[0].port}": 1}
    assert len(cache.owners) == 0


async def test_t060_what_ends_after_its_endpoint_is_gone_leaves_nothing(
    start_fleet: StartFleet,
) -> None:
    gate = Gate()
    fleet = await start_fleet(plugins("prefix-cache"), gate)
    running = asyncio.ensure_future((await fleet.client()).post(chat()))
    await eventually(lambda: fleet.served == [1])
    (cache,) = fleet.router.running.operations.configuration.scheduling.caches()
    fleet.serve()
    gate.open()

    assert (await running).status == 200
    assert len(cache.owners) == 0


async def test_t063_an_endpoint_that_was_not_ready_comes_back_with_an_empty_cache(
    start_fleet: StartFleet,
) -> None:
    """The reference compares the time of each block with the start of the container."""
    fleet = await start_fleet(plugins("kvcache-aware"), answers, answers)
    body = chat(messages=[{"role": "user", "content": "x" * 200}])
    await (await fleet.client()).post(body)
    first, second = fleet.engines if fleet.served == [1, 0] else fleet.engines[::-1]
    assert list(blocks_by_pod(fleet)) == [f"pod-{first.port}"]
    entries = [first.entry(ready=False), second.entry()]
    fleet.router.apply({server_key("ms"): server(*entries)})

    assert blocks_by_pod(fleet) == {}
