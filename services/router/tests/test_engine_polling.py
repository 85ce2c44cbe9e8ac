"""How engines are asked, and what plugins do with the answers."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from inferbus_router.engine_polling import MOST_ASKED_PER_SECOND, EnginePolling, Interest
from inferbus_router.policy_plugins import EngineReading
from services.router.tests.client import chat
from services.router.tests.engine import Script, Turn
from services.router.tests.named_fleet import Fleet, StartFleet, plugins
from tests.support.eventually import eventually

LEAST_REQUEST = plugins("least-request", filters=("least-request",))
LORA = plugins("random", filters=("lora-affinity",))


def engine(page: str = "", models: tuple[str, ...] = ()) -> Script:
    """Answers requests, and shows a page and a list."""

    async def script(turn: Turn) -> None:
        if turn.target == "/metrics":
            body = page.encode()
            head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n\r\n".encode()
            await turn.send(head + body)
        elif turn.target == "/v1/models":
            await turn.respond({"data": [{"id": name} for name in models]})
        else:
            await turn.respond()

    return script


def waiting(count: int) -> str:
    return f"vllm:num_requests_waiting {count}\nvllm:num_requests_running 1\n"


def readings(fleet: Fleet) -> list[EngineReading | None]:
    """Of each engine, in their order."""
    state = fleet.router.running.router.state
    assert state.scheduler is not None
    by_pod = {each.pod: reading for each, reading in state.scheduler.readings.items()}
    return [by_pod.get(f"pod-{each.port}") for each in fleet.engines]


async def all_read(fleet: Fleet) -> None:
    await eventually(lambda: None not in readings(fleet))


async def test_t057_saturated_engines_get_nothing(start_fleet: StartFleet) -> None:
    fleet = await start_fleet(
        LEAST_REQUEST, engine(waiting(10)), engine(waiting(0)), engine(waiting(25))
    )
    await all_read(fleet)
    client = await fleet.client()
    for _ in range(20):
        assert (await client.post(chat())).status == 200

    assert fleet.served == [0, 20, 0]


async def test_t055_an_adapters_requests_go_where_it_is_loaded(start_fleet: StartFleet) -> None:
    fleet = await start_fleet(
        LORA,
        engine(models=("base",)),
        engine(models=("base", "la")),
        engine(models=("base",)),
        adapters=["la"],
    )
    await all_read(fleet)
    client = await fleet.client()
    for _ in range(20):
        assert (await client.post(chat(model="la"))).status == 200

    assert fleet.served == [0, 20, 0]


async def test_rt_11_a_renamed_model_passes_lora_affinity(start_fleet: StartFleet) -> None:
    fleet = await start_fleet(LORA, engine(models=("upstream",)), model="upstream")
    await all_read(fleet)

    assert (await (await fleet.client()).post(chat())).status == 200


@pytest.mark.parametrize(
    ("configuration", "script"),
    [(LEAST_REQUEST, engine(waiting(10))), (LORA, engine(models=("other",)))],
    ids=["busy", "without-the-adapter"],
)
async def test_t038_rt_05_nothing_left_is_overload_and_not_the_clients_fault(
    start_fleet: StartFleet, configuration: str, script: Script
) -> None:
    """The reference answers 400 with a bare string."""
    fleet = await start_fleet(configuration, script)
    await all_read(fleet)
    client = await fleet.client()
    response = await client.post(chat())

    assert (response.status, response.error) == (503, "no_schedulable_endpoint")
    assert int(response.headers["retry-after"]) > 0
    assert sum(fleet.served) == 0
    await fleet.router.settled()


async def test_rt_15_a_hung_engine_delays_nobody(start_fleet: StartFleet) -> None:
    async def hangs(turn: Turn) -> None:
        await asyncio.Event().wait()

    fleet = await start_fleet(LEAST_REQUEST, hangs, engine(waiting(4)))
    await eventually(lambda: readings(fleet)[1] is not None)

    assert readings(fleet)[0] is None


async def test_rt_15_what_an_engine_said_long_ago_counts_no_more(start_fleet: StartFleet) -> None:
    fleet = await start_fleet(LEAST_REQUEST, engine(waiting(10)))
    await all_read(fleet)

    async def fails(turn: Turn) -> None:
        await turn.respond({}, status=404 if turn.method == "GET" else 200)

    fleet.engines[0].script = fails
    await eventually(lambda: readings(fleet) == [None])
    assert (await (await fleet.client()).post(chat())).status == 200


async def garbage(turn: Turn) -> None:
    await turn.send(b"no HTTP at all\r\n\r\n")
    turn.close()


async def endless(turn: Turn) -> None:
    await turn.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    while not turn.is_over:
        await turn.chunk(b"#" * 65536)


async def closes(turn: Turn) -> None:
    turn.close(reset=True)


@pytest.mark.parametrize("script", [garbage, endless, closes, engine("\x00\xff{ 5\n")])
async def test_a_broken_page_is_no_reading_and_harms_nobody(
    start_fleet: StartFleet, script: Script
) -> None:
    fleet = await start_fleet(LEAST_REQUEST, script, engine(waiting(1)))
    await eventually(lambda: len(fleet.engines[0].turns) > 2)
    known = readings(fleet)[0]

    assert known is None or known.waiting is None
    await eventually(lambda: readings(fleet)[1] is not None)


@pytest.mark.parametrize("plugin", ["kvcache-aware", "prefix-cache", "random"])
async def test_rt_09_nobody_is_asked_what_no_plugin_wants_to_know(
    start_fleet: StartFleet, plugin: str
) -> None:
    """The reference's kvcache-aware asks a tokenizer and Redis while the request waits."""
    fleet = await start_fleet(plugins(plugin), engine())
    client = await fleet.client()
    for _ in range(5):
        await client.post(chat())

    assert {turn.method for turn in fleet.engines[0].turns} == {"POST"}


async def test_an_endpoint_that_is_gone_is_asked_no_more(start_fleet: StartFleet) -> None:
    fleet = await start_fleet(LEAST_REQUEST, engine(waiting(1)), engine(waiting(2)))
    await all_read(fleet)
    fleet.serve(fleet.engines[1])
    gone, kept = fleet.engines
    await eventually(lambda: gone.open == 0)
    asked, others = len(gone.turns), len(kept.turns)
    await eventually(lambda: len(kept.turns) > others + 5)

    assert len(gone.turns) == asked
    assert readings(fleet)[0] is None
    assert readings(fleet)[1] is not None


async def test_a_kept_connection_that_the_engine_has_closed_is_no_failure(
    start_fleet: StartFleet,
) -> None:
    known: list[object] = []

    async def answers_once(turn: Turn) -> None:
        if turn.connection in known:
            turn.close()
        else:
            known.append(turn.connection)
            await engine(waiting(1))(turn)

    fleet = await start_fleet(LEAST_REQUEST, answers_once)
    await eventually(lambda: len(known) > 3)

    assert fleet.router.running.operations.configuration.scheduling.polling.failures == 0


async def test_engines_are_asked_again_and_again(start_fleet: StartFleet) -> None:
    fleet = await start_fleet(LEAST_REQUEST, engine(waiting(1)))
    await all_read(fleet)
    fleet.engines[0].script = engine(waiting(3))
    await eventually(lambda: [each and each.waiting for each in readings(fleet)] == [3])

    assert fleet.engines[0].connections == 1, "over a connection that is kept"


async def test_a_large_fleet_is_asked_less_often() -> None:
    polling = EnginePolling(Interest(metrics=True), 1.0)
    polling.follow([_Silent() for _ in range(10 * MOST_ASKED_PER_SECOND)])  # type: ignore[misc]

    assert polling.interval_seconds == 10
    polling.stop()


class _Silent:
    """Stands for an endpoint that is never asked, because the tasks are stopped before."""

    host = b""
    idle: Any = None
    connect: Callable[..., None]
