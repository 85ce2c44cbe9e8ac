"""The sidecar beside an engine, over real connections."""

import asyncio
import json
import signal
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from inferbus_engine_agent.effects import EngineClient
from inferbus_engine_agent.main import build_app, main
from inferbus_engine_agent.policy_arguments import parse_arguments
from inferbus_engine_agent.settings import AgentSettings
from tests.support.eventually import eventually

PAGES = Path(__file__).parent / "data"


class StubEngine:
    """An engine that answers what a test wants, and remembers what it was asked."""

    def __init__(self) -> None:
        self.health = 200
        self.page_status = 200
        self.page = (PAGES / "vllm.txt").read_text()
        self.gate = asyncio.Event()
        self.gate.set()
        self.scrapes = 0
        self.adapter_reply = (200, "done")
        self.posted: list[tuple[str, Any]] = []

    def app(self) -> web.Application:
        app = web.Application()
        app.add_routes(
            [
                web.get("/health", self._health),
                web.get("/metrics", self._metrics),
                web.get("/stats/prometheus", self._metrics),
                web.post("/{path:.*}", self._post),
            ]
        )
        return app

    async def _health(self, _: web.Request) -> web.Response:
        await self.gate.wait()
        return web.Response(status=self.health)

    async def _metrics(self, _: web.Request) -> web.Response:
        self.scrapes += 1
        await self.gate.wait()
        return web.Response(status=self.page_status, text=self.page)

    async def _post(self, request: web.Request) -> web.Response:
        self.posted.append((request.path, await request.json()))
        return web.Response(status=self.adapter_reply[0], text=self.adapter_reply[1])


class Pod:
    """An engine, its sidecar, and a client of the sidecar."""

    def __init__(self, engine: StubEngine, server: TestServer, client: Any) -> None:
        self.engine = engine
        self.server = server
        self.client = client

    async def get(self, path: str) -> tuple[int, str]:
        async with self.client.get(path) as response:
            return response.status, await response.text()

    async def post(self, path: str, body: Any) -> tuple[int, str]:
        data = body if isinstance(body, bytes) else json.dumps(body)
        async with self.client.post(path, data=data) as response:
            return response.status, await response.text()


StartPod = Callable[..., Awaitable[Pod]]


@pytest.fixture
async def start_pod() -> AsyncIterator[StartPod]:
    """Starts pods; they are stopped at the end of the test."""
    pods: list[Pod] = []
    sessions: list[aiohttp.ClientSession] = []

    async def start(kind: str = "vllm", *words: str, **settings: float) -> Pod:
        engine = StubEngine()
        server = TestServer(engine.app())
        await server.start_server()
        url = str(server.make_url(""))
        options = parse_arguments(["-E", kind, "-B", url, "-I", "p.ns", "-N", "m", *words])
        session = aiohttp.ClientSession()
        client = TestClient(TestServer(build_app(options, AgentSettings(**settings), session)))
        await client.start_server()
        sessions.append(session)
        pods.append(Pod(engine, server, client))
        return pods[-1]

    yield start
    for pod in pods:
        pod.engine.gate.set()
        await pod.client.close()
        await pod.server.close()
    for session in sessions:
        await session.close()


async def test_health_is_the_engines(start_pod: StartPod) -> None:
    pod = await start_pod()
    assert await pod.get("/health") == (200, '{"status": "healthy", "service": "runtime"}')

    pod.engine.health = 503
    status, text = await pod.get("/health")
    assert status == 503
    assert "answers 503" in text

    await pod.server.close()
    status, text = await pod.get("/health")
    assert status == 503
    assert "can't be reached" in text


async def test_health_does_not_wait_for_an_engine_that_hangs(start_pod: StartPod) -> None:
    pod = await start_pod(health_timeout_seconds=0.05)
    pod.engine.gate.clear()
    status, text = await pod.get("/health")

    assert status == 503
    assert "0.05 s" in text


async def test_metrics_have_both_names(start_pod: StartPod) -> None:
    pod = await start_pod()
    async with pod.client.get("/metrics") as response:
        text = await response.text()

    assert response.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert "\nvllm:num_requests_running{" in text
    assert "\nkthena:num_requests_running{" in text


@pytest.mark.parametrize(
    ("page_status", "page", "status", "told"),
    [
        (500, "", 502, "answers 500"),
        (404, "", 502, "answers 404"),
        (200, "<html>", 500, "line 1 is no metric"),
    ],
)
async def test_a_missing_or_unreadable_page_is_an_error(
    start_pod: StartPod, page_status: int, page: str, status: int, told: str
) -> None:
    pod = await start_pod()
    pod.engine.page_status, pod.engine.page = page_status, page
    found = await pod.get("/metrics")

    assert found[0] == status
    assert told in found[1]
    assert json.loads(found[1])["problems"][0]["remedy"]


async def test_the_page_stands_at_the_engines_own_path_too(start_pod: StartPod) -> None:
    pod = await start_pod("vllm", "-M", "stats/prometheus")
    status, page = await pod.get("/stats/prometheus")
    assert status == 200
    assert await pod.get("/metrics") == (200, page)


async def test_an_engine_that_is_gone_is_a_502(start_pod: StartPod) -> None:
    pod = await start_pod()
    await pod.server.close()

    assert (await pod.get("/metrics"))[0] == 502


async def test_readers_at_the_same_time_share_one_scrape(start_pod: StartPod) -> None:
    pod = await start_pod()
    url = str(pod.server.make_url(""))
    options = parse_arguments(["-E", "vllm", "-B", url, "-I", "p.ns", "-N", "m"])
    async with aiohttp.ClientSession() as session:
        client = EngineClient(options, AgentSettings(), session)
        pod.engine.gate.clear()
        readers = [asyncio.create_task(client.metrics_page()) for _ in range(5)]
        await eventually(lambda: pod.engine.scrapes)
        late = asyncio.create_task(client.metrics_page())
        readers[0].cancel()
        pod.engine.gate.set()
        pages = await asyncio.gather(*readers[1:], late)

        assert pod.engine.scrapes == 1
        assert set(pages) == {pod.engine.page}
        await client.metrics_page()
        assert pod.engine.scrapes == 2, "the next reader gets a fresh page"


async def test_drain_tells_what_is_left(start_pod: StartPod) -> None:
    pod = await start_pod()
    assert json.loads((await pod.get("/drain"))[1]) == {
        "running": 4.0,
        "waiting": 0.0,
        "drained": False,
    }
    pod.engine.page = "vllm:num_requests_running 0\nvllm:num_requests_waiting 0\n"
    assert json.loads((await pod.get("/drain"))[1])["drained"] is True
    pod.engine.page = "vllm:num_requests_running 0\nvllm:num_requests_waiting 1\n"
    assert json.loads((await pod.get("/drain"))[1])["drained"] is False


async def test_a_dead_engine_does_not_hold_up_a_drain(start_pod: StartPod) -> None:
    pod = await start_pod()
    await pod.server.close()
    body = json.loads((await pod.get("/drain"))[1])

    assert body["drained"] is True
    assert "can't be reached" in body["reason"]


@pytest.mark.parametrize(("kind", "prefix"), [("vllm", "/v1"), ("sglang", "")])
async def test_adapters_are_forwarded_to_the_engines_own_path(
    start_pod: StartPod, kind: str, prefix: str
) -> None:
    pod = await start_pod(kind)
    reference = {"lora_name": "sql", "source": "s3://b/sql", "output_dir": "/cache/4c82"}
    assert await pod.post("/v1/load_lora_adapter", reference) == (200, "done")
    await pod.post("/v1/load_lora_adapter", {"lora_name": "chat", "lora_path": "/cache/c"})
    await pod.post("/v1/unload_lora_adapter", {"lora_name": "sql"})

    assert pod.engine.posted == [
        (f"{prefix}/load_lora_adapter", {"lora_name": "sql", "lora_path": "/cache/4c82"}),
        (f"{prefix}/load_lora_adapter", {"lora_name": "chat", "lora_path": "/cache/c"}),
        (f"{prefix}/unload_lora_adapter", {"lora_name": "sql"}),
    ]


async def test_the_engines_refusal_is_relayed(start_pod: StartPod) -> None:
    pod = await start_pod()
    pod.engine.adapter_reply = (404, "no such adapter")

    body = {"lora_name": "sql"}
    assert await pod.post("/v1/unload_lora_adapter", body) == (404, "no such adapter")


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (b"{", "JSON object"),
        ([], "JSON object"),
        ({"lora_path": "/x"}, "lora_name"),
        ({"lora_name": "a"}, "output_dir"),
        ({"lora_name": 3, "lora_path": "/x"}, "lora_name"),
    ],
)
async def test_a_bad_adapter_request_reaches_no_engine(
    start_pod: StartPod, body: Any, told: str
) -> None:
    pod = await start_pod()
    status, text = await pod.post("/v1/load_lora_adapter", body)

    assert status == 400
    assert told in text
    assert pod.engine.posted == []


async def test_an_engine_without_adapters_says_so(start_pod: StartPod) -> None:
    pod = await start_pod("llamacpp")

    assert (await pod.post("/v1/unload_lora_adapter", {"lora_name": "a"}))[0] == 501


async def test_the_program_runs_until_it_is_stopped() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "inferbus_engine_agent.main", "-E", "vllm", "-I", "p.ns"),
        *("-N", "m", "-H", "127.0.0.1", "-P", str(port), "-B", "http://127.0.0.1:9"),
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:

        async def status() -> int:
            url = f"http://127.0.0.1:{port}/health"
            async with aiohttp.ClientSession() as session, session.get(url) as response:
                return response.status

        assert await eventually(status) == 503
        process.send_signal(signal.SIGTERM)
        assert await process.wait() == 0
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


def test_bad_input_ends_with_exit_code_2_and_a_taken_port_with_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--engine", "triton", "--pod", "p", "--model", "m"]) == 2
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        argv = ["-E", "vllm", "-I", "p", "-N", "m", "-H", "127.0.0.1", "-P", port]
        assert main(argv) == 1
        monkeypatch.setenv("INFERBUS_ENGINE_AGENT_SCRAPE_TIMEOUT_SECONDS", "0")
        assert main(argv) == 2

    errors = capsys.readouterr().err
    assert "triton" in errors
    assert "INFERBUS_ENGINE_AGENT_SCRAPE_TIMEOUT_SECONDS" in errors
    assert "Traceback" not in errors
