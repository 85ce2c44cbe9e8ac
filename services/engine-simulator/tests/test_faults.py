"""Injected failures, as clients meet them."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import aiohttp
import pytest

from inferbus_contracts.errors import ProblemsError
from inferbus_engine_simulator.policy_faults import Fault, FaultKind, FaultPlan, parse_faults
from tests.support.eventually import eventually

StartEngine = Callable[..., Awaitable[Any]]

ASK = {"prompt": "hi", "max_tokens": 5}


async def status(engine: Any, **body: Any) -> int:
    async with engine.client.post("/v1/completions", json={**ASK, **body}) as response:
        await response.read()
        return int(response.status)


async def set_faults(engine: Any, *faults: dict[str, Any]) -> None:
    async with engine.client.post("/simulator/faults", json=list(faults)) as response:
        assert response.status == 200, await response.text()


async def test_an_error_happens_as_often_as_it_was_asked_for(start_engine: StartEngine) -> None:
    engine = await start_engine()
    await set_faults(engine, {"kind": "error", "status": 503, "count": 2})

    assert [await status(engine) for _ in range(3)] == [503, 503, 200]


async def test_faults_can_be_set_from_the_start_listed_and_removed(
    start_engine: StartEngine,
) -> None:
    engine = await start_engine(faults=[Fault(kind=FaultKind.ERROR, status=429)])
    assert await status(engine) == 429
    async with engine.client.get("/simulator/faults") as response:
        assert [fault["kind"] for fault in await response.json()] == ["error"]
    await engine.client.delete("/simulator/faults")

    assert await status(engine) == 200


async def test_a_hanging_request_answers_nobody_until_the_client_leaves(
    start_engine: StartEngine,
) -> None:
    engine = await start_engine()
    await set_faults(engine, {"kind": "hang", "after_tokens": 2, "count": 1})
    body = {**ASK, "stream": True}
    async with engine.client.post("/v1/completions", json=body) as response:
        for _ in range(2):
            await response.content.readuntil(b"\n\n")
        assert engine.runner.view().statistics.generation_tokens.total() == 5
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await response.content.readuntil(b"\n\n")

    assert await status(engine) == 200


@pytest.mark.parametrize("stream", [False, True])
async def test_a_dropped_connection_ends_without_an_answer(
    start_engine: StartEngine, stream: bool
) -> None:
    engine = await start_engine()
    await set_faults(engine, {"kind": "drop_connection", "after_tokens": 2, "count": 1})
    with pytest.raises((aiohttp.ClientConnectionError, aiohttp.ClientPayloadError)):
        await status(engine, stream=stream)

    await eventually(lambda: not engine.runner.busy)
    assert await status(engine, stream=stream) == 200


@pytest.mark.parametrize("stream", [False, True])
async def test_garbage_is_no_json(start_engine: StartEngine, stream: bool) -> None:
    engine = await start_engine()
    await set_faults(engine, {"kind": "garbage"})
    async with engine.client.post("/v1/completions", json={**ASK, "stream": stream}) as response:
        assert response.status == 200
        text = (await response.text()).removeprefix("data: ").rstrip()

    with pytest.raises(json.JSONDecodeError):
        json.loads(text)


@pytest.mark.parametrize("stream", [False, True])
async def test_an_exit_ends_the_process_with_its_code(
    start_engine: StartEngine, stream: bool
) -> None:
    engine = await start_engine()
    await set_faults(engine, {"kind": "exit", "exit_code": 137})
    body = {**ASK, "stream": stream}
    request = asyncio.ensure_future(engine.client.post("/v1/completions", json=body))
    await eventually(lambda: engine.exits)
    request.cancel()

    assert engine.exits == [137]


async def test_an_unhealthy_engine_still_serves(start_engine: StartEngine) -> None:
    engine = await start_engine()
    await set_faults(engine, {"kind": "unhealthy", "status": 503, "count": 1})
    answers = []
    for _ in range(2):
        async with engine.client.get("/health") as response:
            answers.append(response.status)

    assert await status(engine) == 200
    assert answers == [503, 200]


async def test_a_slow_engine_takes_longer_for_each_step(start_engine: StartEngine) -> None:
    engine = await start_engine(preset="h100", rate=1000.0)
    life = []
    for factor in (1.0, 50.0):
        await set_faults(engine, {"kind": "slow", "factor": factor})
        await status(engine, max_tokens=40)
        life.append(engine.runner.view().statistics.busy_us)

    assert life[1] - life[0] == pytest.approx(50 * life[0], rel=0.01)


async def test_a_slow_request_waits_before_it_reaches_the_engine(
    start_engine: StartEngine,
) -> None:
    engine = await start_engine(rate=1000.0)
    await set_faults(engine, {"kind": "slow", "delay_ms": 20_000, "count": 1})
    before_ms = engine.runner.now_ms
    assert await status(engine) == 200

    assert engine.runner.now_ms - before_ms >= 20_000


@pytest.mark.parametrize(
    ("document", "field"),
    [
        ({"kind": "explode"}, "faults.0.kind"),
        ([{"kind": "error"}, {"kind": "error", "status": 200}], "faults.1.status"),
        ({"kind": "error", "often": True}, "faults.0.often"),
        ({"kind": "error", "probability": 2}, "faults.0.probability"),
        ("error", "faults.0"),
    ],
)
async def test_a_malformed_fault_is_told_by_its_field(
    start_engine: StartEngine, document: Any, field: str
) -> None:
    with pytest.raises(ProblemsError) as caught:
        parse_faults(document, "faults")
    assert [problem.field for problem in caught.value.problems] == [field]

    engine = await start_engine()
    async with engine.client.post("/simulator/faults", json=document) as response:
        assert response.status == 400
        assert (await response.json())["problems"][0]["field"] == field


def test_a_probability_hurts_about_that_share_of_requests_and_always_the_same() -> None:
    def struck(seed: int) -> list[bool]:
        plan = FaultPlan([Fault(kind=FaultKind.ERROR, probability=0.2)], seed)
        return [plan.for_request() is not None for _ in range(2000)]

    assert 0.17 < sum(struck(0)) / 2000 < 0.23
    assert struck(0) == struck(0) != struck(1)


async def test_the_metrics_page_goes_wrong_alone(start_engine: StartEngine) -> None:
    engine = await start_engine()

    async def page() -> tuple[int, str]:
        async with engine.client.get("/metrics") as response:
            return response.status, await response.text()

    await set_faults(engine, {"kind": "garbage", "scope": "metrics", "count": 1})
    assert await status(engine) == 200
    _, garbage = await page()
    assert "} x0.0" in garbage
    await set_faults(engine, {"kind": "error", "scope": "metrics", "status": 503, "count": 1})
    assert (await page())[0] == 503
    answer, whole = await page()
    assert (answer, "} x" in whole) == (200, False)
