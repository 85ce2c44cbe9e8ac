"""What the router adds to a request: latency and CPU, beside the same engine asked directly."""

import statistics

from tests.bench.configuration import configuration
from tests.bench.figure import Detail, Figure
from tests.bench.fleet import engine_urls
from tests.bench.paced_client import Round, ask_for
from tests.bench.processes import cpu_seconds
from tests.bench.router_kills import router_workers
from tests.support.eventually import eventually
from tests.support.platform import Platform, model_manifests, running_platform

CLIENTS = 4
ROUNDS = 5
ROUND_SECONDS = 1.5
MODEL = "chat"


async def measure() -> list[Figure]:
    """Rounds in turn, directly and through the router; the engine itself takes no time."""
    with running_platform("--startup", "0", "--accelerator", "instant") as platform:
        platform.apply(*model_manifests(MODEL))
        await eventually(lambda: platform.complete(MODEL).status == 200, 60)
        async with platform.bus() as bus:
            engine = (await engine_urls(bus, [MODEL]))[MODEL]
        await ask_for(platform.router, MODEL, CLIENTS, ROUND_SECONDS)
        direct, routed, spent = [], [], 0.0
        for _ in range(ROUNDS):
            direct.append(await ask_for(engine, MODEL, CLIENTS, ROUND_SECONDS))
            before = _spent(platform)
            routed.append(await ask_for(platform.router, MODEL, CLIENTS, ROUND_SECONDS))
            spent += _spent(platform) - before
        load = configuration(platform.directory, replicas=1, accelerator="instant", clients=CLIENTS)
        return _figures(direct, routed, spent, load)


def _spent(platform: Platform) -> float:
    """CPU time of all workers so far, seconds."""
    return sum(cpu_seconds(platform.pid(name)) for name in router_workers(platform))


def _figures(
    direct: list[Round], routed: list[Round], spent: float, load: dict[str, Detail]
) -> list[Figure]:
    requests = sum(len(one.latencies_ms) for one in routed)
    ratio = statistics.median(
        through.rate / straight.rate for through, straight in zip(routed, direct, strict=True)
    )
    added_ms = statistics.median(one.median_ms for one in routed) - statistics.median(
        one.median_ms for one in direct
    )
    return [
        Figure(
            name="router-throughput",
            value=round(ratio * 100, 1),
            unit="% of direct requests/s",
            meaning="completions per second through the router beside those of the engine asked "
            "directly, medians of rounds in turn; clients, engine and router share the cores",
            configuration=load,
            detail={
                "through_router_per_second": _rates(routed),
                "direct_per_second": _rates(direct),
            },
        ),
        Figure(
            name="router-latency",
            value=round(added_ms, 2),
            unit="ms added at p50",
            meaning="median latency of a completion through the router less that of the engine "
            "asked directly, same rounds",
            configuration=load,
            detail={"direct_p50_ms": round(statistics.median(one.median_ms for one in direct), 2)},
        ),
        Figure(
            name="router-cpu",
            value=round(spent / requests * 1e6, 1),
            unit="µs per request",
            meaning="user and system time of all router workers by request, same rounds",
            configuration=load,
            detail={"requests": requests},
        ),
    ]


def _rates(rounds: list[Round]) -> str:
    return ", ".join(f"{one.rate:.0f}" for one in rounds)
