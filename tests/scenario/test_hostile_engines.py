"""Two of three engines show bad metrics: the third goes on scaling its model, and none is taken."""

import json
from typing import Any

import aiohttp
import pytest

from inferbus_contracts.events.metrics import MetricsSampled
from inferbus_contracts.events.workload import PodFact
from inferbus_shared.bus.bus import Bus
from inferbus_shared.bus.follow import Start
from tests.bench.fleet import ready_pods, workload_key
from tests.bench.held_requests import held_requests
from tests.support.eventually import eventually
from tests.support.platform import MODEL_PORT, Platform, model_manifests, running_platform

pytestmark = pytest.mark.slow

MODEL = "chat"
SETTINGS = {
    "INFERBUS_METRICS_COLLECTOR_INTERVAL_SECONDS": "1",
    "INFERBUS_METRICS_COLLECTOR_TIMEOUT_SECONDS": "0.5",
}
AT_ONCE = {
    "scaleUp": {"stablePolicy": {"period": "0s"}, "panicPolicy": {"panicModeHold": "0s"}},
    "scaleDown": {"period": "0s", "stabilizationWindow": "0s"},
}
REQUESTS, SCALED_UP = 10, 5
"""Two running requests fill a replica."""
WATCHED_SAMPLES = 6


def manifests(least: int) -> list[dict[str, Any]]:
    documents = model_manifests(MODEL, replicas=3, scaling=(least, 8))
    policy = next(one for one in documents if one["kind"] == "AutoscalingPolicy")
    policy["spec"]["behavior"] = AT_ONCE
    return documents


def url(pod: PodFact) -> str:
    return f"http://{pod.address}:{MODEL_PORT}"


async def set_fault(pod: PodFact, kind: str) -> None:
    async with (
        aiohttp.ClientSession() as session,
        session.post(
            f"{url(pod)}/simulator/faults", json={"kind": kind, "scope": "metrics"}
        ) as answer,
    ):
        assert answer.status == 200


async def clear_faults(pod: PodFact) -> None:
    async with (
        aiohttp.ClientSession() as session,
        session.delete(f"{url(pod)}/simulator/faults") as answer,
    ):
        assert answer.status == 200


async def incomplete_samples(bus: Bus, number: int) -> None:
    """Wait until that many more samples were taken that lack two pods."""
    async for event in bus.events(bus.follow("metrics.sampled", Start.new())):
        assert isinstance(event.data, MetricsSampled)
        number -= event.key == workload_key(MODEL) and len(event.data.targets[0].missing) == 2
        if number <= 0:
            return


def replicas(platform: Platform) -> int:
    return int(platform.get("modelserving", MODEL)["spec"]["replicas"])


def whole(platform: Platform) -> str:
    status = platform.get("autoscalingpolicybinding", MODEL)["status"]
    found = {one["type"]: one["status"] for one in status["conditions"]}
    return str(found.get("MetricsWhole"))


async def test_bad_pages_cost_no_replica_and_stop_no_scaling() -> None:
    with running_platform("--startup", "0", environment=SETTINGS) as platform:
        platform.apply(*manifests(least=3))
        async with platform.bus() as bus, held_requests() as held:

            async def three() -> list[PodFact]:
                pods = await ready_pods(bus, MODEL)
                assert len(pods) == 3
                return pods

            hanging, garbled, good = await eventually(three, 90)
            await set_fault(hanging, "hang")
            await set_fault(garbled, "garbage")
            await incomplete_samples(bus, 2)
            binding = next(one for one in manifests(1) if one["kind"].endswith("Binding"))
            platform.apply(binding)
            await incomplete_samples(bus, WATCHED_SAMPLES)
            assert replicas(platform) == 3, "idle as far as is known, and two of three unknown"

            held.hold(url(good), MODEL, REQUESTS)
            await eventually(lambda: replicas(platform) >= SCALED_UP, 60)
            held.hold(url(good), MODEL, 0)
            await incomplete_samples(bus, WATCHED_SAMPLES)
            assert replicas(platform) >= SCALED_UP

            await eventually(lambda: whole(platform) == "False", 30)
            told = platform.inferbus("describe", "autoscalingpolicybinding", MODEL).stdout
            assert "SamplesIncomplete" in told
            assert f"pod {hanging.name}: port {MODEL_PORT}/metrics: no page within 0.5 s" in told
            assert f"pod {garbled.name}: " in told
            assert "malformed lines" in told
            assert "metrics.assessed" in told
            assert (
                f"pod {hanging.name}: "
                in platform.inferbus("describe", f"autoscalingpolicy/{MODEL}").stdout
            )

            await clear_faults(hanging)
            await clear_faults(garbled)
            await eventually(lambda: whole(platform) == "True", 30)
            await eventually(lambda: replicas(platform) == 1, 60)
        events = json.loads(
            platform.inferbus("describe", "autoscalingpolicybinding", MODEL, "-o", "json").stdout
        )["events"]
        told_of = [one["data"]["problems"] for one in events if one["type"] == "metrics.assessed"]
        assert [bool(problems) for problems in told_of[-2:]] == [True, False]
