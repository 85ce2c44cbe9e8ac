"""Prefill and decode under real load: one takes the other along, and both can be explained."""

import json
from typing import Any

import pytest

from inferbus_contracts.events.scaling import Limiter, ScalingDecided
from inferbus_contracts.keys import ObjectKey
from inferbus_shared.objects.client import ObjectClient
from tests.scenario.fleet import BEHAVIOUR, CHAT, PATIENCE_SECONDS, QUICK, fleet_on
from tests.support.eventually import eventually
from tests.support.ledger import Ledger
from tests.support.load import running_load
from tests.support.platform import SCALING_METRIC, model_manifests, running_platform
from tests.support.roles import roles_policy, split_into_roles

pytestmark = pytest.mark.slow

LONG_TOKENS = 60


def pair_manifests() -> list[dict[str, Any]]:
    """A model whose requests all go to decode, with as many prefillers as decoders."""
    workload, server, route = model_manifests("chat")
    prefill, _ = split_into_roles(workload, {"prefill": 1, "decode": 1})
    prefill["entryTemplate"]["metadata"]["labels"] = {"app": "chat-prefill"}
    metric = {"name": SCALING_METRIC, "targetValue": "2"}
    policy = roles_policy(workload, metric, 3, ("1", "1"), behavior=BEHAVIOUR)
    return [workload, server, route, policy]


async def test_the_load_of_one_role_moves_both_and_each_move_is_explained_and_replays() -> None:
    with running_platform("--startup", "0", environment=QUICK) as platform:
        platform.apply(*pair_manifests())
        async with (
            fleet_on(platform) as fleet,
            platform.bus() as bus,
            running_load(platform.router) as load,
        ):
            objects = ObjectClient(bus, "test")
            await fleet.serving(["chat"])

            async def becomes(number: int) -> None:
                async def there() -> bool:
                    stored = await objects.get(CHAT)
                    roles = stored["spec"]["template"]["roles"]
                    return {role["replicas"] for role in roles} == {number}

                await eventually(there, PATIENCE_SECONDS, f"both roles have {number} replicas")

            load.clients("chat", 6, max_tokens=LONG_TOKENS)
            await becomes(3)
            load.clients("chat", 1, max_tokens=LONG_TOKENS)
            await becomes(1)
            ledger = await fleet.adds_up()
        report = json.loads(platform.inferbus("replay", "--verify", "-o", "json").stdout)
        assert report["different"] == []
        assert report["decisions"] >= 4
        why = platform.inferbus("why", "chat/prefill").stdout
        assert "ratio" in why, why
        limiters = {step.name for one in of_role(ledger, "prefill") for step in one.record.limiters}
        assert Limiter.RATIO in limiters
    grown = [one for one in of_role(ledger, "prefill") if one.desired > one.current]
    assert {one.record.binding for one in grown} == {Limiter.RATIO}, "nobody asks prefill itself"


def of_role(ledger: Ledger, role: str) -> list[ScalingDecided]:
    """The decisions about a role, in order."""
    key = ObjectKey(CHAT.kind, CHAT.namespace, CHAT.name, role)
    events = ledger.decisions_about(str(key))
    return [event.data for event in events if isinstance(event.data, ScalingDecided)]
