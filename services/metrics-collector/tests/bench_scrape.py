"""What a scrape costs: `PYTHONPATH=. python services/metrics-collector/tests/bench_scrape.py`.

Pages of 60 KB come from another process, one address of 127.1.0.0/16 per pod, connections are kept;
samples go to a real NATS server. Figures are CPU of this process; medians of five runs with their
spread, and prometheus_client's parser of the same page in the same run beside them. `--json` gives
the same for machines.
"""

import asyncio
import contextlib
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any

from collector_builders import (
    Scaler,
    binding,
    changed,
    engine_page,
    pod,
    policy,
    serving,
    single,
    workload,
)
from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families

from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.services import Service
from inferbus_metrics_collector.adapters_bus import BusSink
from inferbus_metrics_collector.adapters_pages import HttpPages
from inferbus_metrics_collector.adapters_prometheus import PrometheusQueries
from inferbus_metrics_collector.core import Fleet, wanted_families
from inferbus_metrics_collector.effects import Sampler
from inferbus_metrics_collector.main import serve
from inferbus_metrics_collector.pod_pages import PodPages
from inferbus_metrics_collector.policy_history import Window
from inferbus_metrics_collector.policy_scan import scan
from inferbus_metrics_collector.policy_schedule import Round
from inferbus_metrics_collector.policy_targets import NamespaceGrants
from inferbus_metrics_collector.settings import MetricsCollectorSettings
from inferbus_metrics_collector.telemetry import ScrapeMetrics
from inferbus_shared.bus.bus import Bus
from tests.support.nats import NatsServer, running_server
from tests.support.services import running_service

PAGE_BYTES = 60_000
RUNS = 5
ONE = ["vllm:num_requests_waiting"]
TEN = [
    "kthena:num_requests_waiting",
    "kthena:num_requests_running",
    "kthena:generation_tokens_total",
    "kthena:time_to_first_token_seconds",
    "vllm:e2e_request_latency_seconds",
    "vllm:kv_cache_usage_perc",
    "vllm:prompt_tokens_total",
    "vllm:prefix_cache_hits_total",
    "llamacpp:requests_deferred",
    "tgi_queue_size",
]
IDLE_SECONDS = 15

_SERVER = """
import asyncio, sys
body = sys.stdin.buffer.read()
head = b"HTTP/1.1 200 OK\\r\\nContent-Type: text/plain\\r\\nContent-Length: %d\\r\\n\\r\\n"
answer = head % len(body) + body
class Page(asyncio.Protocol):
    def connection_made(self, transport):
        self.transport = transport
    def data_received(self, data):
        for _ in range(data.count(b"\\r\\n\\r\\n")):
            self.transport.write(answer)
async def main():
    server = await asyncio.get_running_loop().create_server(Page, "0.0.0.0", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()
asyncio.run(main())
"""


def cpu_us(work: Callable[[], object], times: int) -> list[float]:
    """Microseconds of CPU per call, of each run."""
    runs = []
    for _ in range(RUNS):
        started = time.process_time()
        for _ in range(times):
            work()
        runs.append((time.process_time() - started) / times * 1e6)
    return runs


@contextlib.contextmanager
def page_process(page: bytes) -> Iterator[int]:
    """A process that serves `page` on all loopback addresses; gives its port."""
    with tempfile.TemporaryFile() as file:
        file.write(page)
        file.seek(0)
        process = subprocess.Popen(
            [sys.executable, "-c", _SERVER], stdin=file, stdout=subprocess.PIPE
        )
        assert process.stdout is not None
        try:
            yield int(process.stdout.readline())
        finally:
            process.kill()
            process.wait()
            process.stdout.close()


class Rounds:
    """Targets with pods, sampled as fast as possible."""

    def __init__(self, bus: Bus, port: int, names: list[str], targets: int, pods: int) -> None:
        self.clock_ms = 0
        self.http = HttpPages(4 * 1024 * 1024)
        self.queries = PrometheusQueries(3)
        self.pods = targets * pods
        pages = PodPages(
            self.http,
            lambda: self.clock_ms,
            ScrapeMetrics(CollectorRegistry()),
            window=Window(length_ms=15_000, interval_ms=5_000),
            timeout_seconds=30,
            concurrency=256,
        )
        self.sampler = Sampler(pages, self.queries, BusSink(bus), lambda: self.clock_ms)
        fleet = Fleet(grants=NamespaceGrants())
        metrics = [{"metricName": name, "targetValue": 1} for name in names]
        fleet.fold_object(
            ObjectKey("AutoscalingPolicy", "default", "p"), changed(policy(metrics=metrics))
        )
        for target in range(targets):
            name = f"m{pods}-{target}"
            spec = single(name, metricEndpoint={"port": port})
            bound = binding(f"b-{name}", scalingConfiguration=spec)
            key = ObjectKey(bound.kind, "default", bound.metadata.name)
            fleet.fold_object(key, changed(bound))
            fleet.workloads[serving(name)] = workload(
                *(pod(f"{name}-{n}", address=f"127.1.{target}.{n + 1}") for n in range(pods))
            )
        self.facts = fleet.workloads
        self.plans = fleet.planned().plans
        self.wanted = wanted_families(self.plans.values())
        self.number = time.time_ns()

    async def run(self, rounds: int) -> tuple[float, float]:
        """(microseconds of CPU, microseconds of time) per pod."""
        cpu, wall = time.process_time(), time.perf_counter()
        for _ in range(rounds):
            self.number += 1
            self.clock_ms += 5_000
            await asyncio.gather(
                *(
                    self.sampler.sample(plan, Round(key, self.number), self.facts, self.wanted)
                    for key, plan in self.plans.items()
                )
            )
        scraped = rounds * self.pods
        return (
            (time.process_time() - cpu) / scraped * 1e6,
            (time.perf_counter() - wall) / scraped * 1e6,
        )

    async def close(self) -> None:
        self.http.close()
        await self.queries.close()


async def whole_path(bus: Bus, port: int, names: list[str], targets: int, pods: int) -> Any:
    rounds = Rounds(bus, port, names, targets, pods)
    per_run = max(1200 // rounds.pods, 1)
    await rounds.run(2)
    runs = [await rounds.run(per_run) for _ in range(RUNS)]
    await rounds.close()
    return {
        "cpu_us": spread([cpu for cpu, _ in runs]),
        "pods_per_second": round(1e6 / statistics.median(wall for _, wall in runs)),
    }


async def idle(server: NatsServer, port: int, targets: int) -> float:
    """Percent of a core that the service takes with the default interval, one pod per target."""
    specs = Service.SPEC_WATCHER
    pods = Service.WORKLOAD_RECONCILER
    async with (
        server.bus(specs) as watcher,
        server.bus(pods) as reconciler,
    ):
        listed = [{"metricName": name, "targetValue": 1} for name in ONE]
        resources: tuple[Scaler, ...] = (
            policy(metrics=listed),
            *(
                binding(
                    f"idle-{n}",
                    scalingConfiguration=single(f"idle-{n}", metricEndpoint={"port": port}),
                )
                for n in range(targets)
            ),
        )
        for resource in resources:
            key = ObjectKey(resource.kind, "default", resource.metadata.name)
            await watcher.publish(watcher.event(changed(resource), key, id=f"{targets}-{key}"))
        for n in range(targets):
            key = serving(f"idle-{n}")
            fact = workload(pod(f"idle-{n}-0", address=f"127.1.250.{n + 1}"))
            await reconciler.publish(reconciler.event(fact, key, id=f"{targets}-{key}"))
        async with running_service(server, serve, MetricsCollectorSettings(), f"idle-{targets}"):
            await asyncio.sleep(5)
            started = time.process_time()
            await asyncio.sleep(IDLE_SECONDS)
            spent = time.process_time() - started
        return round(spent / IDLE_SECONDS * 100, 2)


def spread(runs: list[float]) -> dict[str, float]:
    return {
        "median": round(statistics.median(runs), 1),
        "min": round(min(runs), 1),
        "max": round(max(runs), 1),
    }


async def measure() -> dict[str, Any]:
    page = engine_page(PAGE_BYTES)
    reference = spread(cpu_us(lambda: list(text_string_to_metric_families(page.decode())), 5))
    figures: dict[str, Any] = {
        "page_bytes": len(page),
        "parser_us": reference,
        "scanner_1_family_us": spread(cpu_us(lambda: scan(page, ONE), 200)),
        "scanner_10_families_us": spread(cpu_us(lambda: scan(page, TEN), 100)),
    }
    with page_process(page) as port, running_server() as server:
        await server.provision()
        async with server.bus(Service.METRICS_COLLECTOR) as bus:
            for names, targets, pods in ((ONE, 20, 1), (ONE, 20, 10), (TEN, 20, 1), (TEN, 20, 10)):
                name = f"whole_path_{len(names)}_metrics_{targets}_targets_of_{pods}"
                figures[name] = await whole_path(bus, port, names, targets, pods)
                median = figures[name]["cpu_us"]["median"]
                figures[name]["parser_ratio"] = round(reference["median"] / median, 1)
        for targets in (1, 20):
            figures[f"idle_percent_{targets}_targets"] = await idle(server, port, targets)
    return figures


def main() -> None:
    figures = asyncio.run(measure())
    if "--json" in sys.argv[1:]:
        sys.stdout.write(json.dumps(figures, indent=1) + "\n")
        return
    for name, value in figures.items():
        sys.stdout.write(f"{name}: {value}\n")


if __name__ == "__main__":
    main()
