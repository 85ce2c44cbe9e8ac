"""The router as a program: how it starts, what it refuses, and how workers share a socket."""

import asyncio
import contextlib
import gc
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from inferbus_router.adapters_static import published
from inferbus_router.main import route_by
from inferbus_router.ports import SilentDemandSink, TableSink
from inferbus_router.settings import RouterSettings
from inferbus_shared.clock import SystemClock
from inferbus_shared.settings import BusSettings
from services.router.tests.builders import Entries, route, route_key, server, server_key
from services.router.tests.client import Client, chat, patiently
from services.router.tests.conftest import StartEngine
from services.router.tests.engine import Engine, Turn
from tests.support.eventually import eventually

PROGRAM = "from inferbus_router.main import main; raise SystemExit(main([]))"


def table_file(folder: Path, engine: Engine) -> Path:
    """A table that leads to the engine."""
    entries = {route_key("r"): route(), server_key("ms"): server(engine.entry())}
    path = folder / "table.json"
    path.write_text(json.dumps({str(key): entry.to_dict() for key, entry in entries.items()}))
    return path


class Worker:
    """A router process."""

    def __init__(self, process: asyncio.subprocess.Process, log: Path) -> None:
        self.process = process
        self.log = log

    def said(self) -> str:
        """What it wrote to standard error."""
        return self.log.read_text()

    def port(self) -> int:
        """Where it listens, as it says itself."""
        words = self.said().partition("listens on port ")[2]
        return int(words.partition(",")[0]) if words else 0

    async def stop(self) -> int:
        """Ask it to end; returns its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return await patiently(self.process.wait())


@asynccontextmanager
async def running_worker(
    folder: Path, *fds: int, name: str = "router", **settings: object
) -> AsyncIterator[Worker]:
    """A router process, killed at the end if it still runs."""
    known = {"PORT": 0, "HTTP_PORT": 0, "ACCESS_LOG": "off", "DRAIN_LINGER_SECONDS": 0.5}
    environment = dict(os.environ) | {
        f"INFERBUS_ROUTER_{key}": str(value) for key, value in (known | settings).items()
    }
    log = folder / f"{name}.log"
    with log.open("w") as file:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", PROGRAM), env=environment, stderr=file, pass_fds=fds
        )
    try:
        yield Worker(process, log)
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()


async def test_it_serves_a_table_from_a_file_until_it_is_told_to_stop(
    tmp_path: Path, start_engine: StartEngine
) -> None:
    table = table_file(tmp_path, await start_engine())
    lines = tmp_path / "access.log"
    async with running_worker(
        tmp_path, TABLE_FILE=table, ACCESS_LOG="json", ACCESS_LOG_PATH=lines
    ) as worker:
        port = await eventually(worker.port)
        client = await Client.connect(port)
        assert (await client.post(chat())).status == 200
        client.close()
        assert await worker.stop() == 0

    (line,) = lines.read_text().splitlines()
    assert json.loads(line)["status_code"] == 200


async def test_running_streams_are_finished_after_sigterm(
    tmp_path: Path, start_engine: StartEngine
) -> None:
    finish = asyncio.Event()

    async def slow(turn: Turn) -> None:
        await finish.wait()
        await turn.respond({"late": True})

    engine = await start_engine(slow)
    async with running_worker(tmp_path, TABLE_FILE=table_file(tmp_path, engine)) as worker:
        client = await Client.connect(await eventually(worker.port))
        posting = asyncio.create_task(client.post(chat()))
        await eventually(lambda: engine.turns)
        stopping = asyncio.create_task(worker.stop())
        loop = asyncio.get_running_loop()
        loop.call_later(0.3, finish.set)

        assert (await posting).json == {"late": True}
        assert await stopping == 0
        client.close()


async def test_a_second_signal_ends_the_wait(tmp_path: Path, start_engine: StartEngine) -> None:
    async def endless(turn: Turn) -> None:
        await asyncio.Event().wait()

    engine = await start_engine(endless)
    async with running_worker(tmp_path, TABLE_FILE=table_file(tmp_path, engine)) as worker:
        client = await Client.connect(await eventually(worker.port))
        posting = asyncio.create_task(client.post(chat()))
        await eventually(lambda: engine.turns)
        worker.process.send_signal(signal.SIGTERM)
        await eventually(lambda: "stops" in worker.said())
        worker.process.send_signal(signal.SIGTERM)

        assert await patiently(worker.process.wait()) == 0
        with pytest.raises(Exception):  # noqa: B017, PT011 - whichever way the connection breaks
            await posting
        client.close()


async def test_no_connection_is_refused_while_workers_behind_one_socket_are_replaced(
    tmp_path: Path, start_engine: StartEngine
) -> None:
    table = table_file(tmp_path, await start_engine())
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    listening.listen(1024)
    port, fd = listening.getsockname()[1], listening.fileno()
    statuses: list[int] = []
    done = False

    async def load() -> None:
        while not done:
            client = await Client.connect(port)
            for _ in range(5):
                response = await client.post(chat())
                statuses.append(response.status)
                if response.headers.get("connection") == "close":
                    break
            client.close()

    async with (
        running_worker(tmp_path, fd, name="a", TABLE_FILE=table, LISTEN_FD=fd) as first,
        running_worker(tmp_path, fd, name="b", TABLE_FILE=table, LISTEN_FD=fd) as second,
    ):
        await eventually(lambda: first.port() and second.port())
        running = [asyncio.create_task(load()) for _ in range(8)]
        await eventually(lambda: len(statuses) > 100)
        assert await first.stop() == 0
        async with running_worker(tmp_path, fd, name="c", TABLE_FILE=table, LISTEN_FD=fd) as third:
            await eventually(third.port)
            count = len(statuses)
            await eventually(lambda: len(statuses) > count + 100)
            assert await second.stop() == 0
            count = len(statuses)
            await eventually(lambda: len(statuses) > count + 100)
            done = True
            await asyncio.gather(*running)
    listening.close()

    assert set(statuses) == {200}


class LateTable:
    """A `TableSource` whose table comes when it is let go."""

    def __init__(self, engine: Engine) -> None:
        self.known = asyncio.Event()
        self._entries: Entries = {
            route_key("r"): route(),
            server_key("ms"): server(engine.entry()),
        }

    async def run(self, sink: TableSink) -> None:
        await self.known.wait()
        sink.apply(published(self._entries, 1))
        sink.snapshot_ended()


async def test_a_worker_without_a_table_lets_clients_wait_and_never_says_not_found(
    start_engine: StartEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gc, "freeze", lambda: None)  # this process isn't the router's alone
    monkeypatch.setattr(gc, "set_threshold", lambda *_: None)
    listening = socket.create_server(("127.0.0.1", 0))
    port = listening.getsockname()[1]
    settings = RouterSettings(
        listen_fd=listening.detach(), http_port=0, access_log="off", drain_linger_seconds=0
    )
    late, stop = LateTable(await start_engine()), asyncio.Event()
    routing = asyncio.create_task(
        route_by(settings, BusSettings(), SystemClock(), late, SilentDemandSink(), stop)
    )
    client = await Client.connect(port)
    asyncio.get_running_loop().call_later(0.3, late.known.set)
    assert (await client.post(chat())).status == 200
    client.close()
    stop.set()
    await patiently(routing)


def run_program(**settings: object) -> subprocess.CompletedProcess[str]:
    """The program, with settings that it can't use."""
    environment = dict(os.environ) | {
        f"INFERBUS_ROUTER_{key}": str(value) for key, value in settings.items()
    }
    return subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_a_port_that_is_taken_is_told_with_a_remedy(tmp_path: Path) -> None:
    (tmp_path / "t.json").write_text("{}")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        ended = run_program(PORT=port, TABLE_FILE=tmp_path / "t.json")

    assert ended.returncode == 3
    assert "IB-4001" in ended.stderr
    assert f"127.0.0.1:{port}" in ended.stderr
    assert "INFERBUS_ROUTER_PORT to a free port" in ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"PORT": "many"}, "INFERBUS_ROUTER_PORT"),
        ({"MAX_BODY_BYTES": 5}, "INFERBUS_ROUTER_MAX_BODY_BYTES"),
        ({"ACCESS_LOG": "xml"}, "INFERBUS_ROUTER_ACCESS_LOG"),
        ({"PORT": 0, "TABLE_FILE": "/nowhere.json"}, "/nowhere.json"),
        ({"PORT": 0, "TABLE_FILE": "/dev/null", "HOST": "no.such.host.invalid"}, "no.such.host"),
        ({"PORT": 0, "TABLE_FILE": "/dev/null", "LISTEN_FD": 77}, "INFERBUS_ROUTER_LISTEN_FD"),
        (
            {"PORT": 0, "TABLE_FILE": "/dev/null", "ACCESS_LOG_PATH": "/no/such/folder/x"},
            "INFERBUS_ROUTER_ACCESS_LOG_PATH",
        ),
        (
            {"PORT": 0, "TABLE_FILE": "/dev/null", "UPSTREAM_CA_FILE": "/no/such/file"},
            "INFERBUS_ROUTER_UPSTREAM_CA_FILE",
        ),
    ],
)
def test_what_it_cannot_start_with_is_told_by_name(settings: dict[str, object], said: str) -> None:
    ended = run_program(**settings)

    assert ended.returncode == 2
    assert said in ended.stderr
    assert "Traceback" not in ended.stderr


def test_it_imports_nothing_it_does_not_need() -> None:
    """The router starts in every worker; what it doesn't need would cost time and memory."""
    heavy = ("faststream", "kubernetes_asyncio", "prometheus_client", "yaml")
    code = (
        "import sys, inferbus_router.main\n"
        f"print([name for name in {heavy!r} if name in sys.modules])"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )

    assert ended.stdout.strip() == "[]"
