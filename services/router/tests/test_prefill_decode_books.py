"""What is counted, charged and logged of requests that two endpoints serve (defect 20)."""

import json
from pathlib import Path
from typing import Any

import pytest

from inferbus_contracts.events.route import TokenLimit
from services.router.tests.builders import route, route_key, server_key
from services.router.tests.client import Client, chat
from services.router.tests.conftest import RouterUnderTest, StartEngine, StartRouter
from services.router.tests.engine import Script, Turn, answers
from services.router.tests.pairs_under_test import (
    closes,
    fails,
    in_turn,
    prefills,
    refuses,
    serve_groups,
    start_group,
    streams,
)
from tests.support.eventually import eventually

PREFIX = "kthena_router_request"


async def counts(router: RouterUnderTest, phase: str) -> dict[str, int]:
    """Requests of a phase by status."""
    page = await (await router.client(router.admin_port)).get("/metrics")
    mark = f"{PREFIX}_{phase}_duration_seconds_count{{"
    lines = [line for line in page.body.decode().splitlines() if line.startswith(mark)]
    found = {}
    for line in lines:
        labels, value = line.removeprefix(mark).split("} ")
        assert 'model="m",path="/v1/chat/completions"' in labels
        found[labels.split('status_code="')[1][:3]] = int(float(value))
    return found


async def test_each_phase_has_its_duration(
    router: RouterUnderTest, start_engine: StartEngine
) -> None:
    serve_groups(router, await start_group(start_engine, decode=streams))
    assert (await (await router.client()).post(chat(stream=True))).status == 200
    await router.settled()

    assert await counts(router, "prefill") == {"200": 1}
    assert await counts(router, "decode") == {"200": 1}


@pytest.mark.parametrize(
    ("scripts", "prefill", "decode"),
    [
        ((in_turn(fails, prefills), answers), {"200": 1, "500": 1}, {"200": 1}),
        ((in_turn(closes, prefills), answers), {"200": 1, "500": 1}, {"200": 1}),
        ((refuses, answers), {"400": 1}, {}),
        ((prefills, refuses), {"200": 1}, {"400": 1}),
        ((prefills, in_turn(closes, closes, answers)), {"200": 3}, {"200": 1, "500": 2}),
    ],
)
async def test_a_phase_is_counted_by_how_it_ended(
    router: RouterUnderTest,
    start_engine: StartEngine,
    scripts: tuple[Script, Script],
    prefill: dict[str, int],
    decode: dict[str, int],
) -> None:
    group = await start_group(start_engine, *scripts)
    serve_groups(router, group, retry_attempts=2, retry_interval_ms=1)
    await (await router.client()).post(chat())
    await router.settled()

    assert await counts(router, "prefill") == prefill
    assert await counts(router, "decode") == decode


async def test_rt_20_tokens_are_counted_once(
    router: RouterUnderTest, start_engine: StartEngine
) -> None:
    """Prefill's answer tells of the same prompt, and of a token that nobody gets."""
    serve_groups(router, await start_group(start_engine, prefills, streams))
    await (await router.client()).post(chat(stream=True))
    await router.settled()

    await eventually(lambda: router.demand.total("output_tokens") == 3)
    assert router.demand.total("arrivals") == router.demand.total("completions") == 1
    assert (await router.metrics())["kthena_router_tokens_total"] == 7 + 3
    assert (await router.metrics())["kthena_router_requests_total"] == 1


async def limited(router: RouterUnderTest, group: Any, **limit: int) -> Client:
    serve_groups(router, group)
    entries = {key: entry for key, entry in router.entries.items() if key == server_key("ms")}
    limits = TokenLimit(unit_seconds=3600, **limit)
    router.apply({**entries, route_key("r"): route(limit=limits)})
    return await router.client()


async def test_rt_20_limits_are_charged_once(
    router: RouterUnderTest, start_engine: StartEngine
) -> None:
    client = await limited(
        router, await start_group(start_engine, prefills, streams), output_tokens=6
    )

    statuses = [(await client.post(chat(stream=True, max_tokens=3))).status for _ in range(3)]

    assert statuses == [200, 200, 429]


async def test_a_request_that_failed_at_prefill_is_charged_nothing(
    router: RouterUnderTest, start_engine: StartEngine
) -> None:
    client = await limited(router, await start_group(start_engine, refuses), input_tokens=15)

    assert [(await client.post(chat())).status for _ in range(4)] == [400] * 4


async def test_rt_20_the_access_log_tells_of_both(
    start_router_under_test: StartRouter, start_engine: StartEngine, tmp_path: Path
) -> None:
    path = tmp_path / "access.log"
    router = await start_router_under_test(access_log="json", access_log_path=path)
    serve_groups(router, await start_group(start_engine, prefills, streams))
    await (await router.client()).post(chat(stream=True))
    await router.stop()

    (line,) = map(json.loads, path.read_text().splitlines())
    assert (line["selected_pod"], line["prefill_pod"]) == ("decode-1", "prefill-1")
    assert (line["input_tokens"], line["output_tokens"]) == (7, 3)
    assert (line["upstream_attempts"], line["upstream_status_code"]) == (1, 200)


async def test_the_text_log_names_the_prefill_pod(
    start_router_under_test: StartRouter, start_engine: StartEngine, tmp_path: Path
) -> None:
    path = tmp_path / "access.log"
    router = await start_router_under_test(access_log="text", access_log_path=path)
    serve_groups(router, await start_group(start_engine))
    await (await router.client()).post(chat())
    await router.stop()

    assert " selected_pod=decode-1 prefill_pod=prefill-1 " in path.read_text()


async def test_the_first_token_is_that_of_decode(
    router: RouterUnderTest, start_engine: StartEngine
) -> None:
    """A stream's time to first token spans prefill, and is counted once."""

    async def streams_too(turn: Turn) -> None:
        assert "stream" not in turn.json
        await prefills(turn)

    serve_groups(router, await start_group(start_engine, streams_too, streams))
    await (await router.client()).post(chat(stream=True))
    await router.settled()

    assert (await router.metrics())["inferbus_router_time_to_first_token_seconds_count"] == 1
