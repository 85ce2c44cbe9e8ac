"""What the router costs beside other proxies, with everything on, and what it stands.

Rounds in turn in one run, the proxies on one processor and the compiled engine and clients on the
other: what counts is the ratio. A proxy that can't be had is left out, and said so.
"""

import contextlib
import statistics
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.bench.figure import Detail, Figure
from tests.bench.peers.bodies import chat_bodies
from tests.bench.peers.contestants import PEERS, inferbus
from tests.bench.peers.programs import Load, MissingToolError, engine, processors
from tests.bench.peers.proxy import Proxy, running, under_load

OURS, DIRECT = "inferbus", "direct"
ROUNDS = 3
CLIENTS = 64
STREAMS, STREAM_REQUESTS, CHUNKS, PACE_MS = 100, 300, 64, 20
PACED_RATE = 1000
LARGE_PROMPT_BYTES, LARGE_CLIENTS = 220_000, 20


@dataclass(frozen=True, kw_only=True)
class _Round:
    load: Load
    cpu_seconds: float


Rounds = Mapping[str, Sequence[_Round]]
"""By contestant."""


async def measure() -> list[Figure]:
    """The figures that compare; those whose peer is missing are left out."""
    measured_cpu, measuring_cpu = processors()
    async with contextlib.AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        engines = stack.enter_context(engine(PACE_MS, CHUNKS, measuring_cpu))
        ours = await stack.enter_async_context(
            running(OURS, inferbus, engines, folder, measured_cpu)
        )
        proxies = [Proxy(DIRECT, engines[0]), ours]
        for name, start in PEERS.items():
            try:
                proxies.append(
                    await stack.enter_async_context(
                        running(name, start, engines, folder, measured_cpu)
                    )
                )
            except MissingToolError as error:
                sys.stderr.write(f"without {name}: {error}\n")
        return await _compare(proxies, folder, measuring_cpu)


async def _compare(proxies: Sequence[Proxy], folder: Path, cpu: int | None) -> list[Figure]:
    ordinary = chat_bodies(folder / "ordinary", count=40, prompt_bytes=600)
    streamed = chat_bodies(folder / "streamed", count=40, prompt_bytes=600, stream=True)
    large = chat_bodies(folder / "large", count=20, prompt_bytes=LARGE_PROMPT_BYTES)
    full = {one.name: list[_Round]() for one in proxies}
    paced = {one.name: list[_Round]() for one in proxies}
    streams = {one.name: list[_Round]() for one in proxies}
    prompts = {one.name: list[_Round]() for one in proxies}
    for _ in range(ROUNDS):
        for one in proxies:
            full[one.name].append(await _round(one, ordinary, cpu, CLIENTS, 2.5))
        for one in proxies:
            paced[one.name].append(await _round(one, ordinary, cpu, 50, 2.5, rate=PACED_RATE))
        for one in proxies:
            streams[one.name].append(
                await _round(one, streamed, cpu, STREAMS, 30, requests=STREAM_REQUESTS)
            )
        for one in proxies:
            prompts[one.name].append(await _round(one, large, cpu, LARGE_CLIENTS, 2.0))
    return [
        *_throughput(full),
        *_chunks(streams),
        *_added(paced),
        _large_prompt(prompts),
    ]


async def _round(
    proxy: Proxy,
    bodies: Path,
    cpu: int | None,
    connections: int,
    seconds: float,
    rate: int = 0,
    requests: int = 0,
) -> _Round:
    load, spent = await under_load(
        proxy,
        bodies,
        cpu,
        connections=connections,
        seconds=seconds,
        rate=rate,
        requests=requests,
    )
    if proxy.name == OURS and load.errors:
        raise AssertionError(f"{load.errors} requests failed through {proxy.name}")
    return _Round(load=load, cpu_seconds=spent)


def _throughput(rounds: Rounds) -> list[Figure]:
    rates = {name: _median([one.load.rate for one in found]) for name, found in rounds.items()}
    spent = {
        name: _median([one.cpu_seconds / one.load.requests * 1e6 for one in found])
        for name, found in rounds.items()
        if name != DIRECT
    }
    detail = {f"{name}_per_second": round(rate) for name, rate in rates.items()}
    costs = {f"{name}_us": round(cost, 1) for name, cost in spent.items()}
    figures = [
        Figure(
            name="router-cpu-per-request",
            value=round(spent[OURS], 1),
            unit="µs",
            meaning="user and system time of one router process by completion, at saturation",
            configuration=_configuration(connections=CLIENTS),
            detail=costs,
        )
    ]
    if "sglang-router" in rates:
        figures += [
            Figure(
                name="router-rate-to-sglang",
                value=round(rates[OURS] / rates["sglang-router"], 2),
                unit="times",
                limit=1.5,
                more_is_better=True,
                meaning="completions per second on one processor beside sglang-router's",
                configuration=_configuration(connections=CLIENTS),
                detail=detail,
            ),
            Figure(
                name="router-cpu-to-sglang",
                value=round(spent[OURS] / spent["sglang-router"], 2),
                unit="times",
                limit=0.6,
                meaning="CPU time by completion beside sglang-router's, same rounds",
                configuration=_configuration(connections=CLIENTS),
                detail=costs,
            ),
        ]
    return figures


def _chunks(rounds: Rounds) -> list[Figure]:
    spent = {
        name: _median([one.cpu_seconds / max(1, one.load.events) * 1e6 for one in found])
        for name, found in rounds.items()
        if name != DIRECT
    }
    if "nginx" not in spent:
        return []
    return [
        Figure(
            name="router-chunk-cpu-to-nginx",
            value=round(spent[OURS] / spent["nginx"], 2),
            unit="times",
            limit=1.5,
            meaning="CPU time by streamed event beside nginx's",
            configuration=_configuration(streams=STREAMS, events=CHUNKS, pace_ms=PACE_MS),
            detail={f"{name}_us": round(cost, 1) for name, cost in spent.items()},
        )
    ]


def _added(rounds: Rounds) -> list[Figure]:
    medians = {name: _median([r.load.p50_us for r in found]) for name, found in rounds.items()}
    tails = {name: _median([r.load.p99_us for r in found]) for name, found in rounds.items()}
    return [
        Figure(
            name=f"router-added-{label}",
            value=round((found[OURS] - found[DIRECT]) / 1000, 2),
            unit="ms",
            limit=limit,
            meaning=f"{label} of a completion through the router less that of the engine asked "
            "directly, at an even rate",
            configuration=_configuration(requests_per_second=PACED_RATE),
            detail={f"{name}_{label}_us": round(value) for name, value in found.items()},
        )
        for label, limit, found in (("p50", 1.0, medians), ("p99", 5.0, tails))
    ]


def _large_prompt(rounds: Rounds) -> Figure:
    medians = {name: _median([r.load.p50_us for r in found]) for name, found in rounds.items()}
    return Figure(
        name="router-large-prompt",
        value=round((medians[OURS] - medians[DIRECT]) / 1000, 2),
        unit="ms added at p50",
        limit=10.0,
        meaning="latency of a large prompt through the router less that of the engine asked "
        "directly; each client asks again as soon as it is answered",
        configuration=_configuration(prompt_bytes=LARGE_PROMPT_BYTES, in_flight=LARGE_CLIENTS),
        detail={f"{name}_p50_us": round(value) for name, value in medians.items()},
    )


def _configuration(**load: Detail) -> dict[str, Detail]:
    apart = processors()[0] is not None
    return {
        "processors": "one for proxies, one for engine and clients" if apart else "one for all",
        "rounds": ROUNDS,
        **load,
    }


def _median(values: Sequence[float]) -> float:
    return statistics.median(values)
