"""A request that failed at one endpoint and is answered by another: of the same target, or of
another one of its rule.
"""

import pytest

from services.router.tests.builders import endpoint, route, route_key, rule, server, server_key
from services.router.tests.client import chat
from services.router.tests.conftest import RouterUnderTest, StartEngine
from services.router.tests.engine import Engine, Script, Turn
from services.router.tests.engines_that_fail import (
    closes,
    fails_first,
    thinks,
    unavailable,
)
from tests.support.eventually import eventually


def canary(router: RouterUnderTest, main: Engine, *endpoints: object, **fields: object) -> None:
    """A rule that gives half of its traffic to the server `canary`, whose endpoints these are."""
    router.apply(
        {
            route_key("r"): route(rule("canary", "main")),
            server_key("main"): server(main.entry(), target=None, model="main"),
            server_key("canary"): server(*endpoints, target=None, **fields),  # type: ignore[arg-type]
        }
    )


# Other targets.


async def test_rt_24_a_dead_target_costs_nobody_an_answer(
    router: RouterUnderTest, start_engine: StartEngine, dead_port: int
) -> None:
    main = await start_engine()
    canary(router, main, endpoint(dead_port))
    client = await router.client()
    statuses = [(await client.post(chat())).status for _ in range(12)]

    assert statuses == [200] * 12
    assert {turn.json["model"] for turn in main.turns} == {"main"}, "renamed as that target wants"
    await router.settled()
    failed = router.running.router.state.fleet.server(server_key("canary"))
    assert failed is not None
    assert failed.endpoints[0].health.ejected_until_ms, "after a few it isn't asked any more"


async def test_rt_24_every_endpoint_of_a_target_is_given_up_before_another_target_serves(
    router: RouterUnderTest, start_engine: StartEngine, dead_port: int
) -> None:
    main, works = await start_engine(), await start_engine()
    canary(router, main, endpoint(dead_port), works.entry())
    client = await router.client()
    for _ in range(8):
        assert (await client.post(chat())).status == 200

    assert len(works.turns) == len(main.turns) == 4, "the shares stay what they are"


@pytest.mark.parametrize(("attempts", "status"), [(0, 503), (1, 200)])
async def test_rt_24_what_an_engine_may_have_begun_goes_elsewhere_only_where_retries_are_declared(
    router: RouterUnderTest, start_engine: StartEngine, attempts: int, status: int
) -> None:
    main, busy = await start_engine(), await start_engine(unavailable)
    canary(router, main, busy.entry(), retry_attempts=attempts, retry_interval_ms=1)
    response = await (await router.client()).post(chat())

    assert response.status == status
    assert len(busy.turns) == 1, "another target comes before the same endpoint again"
    await router.settled()


async def test_rt_24_when_all_targets_fail_the_client_is_told_once(
    router: RouterUnderTest, dead_port: int
) -> None:
    router.apply(
        {
            route_key("r"): route(rule("a", "b")),
            server_key("a"): server(endpoint(dead_port)),
            server_key("b"): server(endpoint(dead_port)),
        }
    )
    client = await router.client()
    response = await client.post(chat())

    assert (response.status, response.error) == (502, "bad_gateway")
    assert (await client.get("/healthz")).status == 200
    await router.settled()
    await eventually(lambda: router.demand.total("arrivals") == 1)
    assert router.demand.total("errors") == 1


async def test_rt_24_the_demand_of_a_request_moves_with_it(
    router: RouterUnderTest, start_engine: StartEngine, dead_port: int
) -> None:
    main = await start_engine()
    router.apply(
        {
            route_key("r"): route(rule("canary", "main")),
            server_key("main"): server(main.entry(), target="ModelServing/ns/main"),
            server_key("canary"): server(endpoint(dead_port), target="ModelServing/ns/canary"),
        }
    )
    assert (await (await router.client()).post(chat())).status == 200
    await router.settled()
    await eventually(lambda: router.demand.total("completions") == 1)

    last = {target.name: data.models[-1] for target, data in router.demand.seconds}
    assert (last["canary"].arrivals, last["canary"].in_flight) == (1, 0)
    assert (last["main"].completions, last["main"].in_flight) == (1, 0)


# An endpoint that is busy.


def busy_for(seconds: str) -> Script:
    """429 with that Retry-After."""

    async def busy(turn: Turn) -> None:
        await turn.respond({"error": "slow down"}, status=429, Retry_After=seconds)

    return busy


async def test_rt_01_a_busy_endpoint_that_says_until_when_is_passed_over(
    router: RouterUnderTest, start_engine: StartEngine
) -> None:
    busy, free = await start_engine(busy_for("3600")), await start_engine()
    router.serve(busy.entry(), free.entry(), retry_attempts=1, retry_interval_ms=1)
    client = await router.client()
    statuses = [(await client.post(chat())).status for _ in range(4)]

    assert statuses == [200] * 4
    assert busy.turns
    await router.settled()
    assert not any(each.health.failures for each in router.running.router.state.fleet.endpoints())


async def test_rt_01_the_only_endpoint_is_asked_again_when_it_said(
    router: RouterUnderTest, start_engine: StartEngine
) -> None:
    engine = await start_engine(fails_first(1, busy_for("1")))
    router.serve(engine.entry(), retry_attempts=1, retry_interval_ms=1)
    router.running.router.state.rate = 100.0

    assert (await (await router.client()).post(chat())).status == 200
    assert len(engine.turns) == 2


@pytest.mark.parametrize("said", ["11", "3600", "Wed, 21 Oct 2015 07:28:00 GMT", "soon"])
async def test_rt_01_nobody_waits_long_for_a_busy_endpoint(
    router: RouterUnderTest, start_engine: StartEngine, said: str
) -> None:
    engine = await start_engine(busy_for(said))
    router.serve(engine.entry(), retry_attempts=5, retry_interval_ms=1)
    response = await (await router.client()).post(chat())

    assert (response.status, response.json) == (429, {"error": "slow down"})
    assert response.headers["retry-after"] == said
    assert len(engine.turns) == 1


# Deadlines of attempts.


async def test_rt_03_an_attempt_that_takes_too_long_is_made_elsewhere(
    router: RouterUnderTest, start_engine: StartEngine
) -> None:
    slow, quick = await start_engine(thinks), await start_engine()
    router.serve(
        slow.entry(), quick.entry(), try_timeout_ms=500, retry_attempts=1, retry_interval_ms=1
    )
    client = await router.client()
    statuses = [(await client.post(chat())).status for _ in range(2)]

    assert statuses == [200, 200]
    assert len(slow.turns) == 1
    await eventually(lambda: slow.open == 0)
    await router.settled()


async def test_rt_03_attempts_that_all_take_too_long_are_a_gateway_timeout(
    router: RouterUnderTest, start_engine: StartEngine
) -> None:
    engine = await start_engine(thinks)
    router.serve(engine.entry(), try_timeout_ms=30, retry_attempts=2, retry_interval_ms=1)
    response = await (await router.client()).post(chat())

    assert (response.status, response.error) == (504, "gateway_timeout")
    assert "0.03 seconds" in response.json["error"]["message"]
    assert len(engine.turns) <= 3
    await router.settled()


async def test_rt_03_a_try_that_is_answered_in_time_is_not_cut(
    router: RouterUnderTest, start_engine: StartEngine
) -> None:
    async def works(turn: Turn) -> None:
        await turn.respond()

    engine = await start_engine(works)
    router.serve(engine.entry(), try_timeout_ms=60_000)
    client = await router.client()
    assert [(await client.post(chat())).status for _ in range(3)] == [200] * 3

    deadlines = router.running.router.state.try_deadlines(60_000)
    assert deadlines is not None
    assert deadlines.items() == []


# What an engine didn't read.


async def test_a_connection_whose_request_was_not_read_is_not_used_again(
    router: RouterUnderTest, start_engine: StartEngine
) -> None:
    """An engine may refuse a body before it has come; behind its rest no request is seen."""
    engine = await start_engine()
    engine.refuses_unread = True
    router.serve(engine.entry())
    client = await router.client()
    response = await client.post(chat(prompt="x" * 8_000_000))
    assert response.status == 413

    engine.refuses_unread = False
    assert (await client.post(chat())).status == 200
    assert engine.connections == 2
    await router.settled()


async def test_rt_18_nothing_is_sent_again_once_the_client_has_seen_a_byte(
    router: RouterUnderTest, start_engine: StartEngine
) -> None:
    async def begins(turn: Turn) -> None:
        await turn.send(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab")
        turn.close()

    engines = [await start_engine(begins), await start_engine(begins)]
    router.serve(*(each.entry() for each in engines), retry_attempts=5, retry_interval_ms=1)
    client = await router.client()
    with pytest.raises(Exception, match="ab"):
        await client.post(chat())

    assert sum(len(each.turns) for each in engines) == 1
    await router.settled()


async def test_a_failure_without_a_second_try_leaves_the_connection_usable(
    router: RouterUnderTest, start_engine: StartEngine
) -> None:
    engine = await start_engine(fails_first(1, closes))
    router.serve(engine.entry())
    client = await router.client()

    assert [(await client.post(chat())).status for _ in range(2)] == [502, 200]
