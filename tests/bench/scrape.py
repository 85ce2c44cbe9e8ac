"""What sampling one pod costs, all of it, against what a general parser of its page alone takes."""

import gc
import statistics
import time
from collections.abc import Sequence

from prometheus_client.parser import text_string_to_metric_families

from inferbus_contracts.services import Service
from inferbus_shared.bus.bus import Bus
from tests.bench.figure import Detail, Figure
from tests.bench.page_process import page_process
from tests.bench.scrape_rounds import Rounds
from tests.support.engine_pages import engine_page
from tests.support.nats import running_server

PAGE_BYTES = 60_000
RUNS = 7
PARSED_PAGES = 5
"""Of each run."""
SCRAPED_PODS = 1_000
"""Of each run."""
TARGETS, PODS = 20, 10
CHEAPER_TIMES = 30
PODS_PER_SECOND = 3_000
METRICS = ("kthena:num_requests_waiting", "kthena:time_to_first_token_seconds")
"""A load and a latency: what policies look at."""
MORE_METRICS = (
    *METRICS,
    "kthena:num_requests_running",
    "kthena:generation_tokens_total",
    "vllm:e2e_request_latency_seconds",
    "vllm:kv_cache_usage_perc",
    "vllm:prompt_tokens_total",
    "vllm:prefix_cache_hits_total",
    "llamacpp:requests_deferred",
    "tgi_queue_size",
)


async def measure() -> list[Figure]:
    """The parser and the collector in turns, so that both see the same machine."""
    gc.freeze()  # as every process of a platform does once it has started
    page = engine_page(PAGE_BYTES)
    text = page.decode()
    with page_process(page) as port, running_server() as server:
        await server.provision()
        async with server.bus(Service.METRICS_COLLECTOR) as bus:
            parser_us, whole_us = await _in_turns(text, bus, port)
            detail: dict[str, Detail] = {
                f"{len(metrics)}_metrics_{pods}_pods_a_target_cpu_us": await _cpu_us(
                    bus, port, metrics, pods
                )
                for metrics, pods in (
                    (METRICS[:1], PODS),
                    (MORE_METRICS[:4], PODS),
                    (MORE_METRICS, PODS),
                    (METRICS, 1),
                )
            }
    configuration: dict[str, Detail] = {
        "page_bytes": len(page),
        "targets": TARGETS,
        "pods_a_target": PODS,
        "metrics": ", ".join(METRICS),
        "runs": RUNS,
    }
    return [
        _share(parser_us, whole_us, configuration),
        _cost(whole_us, configuration, detail),
    ]


async def _in_turns(text: str, bus: Bus, port: int) -> tuple[list[float], list[float]]:
    rounds = Rounds(bus, port, METRICS, targets=TARGETS, pods=PODS)
    await rounds.run(2)
    parser_us, whole_us = [], []
    for _ in range(RUNS):
        parser_us.append(_parse_us(text))
        whole_us.append(await rounds.run(SCRAPED_PODS // rounds.pods))
    await rounds.close()
    return parser_us, whole_us


def _parse_us(text: str) -> float:
    began = time.process_time()
    for _ in range(PARSED_PAGES):
        list(text_string_to_metric_families(text))
    return (time.process_time() - began) / PARSED_PAGES * 1e6


async def _cpu_us(bus: Bus, port: int, metrics: Sequence[str], pods: int) -> float:
    rounds = Rounds(bus, port, metrics, targets=TARGETS, pods=pods)
    await rounds.run(2)
    runs = [await rounds.run(SCRAPED_PODS // rounds.pods) for _ in range(3)]
    await rounds.close()
    return round(statistics.median(runs), 1)


def _share(
    parser_us: Sequence[float], whole_us: Sequence[float], configuration: dict[str, Detail]
) -> Figure:
    shares = [whole / parser for parser, whole in zip(parser_us, whole_us, strict=True)]
    return Figure(
        name="scrape-share",
        value=round(statistics.median(shares) * 100, 2),
        unit="percent",
        limit=round(100 / CHEAPER_TIMES, 2),
        meaning="CPU of sampling one pod (HTTP over a kept connection, reading the page, rates and "
        "quantiles, publication stored by NATS) as a share of what prometheus_client's parser "
        "alone takes for the page, measured in turns",
        configuration=configuration,
        detail={
            "times_cheaper": round(1 / statistics.median(shares), 1),
            "parser_cpu_us": round(statistics.median(parser_us), 1),
            "shares_percent": ", ".join(f"{share * 100:.2f}" for share in shares),
        },
    )


def _cost(
    whole_us: Sequence[float], configuration: dict[str, Detail], detail: dict[str, Detail]
) -> Figure:
    median_us = statistics.median(whole_us)
    return Figure(
        name="scrape-cpu",
        value=round(median_us, 1),
        unit="us/pod",
        limit=round(1e6 / PODS_PER_SECOND, 1),
        meaning="CPU of sampling one pod, all of it; the limit is what one core has for each of "
        f"{PODS_PER_SECOND} pods a second",
        configuration=configuration,
        detail={
            "pods_per_second_and_core": round(1e6 / median_us),
            "runs_us": ", ".join(f"{run:.0f}" for run in whole_us),
            **detail,
        },
    )
