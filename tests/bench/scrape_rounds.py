"""Rounds of the metrics collector over many pods, as fast as it can.

Everything between a pod and the log is there: HTTP over kept connections, reading the page, rates
and quantiles, and a sample that a real NATS server has stored.
"""

import asyncio
import time
from collections.abc import Sequence

from prometheus_client import CollectorRegistry

from inferbus_contracts.events.spec import SpecChanged
from inferbus_contracts.events.workload import PodFact, WorkloadObserved
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.resources.kinds import AUTOSCALING_POLICY, KINDS, MODEL_SERVING
from inferbus_metrics_collector.adapters_bus import BusSink
from inferbus_metrics_collector.adapters_pages import HttpPages
from inferbus_metrics_collector.adapters_prometheus import PrometheusQueries
from inferbus_metrics_collector.core import Fleet, wanted_families
from inferbus_metrics_collector.effects import Sampler
from inferbus_metrics_collector.page_memory import PageMemory
from inferbus_metrics_collector.pod_pages import PodPages
from inferbus_metrics_collector.policy_history import Window
from inferbus_metrics_collector.policy_schedule import Round
from inferbus_metrics_collector.policy_targets import NamespaceGrants
from inferbus_metrics_collector.settings import MetricsCollectorSettings
from inferbus_metrics_collector.telemetry import ScrapeMetrics
from inferbus_shared.bus.bus import Bus

NAMESPACE = "bench"


class Rounds:
    """Targets with pods, each at an address of its own; virtual time goes on by a round a round."""

    def __init__(
        self, bus: Bus, port: int, metrics: Sequence[str], *, targets: int, pods: int
    ) -> None:
        """`pods`: of each target; all serve the page at `port`."""
        defaults = MetricsCollectorSettings()
        self._interval_ms = round(defaults.interval_seconds * 1000)
        self._now_ms = 0
        self._number = time.time_ns()
        self._pages = HttpPages(PageMemory(defaults.most_page_bytes))
        self._queries = PrometheusQueries(defaults.timeout_seconds)
        reader = PodPages(
            self._pages,
            lambda: self._now_ms,
            ScrapeMetrics(CollectorRegistry()),
            window=Window(
                length_ms=round(defaults.window_seconds * 1000), interval_ms=self._interval_ms
            ),
            timeout_seconds=60,
            concurrency=defaults.concurrency,
        )
        self._sampler = Sampler(reader, self._queries, BusSink(bus), lambda: self._now_ms)
        self._fleet = _fleet(port, metrics, targets, pods)
        self._plans = self._fleet.planned().plans
        self._wanted = wanted_families(self._plans.values())
        self.pods = targets * pods

    async def run(self, rounds: int) -> float:
        """Microseconds of CPU per pod."""
        began = time.process_time()
        for _ in range(rounds):
            self._number += 1
            self._now_ms += self._interval_ms
            await asyncio.gather(*(self._sample(key) for key in self._plans))
        return (time.process_time() - began) / (rounds * self.pods) * 1e6

    async def _sample(self, key: ObjectKey) -> None:
        plan, facts = self._plans[key], self._fleet.workloads
        await self._sampler.sample(plan, Round(key, self._number), facts, self._wanted)

    async def close(self) -> None:
        """Close all connections."""
        self._pages.close()
        await self._queries.close()


def _fleet(port: int, metrics: Sequence[str], targets: int, pods: int) -> Fleet:
    fleet = Fleet(grants=NamespaceGrants())
    for target in range(targets):
        name = f"model-{pods}-{len(metrics)}-{target}"
        key = ObjectKey(AUTOSCALING_POLICY, NAMESPACE, name)
        fleet.fold_object(key, _policy(key, port, metrics))
        facts = [_pod(f"{name}-{n}", f"127.1.{target}.{n + 1}") for n in range(pods)]
        fleet.fold_workload(
            ObjectKey(MODEL_SERVING, NAMESPACE, name),
            WorkloadObserved(uid=name, generation=1, pods=facts),
        )
    return fleet


def _policy(key: ObjectKey, port: int, metrics: Sequence[str]) -> SpecChanged:
    target = {
        "targetRef": {"kind": MODEL_SERVING, "name": key.name},
        "metricSources": {name: {"pod": {"port": port}} for name in metrics},
    }
    return SpecChanged(
        uid=key.name,
        generation=1,
        digest="",
        object={
            "apiVersion": KINDS[key.kind].api_version,
            "kind": key.kind,
            "metadata": {"name": key.name, "namespace": key.namespace},
            "spec": {
                "metrics": [{"name": name, "targetValue": "1"} for name in metrics],
                "homogeneousTarget": {"target": target, "minReplicas": 1, "maxReplicas": 20},
            },
        },
    )


def _pod(name: str, address: str) -> PodFact:
    return PodFact(
        name=name,
        uid=name,
        ready=True,
        entry=True,
        phase="Running",
        address=address,
        starting_since_ms=1,
    )
