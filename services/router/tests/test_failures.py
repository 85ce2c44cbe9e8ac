"""Engines that fail before their response begins: what is tried again, and what the client is
told.
"""

import asyncio
import socket

import pytest

from inferbus_router.policy_ejection import EJECT_AFTER_FAILURES
from services.router.tests.builders import endpoint, server, server_key
from services.router.tests.client import BrokenOffError, chat, post_bytes
from services.router.tests.conftest import RouterUnderTest, StartEngine, StartRouter
from services.router.tests.engine import Gate, Script, Turn, answers
from services.router.tests.engines_that_fail import closes, fails_first, thinks, unavailable
from tests.support.eventually import eventually


async def resets(turn: Turn) -> None:
    turn.close(reset=True)


async def half_a_head(turn: Turn) -> None:
    await turn.send(b"HTTP/1.1 200 OK\r\nContent-")
    turn.close()


async def garbage(turn: Turn) -> None:
    await turn.send(b"\x00\x01 not http \r\n\r\n")
    await turn.gone()


async def switches(turn: Turn) -> None:
    await turn.send(b"HTTP/1.1 101 Switching\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n")
    await turn.gone()


async def two_lengths(turn: Turn) -> None:
    await turn.send(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 5\r\n\r\nabcde")
    await turn.gone()


BEFORE_THE_RESPONSE = [closes, resets, half_a_head, garbage, switches, two_lengths]


@pytest.mark.parametrize("failure", BEFORE_THE_RESPONSE)
async def test_a_failure_before_the_response_is_a_bad_gateway(
    router: RouterUnderTest, start_engine: StartEngine, failure: Script
) -> None:
    engine = await start_engine(failure)
    router.serve(engine.entry())
    client = await router.client()
    response = await client.post(chat())

    assert (response.status, response.error) == (502, "bad_gateway")
    assert len(engine.turns) == 1
    assert (await client.get("/healthz")).status == 200, "the connection can still be used"
    await router.settled()
    await eventually(lambda: router.demand.total("errors") == 1)


@pytest.mark.parametrize("failure", [*BEFORE_THE_RESPONSE, unavailable])
async def test_t033_it_is_tried_again_elsewhere_with_the_whole_body_where_that_is_declared(
    router: RouterUnderTest, start_engine: StartEngine, failure: Script
) -> None:
    engines = [await start_engine(failure), await start_engine()]
    router.serve(*(e.entry() for e in engines), retry_attempts=2, retry_interval_ms=1)
    bodies = [chat(prompt=letter * 100_000) for letter in "xy"]
    for body in bodies:
        response = await (await router.client()).post(body)
        assert response.status == 200

    assert len(engines[0].turns) == 1, "the other one was tried first at one time"
    assert {turn.body for engine in engines for turn in engine.turns} == set(bodies)
    assert (await router.metrics())["inferbus_router_upstream_retries_total"] == 1
    await router.settled()


async def test_t032_when_every_attempt_fails_the_client_sees_the_last_answer(
    router: RouterUnderTest, start_engine: StartEngine
) -> None:
    engine = await start_engine(unavailable)
    router.serve(engine.entry(), retry_attempts=3, retry_interval_ms=1)
    response = await (await router.client()).post(chat())

    assert (response.status, response.json) == (503, {"detail": "busy"})
    assert response.headers["retry-after"] == "7"
    assert len(engine.turns) == 4


async def test_a_failing_status_is_not_tried_again_where_nothing_is_declared(
    router: RouterUnderTest, start_engine: StartEngine
) -> None:
    engine = await start_engine(unavailable)
    router.serve(engine.entry())

    assert (await (await router.client()).post(chat())).status == 503
    assert len(engine.turns) == 1


async def test_a_failing_status_whose_body_is_still_coming_is_tried_again_at_once(
    router: RouterUnderTest, start_engine: StartEngine
) -> None:
    async def slow_refusal(turn: Turn) -> None:
        await turn.send(b"HTTP/1.1 503 Busy\r\nContent-Length: 100\r\n\r\npart")
        await turn.gone()

    engine = await start_engine(fails_first(1, slow_refusal))
    router.serve(engine.entry(), retry_attempts=1, retry_interval_ms=1)

    assert (await (await router.client()).post(chat())).status == 200
    await router.settled()


@pytest.mark.parametrize("status", [400, 404, 422, 429, 500, 501])
async def test_rt_01_what_may_be_the_requests_own_fault_is_passed_on_at_once(
    router: RouterUnderTest, start_engine: StartEngine, status: int
) -> None:
    async def refuses(turn: Turn) -> None:
        await turn.respond({"error": "why"}, status=status)

    engine = await start_engine(refuses)
    router.serve(engine.entry(), retry_attempts=5, retry_interval_ms=1)
    response = await (await router.client()).post(chat())

    assert (response.status, response.json) == (status, {"error": "why"})
    assert len(engine.turns) == 1


async def test_a_refused_connection_is_tried_elsewhere_once(
    router: RouterUnderTest, start_engine: StartEngine, dead_port: int
) -> None:
    engine = await start_engine()
    router.serve(endpoint(dead_port), engine.entry())
    client = await router.client()

    assert {(await client.post(chat())).status for _ in range(4)} == {200}


async def test_refused_connections_alone_are_a_bad_gateway(
    router: RouterUnderTest, dead_port: int
) -> None:
    router.serve(*(endpoint(dead_port, pod=f"pod-{index}") for index in range(3)))
    response = await (await router.client()).post(chat())

    assert (response.status, response.error) == (502, "bad_gateway")
    assert (await router.metrics())["inferbus_router_upstream_retries_total"] == 1
    await router.settled()


async def test_a_connection_that_is_never_made_is_given_up(
    start_router_under_test: StartRouter,
) -> None:
    """Nobody accepts there, and what the kernel accepts by itself is used up."""
    router = await start_router_under_test(connect_timeout_seconds=0.1)
    full = socket.socket()
    full.bind(("127.0.0.1", 0))
    full.listen(0)
    fillers = []
    for _ in range(8):
        filler = socket.socket()
        filler.setblocking(False)
        filler.connect_ex(full.getsockname())
        fillers.append(filler)
    router.serve(endpoint(full.getsockname()[1]))
    response = await (await router.client()).post(chat())

    assert response.status == 502
    assert "0.1 seconds" in response.json["error"]["message"]
    for each in (full, *fillers):
        each.close()
    await router.settled()


async def test_t036_a_declared_timeout_cuts_the_wait_for_the_response(
    router: RouterUnderTest, start_engine: StartEngine
) -> None:
    engine = await start_engine(thinks)
    router.serve(engine.entry(), timeout_ms=50, retry_attempts=5)
    response = await (await router.client()).post(chat())

    assert (response.status, response.error) == (504, "gateway_timeout")
    assert "0.05 seconds" in response.json["error"]["message"]
    assert len(engine.turns) == 1
    await eventually(lambda: engine.open == 0)
    await router.settled()


async def test_t036_a_slow_body_behind_a_quick_head_is_not_cut(
    router: RouterUnderTest, start_engine: StartEngine
) -> None:
    finish = asyncio.Event()

    async def slow_body(turn: Turn) -> None:
        await turn.start_stream()
        await turn.event({"n": 1})
        await finish.wait()
        await turn.chunk(b"")

    engine = await start_engine(slow_body)
    router.serve(engine.entry(), timeout_ms=60_000)
    client = await router.client()
    await client.send(post_bytes(chat(stream=True)))
    response = await client.head()
    await client.chunk(response)
    deadlines = router.running.router.state.first_byte_deadlines(60_000)
    assert deadlines.items() == [], "the declared timeout doesn't count any more"
    finish.set()

    assert await client.chunk(response) == b""


async def test_rt_03_the_time_of_all_attempts_together_is_limited(
    router: RouterUnderTest, start_engine: StartEngine
) -> None:
    engine = await start_engine(unavailable)
    router.serve(engine.entry(), timeout_ms=150, retry_attempts=1000, retry_interval_ms=40)
    response = await (await router.client()).post(chat())

    assert response.status in (503, 504)
    assert len(engine.turns) <= 8


async def test_rt_16_an_endpoint_that_keeps_failing_is_left_alone(
    router: RouterUnderTest, start_engine: StartEngine
) -> None:
    bad, good = await start_engine(closes), await start_engine()
    router.serve(bad.entry(), good.entry(), retry_attempts=1, retry_interval_ms=1)
    client = await router.client()
    statuses = {(await client.post(chat())).status for _ in range(30)}

    assert statuses == {200}
    assert len(bad.turns) == EJECT_AFTER_FAILURES


async def test_a_fleet_that_failed_as_a_whole_is_back_as_soon_as_it_works(
    router: RouterUnderTest, start_engine: StartEngine
) -> None:
    engines = [await start_engine(closes) for _ in range(2)]
    router.serve(*(engine.entry() for engine in engines))
    client = await router.client()
    for _ in range(20):
        assert (await client.post(chat())).status == 502
    for engine in engines:
        engine.script = answers

    assert {(await client.post(chat())).status for _ in range(10)} == {200}


async def test_retries_stop_when_everything_fails(
    router: RouterUnderTest, start_engine: StartEngine
) -> None:
    engine = await start_engine(unavailable)
    router.serve(engine.entry(), retry_attempts=10, retry_interval_ms=0)
    client = await router.client()
    for _ in range(40):
        assert (await client.post(chat())).status == 503

    assert len(engine.turns) < 40 * 2, "an outage is not multiplied by eleven"


# Connections to engines.


async def test_connections_are_kept_and_used_again(
    router: RouterUnderTest, start_engine: StartEngine
) -> None:
    engine = await start_engine()
    router.serve(engine.entry())
    clients = [await router.client() for _ in range(4)]
    for _ in range(5):
        for client in clients:
            assert (await client.post(chat())).status == 200

    assert len(engine.turns) == 20
    assert engine.connections == 1


async def test_rt_17_there_are_as_many_connections_as_requests(
    router: RouterUnderTest, start_engine: StartEngine
) -> None:
    gate = Gate()
    engine = await start_engine(gate)
    router.serve(engine.entry())
    clients = [await router.client() for _ in range(60)]
    for client in clients:
        await client.send(post_bytes(chat()))
    await eventually(lambda: len(engine.turns) == 60)
    gate.open()
    for client in clients:
        assert (await client.response()).status == 200
    for client in clients:
        await client.send(post_bytes(chat()))
    for client in clients:
        assert (await client.response()).status == 200

    assert engine.connections == 60, "none was closed and opened again"


async def test_idle_connections_are_closed(
    start_router_under_test: StartRouter, start_engine: StartEngine
) -> None:
    router = await start_router_under_test(pool_idle_timeout_seconds=0.05)
    engine = await start_engine()
    router.serve(engine.entry())
    client = await router.client()
    await client.post(chat())

    await eventually(lambda: engine.open == 0)
    assert (await client.post(chat())).status == 200


async def test_a_connection_that_the_engine_closed_meanwhile_costs_nothing(
    router: RouterUnderTest, start_engine: StartEngine
) -> None:
    """The engine closes while idle, and sometimes just when the next request is on its way."""

    async def one_each(turn: Turn) -> None:
        await turn.respond()
        turn.close()

    engine = await start_engine(one_each)
    router.serve(engine.entry())
    client = await router.client()
    statuses = [(await client.post(chat())).status for _ in range(50)]

    assert statuses == [200] * 50
    metrics = await router.metrics()
    assert metrics.get("inferbus_router_upstream_retries_total", 0) == 0
    await router.settled()


async def test_a_request_on_a_kept_connection_that_dies_unread_is_sent_again(
    router: RouterUnderTest, start_engine: StartEngine
) -> None:
    count = 0

    async def answers_then_dies(turn: Turn) -> None:
        nonlocal count
        count += 1
        if count == 2:
            turn.close(reset=True)
        else:
            await turn.respond()

    engine = await start_engine(answers_then_dies)
    router.serve(engine.entry())
    client = await router.client()

    assert [(await client.post(chat())).status for _ in range(2)] == [200, 200]
    assert engine.connections == 2


async def test_an_engine_that_restarted_is_found_again(
    router: RouterUnderTest, start_engine: StartEngine
) -> None:
    engine = await start_engine()
    router.serve(engine.entry())
    client = await router.client()
    await client.post(chat())
    await engine.stop()
    assert (await client.post(chat())).status == 502
    await start_engine(port=engine.port)

    assert (await client.post(chat())).status == 200


async def test_what_an_engine_sends_unasked_is_not_taken_for_an_answer(
    router: RouterUnderTest, start_engine: StartEngine
) -> None:
    unasked = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil"

    async def twice(turn: Turn) -> None:
        await turn.respond({"good": True})
        await turn.send(unasked)
        await turn.gone()

    engine = await start_engine(twice)
    router.serve(engine.entry())
    client = await router.client()

    for _ in range(5):
        assert (await client.post(chat())).json == {"good": True}


async def test_connections_to_an_endpoint_that_is_gone_are_closed(
    router: RouterUnderTest, start_engine: StartEngine
) -> None:
    old, new = await start_engine(), await start_engine()
    router.serve(old.entry())
    client = await router.client()
    await client.post(chat())
    router.apply({server_key("ms"): server(new.entry())})

    await eventually(lambda: old.open == 0)
    assert (await client.post(chat())).status == 200
    assert len(new.turns) == 1


async def test_a_response_that_began_ends_though_its_endpoint_is_gone(
    router: RouterUnderTest, start_engine: StartEngine
) -> None:
    finish = asyncio.Event()

    async def slow(turn: Turn) -> None:
        await turn.start_stream()
        await turn.event({"n": 1})
        await finish.wait()
        await turn.event({"n": 2})
        await turn.chunk(b"")

    engine = await start_engine(slow)
    router.serve(engine.entry())
    client = await router.client()
    await client.send(post_bytes(chat(stream=True)))
    response = await client.head()
    await client.chunk(response)
    router.apply({server_key("ms"): server()})
    finish.set()

    assert b'"n": 2' in await client.chunk(response)
    assert await client.chunk(response) == b""
    await router.settled()
    await eventually(lambda: engine.open == 0)


async def test_a_client_that_leaves_while_a_retry_waits(
    router: RouterUnderTest, start_engine: StartEngine
) -> None:
    engine = await start_engine(unavailable)
    router.serve(engine.entry(), retry_attempts=5, retry_interval_ms=60_000)
    client = await router.client()
    await client.send(post_bytes(chat()))
    await eventually(lambda: engine.turns)
    client.close()
    await router.settled()

    assert len(engine.turns) == 1
    with pytest.raises(BrokenOffError):
        await client.response()
