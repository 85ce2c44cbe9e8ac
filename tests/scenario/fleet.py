"""A small fleet under load, as the scenarios of kills and restarts share it.

Three workloads: `chat` is scaled by itself, `mix` is split over two workloads by the optimizer, and
nothing ever scales `steady`. Load comes in two levels, each with its own number of replicas, and is
long enough that samples see it.
"""

import contextlib
import copy
from collections.abc import AsyncIterator, Iterable, Mapping
from functools import partial
from typing import Any

from inferbus_cli.platform.health import readiness
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.resources.kinds import POD
from inferbus_shared.bus.bus import Bus
from inferbus_shared.objects.client import ObjectClient
from inferbus_shared.processes.identity import ProcessIdentity
from tests.support.eventually import eventually
from tests.support.ledger import Ledger, contradictions, read_ledger
from tests.support.load import Load
from tests.support.platform import Platform, engines, model_manifests

QUICK = {"INFERBUS_METRICS_COLLECTOR_INTERVAL_SECONDS": "1"}
"""Settings with which load is noticed within a second."""
PATIENCE_SECONDS = 60.0
"""For what takes a few seconds on a quiet machine."""

CHAT = ObjectKey("ModelServing", "default", "chat")
STEADY = "steady"
STEADY_REPLICAS = 2
MODELS = ("chat", "mix", STEADY)

REQUESTS = {1: 1, 3: 6}
"""Replicas of `chat` that so many requests under way ask for."""
SHORT_REQUESTS = 2
TOKENS = 20
"""Of one answer: a second or so, longer than the time between two samples."""
BEHAVIOUR = {"scaleDown": {"period": "1s", "stabilizationWindow": "3s"}}
"""Down almost at once, and not for the gap between two requests."""


def fleet_manifests() -> list[dict[str, Any]]:
    """All three workloads with their policies."""
    documents = [
        *model_manifests("chat", scaling=(1, 3)),
        *model_manifests(STEADY, replicas=STEADY_REPLICAS),
        *mix_manifests("mix", "spare", most=2),
    ]
    for document in documents:
        if document["kind"] == "AutoscalingPolicy":
            document["spec"]["behavior"] = BEHAVIOUR
    return documents


def mix_manifests(cheap: str, costly: str, most: int) -> list[dict[str, Any]]:
    """A model that two workloads serve under the name of the first, `most` replicas each."""
    serving, server, route, policy, binding = model_manifests(cheap, scaling=(1, most))
    other, other_server, _ = model_manifests(costly)
    for one in (server, other_server):
        one["spec"]["model"] = one["metadata"]["name"]
    single = binding["spec"].pop("homogeneousTarget")
    costs = {cheap: 10, costly: 30}
    binding["spec"]["heterogeneousTarget"] = {
        "params": [_weighted(single, name, cost) for name, cost in costs.items()]
    }
    route["spec"]["rules"][0]["targetModels"] = [
        {"modelServerName": name, "weight": 50} for name in costs
    ]
    return [serving, server, other, other_server, route, policy, binding]


def _weighted(single: Mapping[str, Any], name: str, cost: int) -> dict[str, Any]:
    own = copy.deepcopy(dict(single))
    own["target"]["targetRef"]["name"] = name
    return {**own, "cost": cost}


class Fleet:
    """The fleet on one platform; `fleet_on` connects to it."""

    def __init__(self, platform: Platform, bus: Bus) -> None:
        self.platform = platform
        self._bus = bus
        self._objects = ObjectClient(bus, "test")
        self.clients = 0
        """How many ask at the same time."""

    async def serving(self, models: Iterable[str] = MODELS) -> None:
        """Wait until all of them answer."""
        for model in models:
            await eventually(partial(self._answers, model), PATIENCE_SECONDS, f"{model} serves")

    def _answers(self, model: str) -> bool:
        return self.platform.complete(model).status == 200

    def load(self, load: Load, replicas: int) -> None:
        """From now on so much to what is scaled that it wants `replicas`.

        The rest gets short requests, which try again and again whether they are let in.
        """
        requests = REQUESTS[replicas]
        load.clients("chat", requests, max_tokens=TOKENS)
        load.clients("mix", requests, max_tokens=TOKENS)
        load.clients(STEADY, SHORT_REQUESTS, max_tokens=1)
        self.clients = max(self.clients, 2 * requests + SHORT_REQUESTS)

    async def replicas(self) -> int:
        """What the stored object of `chat` wants; never between its two levels for long."""
        stored = await self._objects.get(CHAT)
        return int(stored["spec"]["replicas"])

    async def scaled(self, wanted: int) -> None:
        """Wait until `chat` should have that many replicas, and has them."""

        async def there() -> bool:
            running = await self.engines_of("chat")
            return wanted == await self.replicas() == len(running)

        await eventually(there, PATIENCE_SECONDS, f"chat has {wanted} replicas")

    async def adds_up(self) -> Ledger:
        """Wait until every decision is answered: then nothing in the log contradicts the rest."""

        async def settled() -> Ledger:
            ledger = await read_ledger(self._bus)
            said = contradictions(ledger)
            assert not said, said
            return ledger

        return await eventually(settled, PATIENCE_SECONDS)

    async def back(self, name: str, killed: int) -> None:
        """Wait until a killed process runs again by itself, and is ready."""

        def ready() -> bool:
            row = self.platform.processes()[name]
            runs = row.pid not in (None, killed)
            return runs and (not row.health_url or readiness(row.health_url) == "")

        await eventually(ready, PATIENCE_SECONDS, f"{name} is back")

    async def engines_of(self, workload: str) -> dict[str, ProcessIdentity]:
        """The engine's process of each pod of a workload, by the pod's uid.

        Raises `ValueError` for a pod with more or less than one.
        """
        running = engines(self.platform)
        owned = [
            pod["metadata"]["uid"]
            for pod in await self._objects.find(POD)
            if pod["metadata"]["name"].startswith(f"{workload}-")
        ]
        found = {}
        for uid in owned:
            (found[uid],) = running.get(uid, [])
        return found

    async def every_pod_once(self) -> bool:
        """Whether each pod has one process, and each engine's process a pod."""
        running = engines(self.platform)
        uids = {pod["metadata"]["uid"] for pod in await self._objects.find(POD)}
        return running.keys() == uids and all(len(one) == 1 for one in running.values())


@contextlib.asynccontextmanager
async def fleet_on(platform: Platform) -> AsyncIterator[Fleet]:
    """The fleet, seen by the user of the command line."""
    async with platform.bus() as bus:
        yield Fleet(platform, bus)
