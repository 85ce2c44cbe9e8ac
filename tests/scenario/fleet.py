"""A small fleet under load, as the scenarios of kills and restarts share it.

Three workloads: `chat` is scaled by itself, `mix` is split over two targets by the optimizer, and
nothing ever scales `steady`. Load comes in two levels, each with its own number of replicas, and is
long enough that samples see it.
"""

import asyncio
import json
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from inferbus_cli.platform.health import readiness
from inferbus_contracts.errors import ProblemsError
from inferbus_shared.processes.identity import ProcessIdentity, alive, read_identity
from tests.support.eventually import eventually
from tests.support.ledger import Ledger, contradictions, read_ledger, record_of
from tests.support.load import Load
from tests.support.platform import Platform, model_manifests

QUICK = {"INFERBUS_METRICS_COLLECTOR_INTERVAL_SECONDS": "1"}
"""Settings with which load is noticed within a second."""

CHAT = "ModelServing/default/chat"
STEADY = "steady"
STEADY_REPLICAS = 2
LOW, HIGH = 1, 6
"""Requests under way: enough for one replica, and for three."""
TOKENS = 60
BEHAVIOUR = {"scaleDown": {"period": "1s", "stabilizationWindow": "3s"}}
"""Down almost at once, and not for the gap between two requests."""


def fleet_manifests() -> list[dict[str, Any]]:
    """All three workloads with their policies."""
    documents = [
        *model_manifests("chat", scaling=(1, 3)),
        *model_manifests(STEADY, replicas=STEADY_REPLICAS),
        *_mix_manifests(),
    ]
    for document in documents:
        if document["kind"] == "AutoscalingPolicy":
            document["spec"]["behavior"] = BEHAVIOUR
    return documents


def _mix_manifests() -> list[dict[str, Any]]:
    serving, server, route, policy, binding = model_manifests("cheap", scaling=(1, 2))
    other, other_server, _ = model_manifests("costly")
    for one in (server, other_server):
        one["spec"]["model"] = one["metadata"]["name"]
    targets = [("cheap", 1, 2, 10), ("costly", 1, 3, 30)]
    binding["spec"]["heterogeneousTarget"] = {
        "params": [_weighted(binding, *target) for target in targets]
    }
    del binding["spec"]["homogeneousTarget"]
    route["metadata"]["name"] = route["spec"]["modelName"] = "mix"
    route["spec"]["rules"][0]["targetModels"] = [
        {"modelServerName": name, "weight": 50} for name, *_ in targets
    ]
    return [serving, server, other, other_server, route, policy, binding]


def _weighted(
    binding: Mapping[str, Any], name: str, least: int, most: int, cost: int
) -> dict[str, Any]:
    target = json.loads(json.dumps(binding["spec"]["homogeneousTarget"]["target"]))
    target["targetRef"]["name"] = name
    return {"target": target, "minReplicas": least, "maxReplicas": most, "cost": cost}


def set_load(load: Load, requests: int) -> None:
    """From now on that many requests to what is scaled, and a little to the rest."""
    load.clients("chat", requests, max_tokens=TOKENS)
    load.clients("mix", requests, max_tokens=TOKENS)
    load.clients(STEADY, 1, max_tokens=TOKENS)


async def until(predicate: Callable[[], object], what: str, seconds: float = 60.0) -> None:
    """Wait for what takes a few seconds on a quiet machine; load goes on meanwhile."""
    await eventually(lambda: asyncio.to_thread(predicate), seconds, what)


async def serving(platform: Platform) -> None:
    """Wait until all three answer."""
    for model in ("chat", "mix", STEADY):
        await until(partial(_answers, platform, model), f"{model} serves")


def _answers(platform: Platform, model: str) -> bool:
    return platform.complete(model).status == 200


async def ledger_of(platform: Platform) -> Ledger:
    """What was decided so far."""
    async with platform.bus() as bus:
        return await read_ledger(bus)


async def scaled(platform: Platform, wanted: int) -> None:
    """Wait until `chat` should have that many replicas, and has them."""
    await until(lambda: _scaled(platform, wanted), f"chat has {wanted} replicas")


def _scaled(platform: Platform, wanted: int) -> bool:
    desired = platform.get("modelserving", "chat")["spec"]["replicas"]
    return bool(desired == wanted == len(pods_of(platform, "chat")))


async def adds_up(platform: Platform) -> Ledger:
    """Wait until every decision is answered: then nothing in the log contradicts the rest."""

    async def settled() -> Ledger:
        ledger = await ledger_of(platform)
        said = contradictions(ledger)
        assert not said, said
        return ledger

    return await eventually(settled, 30)


def decided_by(ledger: Ledger) -> set[str]:
    """The deciders that said anything."""
    return {record_of(decision).decider for decision in ledger.decisions}


async def back(platform: Platform, name: str, killed: int) -> None:
    """Wait until a killed process runs again by itself, and is ready."""

    def ready() -> bool:
        row = platform.processes()[name]
        running = row.pid not in (None, killed)
        return running and (not row.health_url or readiness(row.health_url) == "")

    await until(ready, f"{name} is back")


def pods_of(platform: Platform, workload: str) -> dict[str, ProcessIdentity]:
    """The engine process of each pod of a workload, by the pod's uid; all of them run."""
    running = engines(platform)
    found = {}
    for pod in pods(platform):
        if pod["metadata"]["name"].startswith(f"{workload}-"):
            (found[pod["metadata"]["uid"]],) = running[pod["metadata"]["uid"]]
    return found


def pods(platform: Platform) -> list[dict[str, Any]]:
    """The pod objects; raises `ProblemsError` when they can't be read."""
    said = platform.inferbus("get", "pods", "-o", "json", check=False)
    if said.returncode != 0:
        raise ProblemsError()
    items: list[dict[str, Any]] = json.loads(said.stdout)["items"]
    return items


def engines(platform: Platform) -> dict[str, list[ProcessIdentity]]:
    """The living container processes by the uid of their pod."""
    found: dict[str, list[ProcessIdentity]] = {}
    for path in platform.directory.pods.glob("*/containers/*/*.identity.json"):
        identity = read_identity(path)
        if identity is not None and alive(identity):
            found.setdefault(path.parents[2].name, []).append(identity)
    return found
