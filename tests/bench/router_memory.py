"""How much a router worker grows while it serves: between its first requests and its last.

`INFERBUS_BENCH_ROUTER_REQUESTS` sets how many that are; the promise is about ten million.
"""

import asyncio
import contextlib
import json
import os
import socket
import sys
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

from inferbus_contracts.events.route import EndpointEntry, RouteEntry, RuleEntry, ServerEntry
from inferbus_contracts.events.route import TargetShare as Share
from inferbus_contracts.keys import ObjectKey
from tests.bench.figure import Figure
from tests.bench.memory_load import KINDS, MODELS, Load, start_engines
from tests.bench.processes import memory_bytes

REQUESTS_VARIABLE = "INFERBUS_BENCH_ROUTER_REQUESTS"
REQUESTS = 200_000
FIRST_REQUESTS = 2_000
"""The connections stand then, and every kind of request has come."""
CLIENTS = 16
LOOKS = 10
LIMIT_MB = 5.0
NAMESPACE = "bench"
_PROGRAM = "from inferbus_router.main import main; raise SystemExit(main([]))"


async def measure() -> list[Figure]:
    """One worker with a table from a file, engines and clients in this process."""
    requests = int(os.environ.get(REQUESTS_VARIABLE, REQUESTS))
    ports, servers = await start_engines()
    with socket.socket() as dead:
        dead.bind(("127.0.0.1", 0))
        table = _table(ports, dead.getsockname()[1])
        async with _running_worker(table) as (pid, port):
            load = Load(port)
            await load.run(FIRST_REQUESTS, CLIENTS)
            looks = [memory_bytes(pid)]
            for step in range(1, LOOKS + 1):
                await load.run(FIRST_REQUESTS + requests * step // LOOKS, CLIENTS)
                looks.append(memory_bytes(pid))
    for server in servers:
        server.close()
    return [_figure(looks, load.answered)]


def _figure(looks: list[int], answered: int) -> Figure:
    grown = [(look - looks[0]) / 1e6 for look in looks[1:]]
    return Figure(
        name="router-memory",
        value=round(grown[-1], 2),
        unit="MB grown",
        limit=LIMIT_MB,
        meaning="proportional set size of a worker after all requests less that after the first "
        f"{FIRST_REQUESTS}: ever new model names, request ids, prompts, paths and connections, "
        "engines that work, fail and break off",
        configuration={"requests": answered, "clients": CLIENTS, "workers": 1},
        detail={
            "first_mb": round(looks[0] / 1e6, 1),
            "grown_mb_by_tenths": ", ".join(f"{each:.2f}" for each in grown),
        },
    )


def _table(ports: dict[str, int], dead_port: int) -> dict[str, object]:
    """Every kind of engine under one or many names, beside one that isn't there."""
    parts: dict[ObjectKey, RouteEntry | ServerEntry] = {}
    for kind in KINDS:
        server = ObjectKey("ModelServer", NAMESPACE, kind)
        parts[server] = ServerEntry(
            target=f"ModelServing/{NAMESPACE}/{kind}",
            retry_attempts=1,
            retry_interval_ms=1,
            endpoints=[
                EndpointEntry(pod=kind, address="127.0.0.1", port=ports[kind]),
                EndpointEntry(pod=f"{kind}-dead", address="127.0.0.1", port=dead_port),
            ],
        )
        for number in range(MODELS):
            rule = RuleEntry(targets=[Share(server=str(server))])
            name = f"{kind}-{number}"
            parts[ObjectKey("ModelRoute", NAMESPACE, name)] = RouteEntry(
                model_name=name, rules=[rule]
            )
    return {str(key): part.to_dict() for key, part in parts.items()}


@contextlib.asynccontextmanager
async def _running_worker(table: dict[str, object]) -> AsyncIterator[tuple[int, int]]:
    """A router process; its pid and port."""
    with tempfile.TemporaryDirectory() as folder, socket.socket() as listening:
        path = Path(folder) / "table.json"
        path.write_text(json.dumps(table))
        listening.bind(("127.0.0.1", 0))
        listening.listen(1024)
        settings = {
            "TABLE_FILE": path,
            "LISTEN_FD": listening.fileno(),
            "HTTP_PORT": 0,
            "ACCESS_LOG_PATH": os.devnull,
        }
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", _PROGRAM),
            env=dict(os.environ) | {f"INFERBUS_ROUTER_{k}": str(v) for k, v in settings.items()},
            pass_fds=(listening.fileno(),),
            stderr=asyncio.subprocess.DEVNULL,
        )
        try:
            yield process.pid, listening.getsockname()[1]
        finally:
            process.kill()
            await process.wait()
