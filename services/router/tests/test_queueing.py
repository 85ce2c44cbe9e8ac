"""Requests that wait for their turn in a running router (routing spec 6.1 and 6.2)."""

import asyncio

import pytest

from inferbus_contracts.errors import ProblemsError
from inferbus_router.queue_settings import QueueSettings
from inferbus_router.request import Request
from inferbus_shared.settings import load_settings
from services.router.tests.builders import endpoint, route, route_key, server, server_key
from services.router.tests.client import Client, chat, post_bytes
from services.router.tests.conftest import RouterUnderTest, StartEngine, StartRouter
from services.router.tests.engine import Engine, Gate, Script, Turn
from tests.support.eventually import eventually


@pytest.fixture(autouse=True)
def _principals(monkeypatch: pytest.MonkeyPatch) -> None:
    """A header says who sends a request."""

    def principal(request: Request) -> str:
        return dict(request.head.headers).get(b"x-user", b"").decode()

    monkeypatch.setattr(Request, "principal", property(principal))


def fairness(**settings: object) -> QueueSettings:
    return QueueSettings(enable_fairness_scheduling=True, **settings)


def boost(**settings: object) -> QueueSettings:
    return QueueSettings(enable_session_boost=True, **settings)


class Steps:
    """An engine's script that answers one request at a time, when told to."""

    def __init__(self) -> None:
        self._steps = asyncio.Semaphore(0)

    async def __call__(self, turn: Turn) -> None:
        await self._steps.acquire()
        await turn.respond({"usage": {"prompt_tokens": 10, "completion_tokens": 10}})

    def answer(self, count: int = 1) -> None:
        """Let so many requests be answered."""
        for _ in range(count):
            self._steps.release()


async def send(router: RouterUnderTest, **headers: str) -> Client:
    """A client whose request is on its way; the response can be read from it."""
    client = await router.client()
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    await client.send(post_bytes(chat(), headers=named))
    return client


async def one_at_a_time(
    start_router_under_test: StartRouter,
    start_engine: StartEngine,
    script: Script,
    **settings: object,
) -> tuple[RouterUnderTest, Engine]:
    """A router with fairness that serves one request at a time, by one engine."""
    engine = await start_engine(script)
    queues = fairness(fairness_max_concurrent=1, **settings)
    router = await start_router_under_test(queues=queues)
    router.serve(engine.entry())
    return router, engine


async def waiting(router: RouterUnderTest, count: int) -> None:
    """Until so many requests wait."""
    queues = router.running.router.state.queues
    assert queues is not None
    await eventually(lambda: len(queues) == count)


async def occupied(router: RouterUnderTest, engine: Engine, **headers: str) -> Client:
    """A client whose request is being served."""
    before = len(engine.turns)
    client = await send(router, **headers)
    await eventually(lambda: len(engine.turns) == before + 1)
    return client


async def test_rt_25_who_asks_for_little_is_not_behind_who_asks_for_much(
    start_router_under_test: StartRouter, start_engine: StartEngine
) -> None:
    steps = Steps()
    router, engine = await one_at_a_time(start_router_under_test, start_engine, steps)
    await occupied(router, engine, x_user="much")
    for count in range(1, 4):
        await send(router, x_user="much")
        await waiting(router, count)
    await send(router, x_user="little")
    await waiting(router, 4)
    steps.answer(5)
    await eventually(lambda: len(engine.turns) == 5)

    assert [turn.headers["x-user"] for turn in engine.turns].index("little") == 1
    await router.settled()


@pytest.mark.parametrize("settings", [fairness(), boost()])
async def test_t011_a_model_that_nobody_serves_has_no_line(
    start_router_under_test: StartRouter, settings: QueueSettings
) -> None:
    router = await start_router_under_test(queues=settings)
    response = await (await router.client()).post(chat("nope"))

    assert (response.status, response.error) == (404, "model_not_found")
    queues = router.running.router.state.queues
    assert queues is not None
    assert not queues.lines


async def test_t080_a_turn_that_never_comes(
    start_router_under_test: StartRouter, start_engine: StartEngine
) -> None:
    gate = Gate()
    router, engine = await one_at_a_time(
        start_router_under_test, start_engine, gate, fairness_queue_timeout="50ms"
    )
    first = await occupied(router, engine)
    response = await (await router.client()).post(chat())

    assert (response.status, response.error) == (504, "queue_deadline_passed")
    assert "timed out in queue" in response.json["error"]["message"]
    assert "retry-after" in response.headers
    assert len(engine.turns) == 1
    gate.open()
    assert (await first.response()).status == 200
    await router.settled()


async def test_t081_a_client_that_leaves_the_line(
    start_router_under_test: StartRouter, start_engine: StartEngine
) -> None:
    """Nobody is left to tell 503 to; the log says 499, as wherever clients leave."""
    gate = Gate()
    router, engine = await one_at_a_time(start_router_under_test, start_engine, gate)
    first = await occupied(router, engine)
    leaving = await send(router)
    await waiting(router, 1)
    leaving.close()
    await waiting(router, 0)
    metrics = await router.metrics()
    assert metrics["kthena_router_fairness_queue_cancelled_total"] == 1
    assert metrics["kthena_router_fairness_queue_inflight"] == 1
    gate.open()
    assert (await first.response()).status == 200

    assert (await (await router.client()).post(chat())).status == 200
    assert len(engine.turns) == 2
    await router.settled()


async def test_t081_a_client_that_leaves_while_it_is_served_makes_room(
    start_router_under_test: StartRouter, start_engine: StartEngine
) -> None:
    router, engine = await one_at_a_time(start_router_under_test, start_engine, Gate())
    first = await occupied(router, engine)
    await send(router)
    await waiting(router, 1)
    first.close()

    await eventually(lambda: len(engine.turns) == 2)


async def test_t082_the_session_that_completed_last_goes_first(
    start_router_under_test: StartRouter, start_engine: StartEngine
) -> None:
    steps = Steps()
    engine = await start_engine(steps)
    router = await start_router_under_test(queues=boost(session_boost_inflight_per_pod=1))
    router.serve(engine.entry())
    for session in ("older", "newer"):
        steps.answer()
        client = await router.client()
        await client.post(chat(), headers={"X-Session-ID": session})
    await occupied(router, engine)
    for count, session in enumerate(("unknown", "older", "newer"), 1):
        await send(router, x_session_id=session)
        await waiting(router, count)
    steps.answer(4)
    await eventually(lambda: len(engine.turns) == 6)

    order = [turn.headers["x-session-id"] for turn in engine.turns[3:]]
    assert order == ["newer", "older", "unknown"]
    await router.settled()


async def test_rt_11_a_model_that_has_another_name_upstream_is_counted_where_it_runs(
    start_router_under_test: StartRouter, start_engine: StartEngine
) -> None:
    gate = Gate()
    engine = await start_engine(gate)
    router = await start_router_under_test(queues=boost(session_boost_inflight_per_pod=2))
    router.apply(
        {
            route_key("a"): route(model="a"),
            route_key("b"): route(model="b"),
            server_key("ms"): server(engine.entry(), model="upstream"),
        }
    )
    for model in ("a", "b", "a"):
        await (await router.client()).send(post_bytes(chat(model)))
    await waiting(router, 1)
    await eventually(lambda: len(engine.turns) == 2)
    gate.open()

    await eventually(lambda: len(engine.turns) == 3)
    await router.settled()


async def test_a_new_endpoint_is_used_at_once_by_those_who_wait(
    start_router_under_test: StartRouter, start_engine: StartEngine
) -> None:
    one, two = await start_engine(Gate()), await start_engine()
    router = await start_router_under_test(
        queues=fairness(queue_least_in_flight=1, queue_most_in_flight=1)
    )
    router.serve(one.entry())
    await occupied(router, one)
    client = await send(router)
    await waiting(router, 1)
    router.serve(one.entry(), two.entry())

    assert (await client.response()).status == 200
    assert len(two.turns) == 1


async def test_those_who_wait_for_a_model_that_goes_are_told(
    start_router_under_test: StartRouter, start_engine: StartEngine
) -> None:
    router, engine = await one_at_a_time(start_router_under_test, start_engine, Gate())
    await occupied(router, engine)
    client = await send(router)
    await waiting(router, 1)
    router.apply({route_key("r"): route(model="other")})
    response = await client.response()

    assert (response.status, response.error) == (404, "model_not_found")


async def test_nobody_waits_in_line_for_a_model_that_has_to_be_woken(
    start_router_under_test: StartRouter, start_engine: StartEngine
) -> None:
    router = await start_router_under_test(queues=fairness(fairness_max_concurrent=1))
    router.serve()
    clients = [await send(router) for _ in range(3)]
    await eventually(lambda: len(router.running.router.state.hold) == 3)
    assert router.demand.waiting
    router.serve((await start_engine()).entry())

    assert [(await client.response()).status for client in clients] == [200] * 3
    await router.settled()
    assert router.running.router.state.ledger.traffic.arrived == 3


async def test_a_line_that_is_full_refuses(
    start_router_under_test: StartRouter, start_engine: StartEngine
) -> None:
    router, engine = await one_at_a_time(
        start_router_under_test, start_engine, Gate(), queue_requests=1
    )
    await occupied(router, engine)
    await send(router)
    await waiting(router, 1)
    response = await (await router.client()).post(chat())

    assert (response.status, response.error) == (503, "queue_full")
    assert "retry-after" in response.headers


async def test_endpoints_that_fail_lose_no_permits(
    start_router_under_test: StartRouter, start_engine: StartEngine
) -> None:
    async def breaks(turn: Turn) -> None:
        turn.close(reset=True)

    engine = await start_engine(breaks)
    router = await start_router_under_test(queues=fairness(fairness_max_concurrent=1))
    router.serve(engine.entry(), endpoint(1))
    clients = [await send(router) for _ in range(20)]

    assert {(await client.response()).status for client in clients} <= {502, 503}
    await router.settled()


async def test_demand_counts_those_who_wait(
    start_router_under_test: StartRouter, start_engine: StartEngine
) -> None:
    gate = Gate()
    router, engine = await one_at_a_time(start_router_under_test, start_engine, gate)
    clients = [await occupied(router, engine), await send(router)]
    await waiting(router, 1)
    metrics = await router.metrics()
    assert metrics["kthena_router_fairness_queue_size"] == 1
    assert metrics["kthena_router_active_downstream_requests"] == 2
    gate.open()
    for client in clients:
        await client.response()
    await router.settled()
    await router.stop()

    assert router.demand.total("arrivals") == router.demand.total("completions") == 2
    queues = router.running.router.state.queues
    assert queues is not None
    assert queues.lines["m"].dequeued == 2


@pytest.mark.parametrize(
    ("variables", "named"),
    [
        ({"FAIRNESS_WINDOW_SIZE": "2h"}, "FAIRNESS_WINDOW_SIZE"),
        ({"FAIRNESS_WINDOW_SIZE": "soon"}, "FAIRNESS_WINDOW_SIZE"),
        ({"FAIRNESS_INPUT_TOKEN_WEIGHT": "inf"}, "FAIRNESS_INPUT_TOKEN_WEIGHT"),
        ({"FAIRNESS_MAX_CONCURRENT": "-1"}, "FAIRNESS_MAX_CONCURRENT"),
        ({"SESSION_BOOST_MAX_SESSIONS": "0"}, "SESSION_BOOST_MAX_SESSIONS"),
        (
            {"ENABLE_FAIRNESS_SCHEDULING": "true", "ENABLE_SESSION_BOOST": "true"},
            "exclude each other",
        ),
    ],
)
def test_settings_that_make_no_sense_are_told_by_name(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], named: str
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ProblemsError, match=named):
        load_settings(QueueSettings)


def test_the_references_settings_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    variables = {
        "ENABLE_FAIRNESS_SCHEDULING": "true",
        "FAIRNESS_WINDOW_SIZE": "1h",
        "FAIRNESS_PRIORITY_TOKEN_WEIGHT": "0",
        "FAIRNESS_PRIORITY_REQUEST_NUM_WEIGHT": "0",
        "FAIRNESS_MAX_QPS": "50",
        "INFERBUS_ROUTER_QUEUE_REQUESTS": "7",
    }
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    settings = load_settings(QueueSettings)

    assert settings.fairness_window_size == 3_600_000
    assert settings.weights.tokens == 1.0
    assert settings.queue_requests == 7
