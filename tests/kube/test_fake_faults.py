"""What a test can make the fake do wrong, and what it can look back on."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import pytest_asyncio

from tests.fakes.kubernetes import Answer, Call, Cut, FakeKubernetes, Hang, Page
from tests.support.eventually import eventually
from tests.support.kube import KubeServer
from tests.support.kube_calls import KubeCalls, path_of

Document = dict[str, Any]
MAPS = path_of("configmaps", "default")


def config_map(name: str = "a") -> Document:
    return {"metadata": {"name": name}}


@pytest.fixture
def fake(fake_kube_server: KubeServer) -> FakeKubernetes:
    assert fake_kube_server.fake is not None
    return fake_kube_server.fake


@pytest_asyncio.fixture
async def calls(fake_kube_server: KubeServer) -> AsyncIterator[KubeCalls]:
    async with fake_kube_server.calls() as calls:
        yield calls


@pytest.mark.parametrize("code", [409, 410, 429, 500, 503])
async def test_the_next_call_is_answered_otherwise(
    fake: FakeKubernetes, calls: KubeCalls, code: int
) -> None:
    fake.faults.add(Answer(code, retry_after_seconds=3), verb="create", resource="configmaps")
    struck = await calls.post(MAPS, config_map())
    assert (struck.code, struck.body["kind"]) == (code, "Status")
    assert struck.headers["Retry-After"] == "3"
    assert struck.body["details"]["retryAfterSeconds"] == 3
    assert (await calls.get(f"{MAPS}/a")).code == 404
    assert (await calls.post(MAPS, config_map())).code == 201


async def test_faults_choose_their_calls(
    fake: FakeKubernetes, fake_kube_server: KubeServer, calls: KubeCalls
) -> None:
    fake.faults.add(Answer(500), name="b", verb="get", user="router", times=None)
    fake.faults.add(Answer(429), verb="list", skip=1)
    await calls.post(MAPS, config_map("b"))
    assert (await calls.get(f"{MAPS}/b")).code == 200
    async with fake_kube_server.calls("router") as router:
        assert [(await router.get(f"{MAPS}/b")).code for _ in range(2)] == [500, 500]
        assert (await router.get(f"{MAPS}/a")).code == 404
    assert [(await calls.get(MAPS)).code for _ in range(3)] == [200, 429, 200]
    fake.faults.clear()
    async with fake_kube_server.calls("router") as router:
        assert (await router.get(f"{MAPS}/b")).code == 200


async def test_a_proxys_page(fake: FakeKubernetes, calls: KubeCalls) -> None:
    fake.faults.add(Page())
    answer = await calls.get(MAPS)
    assert answer.code == 502
    assert answer.text.startswith("<html>")
    assert answer.headers["Content-Type"].startswith("text/html")


@pytest.mark.parametrize("carried_out", [True, False])
async def test_a_lost_request_and_a_lost_reply(
    fake: FakeKubernetes, calls: KubeCalls, carried_out: bool
) -> None:
    fake.faults.add(Cut(), verb="create", carried_out=carried_out)
    with pytest.raises(aiohttp.ClientError):
        await calls.post(MAPS, config_map())
    there = (await calls.get(f"{MAPS}/a")).code == 200
    assert there is carried_out


async def test_a_refusal_of_what_was_done(fake: FakeKubernetes, calls: KubeCalls) -> None:
    fake.faults.add(Answer(504), verb="create", carried_out=True)
    assert (await calls.post(MAPS, config_map())).code == 504
    assert (await calls.get(f"{MAPS}/a")).code == 200


async def test_a_call_that_hangs(fake: FakeKubernetes, calls: KubeCalls) -> None:
    fake.faults.add(Hang(), verb="list")
    hanging = asyncio.create_task(calls.get(MAPS))
    await eventually(lambda: fake.record.calls and fake.record.calls[-1].verb == "list")
    assert (await calls.get(f"{MAPS}/a")).code == 404
    assert not hanging.done()
    hanging.cancel()
    with pytest.raises(asyncio.CancelledError):
        await hanging


async def test_watches_stall_are_cut_and_get_junk(fake: FakeKubernetes, calls: KubeCalls) -> None:
    async with calls.watch(MAPS) as watch:
        await eventually(lambda: fake.stall_watches("configmaps"))
        await calls.post(MAPS, config_map())
        with pytest.raises(TimeoutError):
            await watch.event(timeout_seconds=0.05)
        fake.stall_watches(stalled=False)
        event = await watch.event()
        assert event is not None
        assert event["type"] == "ADDED"
        fake.send_to_watches(b"<html>")
        assert await watch.response.content.readline() == b"<html>\n"
        assert fake.cut_watches() == 1
        with pytest.raises(aiohttp.ClientError):
            await watch.event()
    await eventually(lambda: not fake.watches())


async def test_an_open_watch_expires(fake: FakeKubernetes, calls: KubeCalls) -> None:
    async with calls.watch(MAPS) as watch:
        await eventually(lambda: fake.expire_watches())
        [event] = await watch.rest()
    assert (event["type"], event["object"]["code"]) == ("ERROR", 410)


async def test_a_server_that_is_away_keeps_its_port_and_state(
    fake: FakeKubernetes, calls: KubeCalls
) -> None:
    created = await calls.post(MAPS, config_map())
    async with calls.watch(MAPS, resourceVersion=created.revision) as watch:
        await eventually(lambda: fake.watches())
        port = fake.port
        await fake.stop()
        with pytest.raises(aiohttp.ClientError):
            await watch.event()
    with pytest.raises(aiohttp.ClientConnectorError):
        await calls.get(MAPS)
    await fake.start()
    assert fake.port == port
    assert (await calls.get(f"{MAPS}/a")).body == created.body


async def test_calls_are_recorded(fake: FakeKubernetes, calls: KubeCalls) -> None:
    await calls.post(MAPS, config_map())
    await calls.get(f"{MAPS}/none")
    await calls.merge(f"{MAPS}/a", {"data": {"k": "v"}}, fieldManager="m")
    told = [(call.verb, call.method, call.name, call.code) for call in fake.record.calls]
    assert told == [
        ("create", "POST", "", 201),
        ("get", "GET", "none", 404),
        ("patch", "PATCH", "a", 200),
    ]
    last = fake.record.calls[-1]
    assert (last.user, last.namespace, last.plural) == ("admin", "default", "configmaps")
    assert last.body == {"data": {"k": "v"}}
    assert last.query == {"fieldManager": "m"}
    assert [call.verb for call in fake.record.writes()] == ["create", "patch"]
    assert fake.record.count(resource="configmaps") == 3
    assert fake.record.count(verb="get", code=404) == 1


async def test_hooks_stand_before_and_after_each_write(
    fake: FakeKubernetes, calls: KubeCalls
) -> None:
    seen: list[tuple[str, str, int]] = []

    def there() -> int:
        return len(fake.watches("configmaps"))

    async def before(call: Call) -> None:
        await asyncio.sleep(0)
        seen.append(("before", call.verb, call.code))

    fake.before_each_write(before)
    fake.after_each_write(lambda call: seen.append(("after", call.verb, call.code)))
    await calls.post(MAPS, config_map())
    await calls.get(MAPS)
    await calls.delete(f"{MAPS}/a")
    assert there() == 0
    assert seen == [
        ("before", "create", 0),
        ("after", "create", 201),
        ("before", "delete", 0),
        ("after", "delete", 200),
    ]


async def test_a_process_of_its_own(tmp_path: Path) -> None:
    ports = tmp_path / "ports.json"
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.fakes.kubernetes",
        "--ports-file",
        str(ports),
        cwd=Path(__file__).parents[2],
        env={**os.environ, "PYTHONPATH": "."},
    )
    try:
        told = await eventually(lambda: json.loads(ports.read_text()))
        async with KubeCalls(told["url"], told["tokens"]["admin"]) as calls:
            assert (await calls.post(MAPS, config_map())).code == 201
    finally:
        process.send_signal(signal.SIGTERM)
    assert await process.wait() == 0
