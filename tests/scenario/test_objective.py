"""A model with an objective and nothing else, from a fleet under load to zero and back."""

import json
from typing import Any

import pytest

from inferbus_contracts.resources.annotations import OBJECTIVE
from inferbus_shared.objects.client import ObjectClient
from tests.scenario.fleet import CHAT, PATIENCE_SECONDS, fleet_on
from tests.support.eventually import eventually
from tests.support.load import running_load
from tests.support.platform import model_manifests, running_platform

pytestmark = pytest.mark.slow

CLOCK_RATE = "20"
STARTUP_SECONDS = "20"
MOST = 4
LONG_TOKENS = 300


def manifests() -> list[dict[str, Any]]:
    """Engines that take few requests at a time; a policy without metric or behaviour."""
    workload, server, route = model_manifests("chat", engine_arguments=["--max-num-seqs", "4"])
    policy = {
        "apiVersion": workload["apiVersion"],
        "kind": "AutoscalingPolicy",
        "metadata": {"name": "chat", "annotations": {OBJECTIVE: "ttft=2s@99%"}},
        "spec": {
            "homogeneousTarget": {
                "target": {"targetRef": {"kind": "ModelServing", "name": "chat"}},
                "minReplicas": 0,
                "maxReplicas": MOST,
            }
        },
    }
    return [workload, server, route, policy]


async def test_load_adds_replicas_silence_takes_them_all_and_a_request_brings_one_back() -> None:
    with running_platform("--clock-rate", CLOCK_RATE, "--startup", STARTUP_SECONDS) as platform:
        platform.apply(*manifests())
        async with (
            fleet_on(platform) as fleet,
            platform.bus() as bus,
            running_load(platform.router) as load,
        ):
            objects = ObjectClient(bus, "test")
            await fleet.serving(["chat"])

            async def replicas() -> int:
                return int((await objects.get(CHAT))["spec"]["replicas"])

            async def several() -> bool:
                return await replicas() >= 3

            async def none() -> bool:
                return await replicas() == 0 and not await fleet.engines_of("chat")

            load.clients("chat", 12, max_tokens=LONG_TOKENS)
            await eventually(several, PATIENCE_SECONDS, "requests that wait bring replicas")
            load.clients("chat", 0, max_tokens=LONG_TOKENS)
            await eventually(none, PATIENCE_SECONDS, "an idle model costs nothing")
            assert platform.complete("chat").status == 200, "a request waits for the first replica"
            assert await replicas() == 1
            assert (await fleet.adds_up()).decisions_about(str(CHAT))
        why = platform.inferbus("why", "chat").stdout
        assert "demand" in why
        report = json.loads(platform.inferbus("replay", "--verify", "-o", "json").stdout)
        assert report["different"] == []
        assert report["decisions"] >= 4
