"""Requests for a model without a replica: held, told, and served or given up."""

import asyncio

from inferbus_contracts.keys import ObjectKey
from inferbus_shared.clock import Anchor, SystemClock, real_now_ms
from services.router.tests.builders import endpoint, route, route_key, rule, server, server_key
from services.router.tests.client import Client, chat, post_bytes
from services.router.tests.conftest import RouterUnderTest, StartEngine, StartRouter
from services.router.tests.engine import Turn
from tests.support.eventually import eventually

TARGET = ObjectKey("ModelServing", "ns", "ms")


async def held(router: RouterUnderTest, count: int = 1, body: bytes = b"") -> list[Client]:
    """Clients whose requests wait."""
    before = len(router.running.router.state.hold)
    clients = [await router.client() for _ in range(count)]
    for client in clients:
        await client.send(post_bytes(body or chat()))
    await eventually(lambda: len(router.running.router.state.hold) == before + count)
    return clients


async def test_a_request_waits_for_a_replica_and_is_then_served(
    router: RouterUnderTest, start_engine: StartEngine
) -> None:
    router.serve()
    clients = await held(router, 5)
    engine = await start_engine()
    router.apply({server_key("ms"): server(engine.entry(ready=False))})
    assert engine.turns == []
    router.apply({server_key("ms"): server(engine.entry(), model="renamed")})

    assert {(await client.response()).status for client in clients} == {200}
    assert {turn.json["model"] for turn in engine.turns} == {"renamed"}
    await router.settled()
    await eventually(lambda: router.demand.total("completions") == 5)
    assert router.demand.total("arrivals") == 5
    assert router.demand.total("errors") == 0


async def test_what_waits_is_told_at_once_and_every_second(router: RouterUnderTest) -> None:
    router.serve()
    await held(router, 1)
    (first,) = router.demand.waiting

    assert first[0] == TARGET
    assert (first[1].router, first[1].model, first[1].waiting) == ("router-1", "m", 1)
    await held(router, 1)
    assert router.demand.waiting[-1][1].waiting == 2
    assert router.demand.waiting[-1][1].since_ms == first[1].since_ms
    told = len(router.demand.waiting)
    await eventually(lambda: len(router.demand.waiting) >= told + 2)
    await eventually(
        lambda: any(model.queued == 2 for _, data in router.demand.seconds for model in data.models)
    )


async def test_a_held_request_follows_the_table(
    router: RouterUnderTest, start_engine: StartEngine
) -> None:
    router.serve()
    (client,) = await held(router)
    engine = await start_engine()
    router.apply(
        {route_key("r"): route(rule("other")), server_key("other"): server(engine.entry())}
    )

    assert (await client.response()).status == 200
    await router.settled()


async def test_a_held_request_whose_route_is_gone_is_told_so(router: RouterUnderTest) -> None:
    router.serve()
    (client,) = await held(router)
    router.apply({route_key("r"): route(model="another")})
    response = await client.response()

    assert (response.status, response.error) == (404, "model_not_found")
    await router.settled()


async def test_a_request_does_not_wait_for_ever(start_router_under_test: StartRouter) -> None:
    router = await start_router_under_test(hold_deadline_seconds=0.1, retry_after_seconds=9)
    router.serve()
    client = await router.client()
    response = await client.post(chat())

    assert (response.status, response.error) == (503, "hold_deadline_passed")
    assert response.headers["retry-after"] == "9"
    assert "0.1 seconds" in response.json["error"]["message"]
    assert (await client.get("/healthz")).status == 200
    await router.settled()
    await eventually(lambda: router.demand.total("errors") == 1)


async def test_the_time_to_wait_is_virtual(start_router_under_test: StartRouter) -> None:
    now_ms = real_now_ms()
    clock = SystemClock(Anchor(real_ms=now_ms, virtual_ms=now_ms, rate=1000))
    router = await start_router_under_test(clock=clock, hold_deadline_seconds=200)
    router.serve()
    response = await (await router.client()).post(chat())

    assert response.error == "hold_deadline_passed"


async def test_no_more_wait_than_may(start_router_under_test: StartRouter) -> None:
    router = await start_router_under_test(hold_queue_requests=2)
    router.serve()
    await held(router, 2)
    response = await (await router.client()).post(chat())

    assert (response.status, response.error) == (503, "hold_queue_full")
    assert response.headers["retry-after"] == "5"


async def test_bodies_of_those_that_wait_are_bounded(start_router_under_test: StartRouter) -> None:
    router = await start_router_under_test(hold_queue_bytes=100_000)
    router.serve()
    await held(router, 1, chat(prompt="x" * 60_000))
    response = await (await router.client()).post(chat(prompt="x" * 60_000))

    assert (response.status, response.error) == (503, "hold_queue_full")


async def test_a_client_that_leaves_makes_room(start_router_under_test: StartRouter) -> None:
    router = await start_router_under_test(hold_queue_requests=1)
    router.serve()
    (client,) = await held(router)
    client.close()
    await router.settled()

    await held(router)


async def test_a_request_waits_for_an_endpoint_that_starts_or_drains(
    router: RouterUnderTest, start_engine: StartEngine
) -> None:
    engine = await start_engine()
    router.serve(engine.entry(draining=True), endpoint(1, ready=False))
    (client,) = await held(router)
    router.apply({server_key("ms"): server(engine.entry())})

    assert (await client.response()).status == 200


async def test_an_endpoint_that_drains_ends_what_it_has(
    router: RouterUnderTest, start_engine: StartEngine
) -> None:
    finish = asyncio.Event()

    async def slow(turn: Turn) -> None:
        await finish.wait()
        await turn.respond({"by": "old"})

    old, new = await start_engine(slow), await start_engine()
    router.serve(old.entry())
    client = await router.client()
    await client.send(post_bytes(chat()))
    await eventually(lambda: old.turns)
    router.apply({server_key("ms"): server(old.entry(draining=True), new.entry())})
    others = await router.client()
    for _ in range(5):
        assert (await others.post(chat())).status == 200
    finish.set()

    assert (await client.response()).json == {"by": "old"}
    assert (len(old.turns), len(new.turns)) == (1, 5)
