"""The metrics page has every family of the reference, and what the reference lacks."""

import pytest
from prometheus_client.parser import text_string_to_metric_families

from inferbus_router.metrics_endpoints import MOST_ENDPOINTS, endpoint_families
from inferbus_router.policy_ejection import EJECT_AFTER_FAILURES
from services.router.tests.builders import endpoint, server, server_key
from services.router.tests.client import chat
from services.router.tests.conftest import RouterUnderTest, StartEngine
from services.router.tests.engine import answers
from services.router.tests.named_fleet import Fleet, StartFleet, plugins

Samples = dict[str, list[tuple[dict[str, str], float]]]


async def samples(router: RouterUnderTest) -> Samples:
    """Labels and values by sample name; families without samples have an empty list."""
    page = await (await router.client(router.admin_port)).get("/metrics")
    found: Samples = {}
    for family in text_string_to_metric_families(page.body.decode()):
        found.setdefault(family.name, [])
        for sample in family.samples:
            found.setdefault(sample.name, []).append((dict(sample.labels), sample.value))
    return found


@pytest.mark.parametrize(
    "family",
    [
        "requests",
        "request_duration_seconds",
        "tokens",
        "scheduler_plugin_duration_seconds",
        "rate_limit_exceeded",
        "active_requests",
        "active_downstream_requests",
        "active_upstream_requests",
        "prefix_cache_match_ratio",
        "prefix_cache_evictions",
        "prefix_cache_entries",
        "kvcache_aware_match_ratio",
        "kvcache_aware_redis_duration_seconds",
        "kvcache_aware_tokenize_duration_seconds",
        "kvcache_aware_errors",
        "tokenizer_unsupported_engine",
    ],
)
async def test_rt_38_every_family_of_the_reference_is_there(
    router: RouterUnderTest, family: str
) -> None:
    assert f"kthena_router_{family}" in await samples(router)


async def served(start_fleet: StartFleet, *scores: str) -> tuple[Fleet, Samples]:
    """A fleet that has answered the same prompt twice."""
    fleet = await start_fleet(plugins(*scores), answers)
    client = await fleet.client()
    for _ in range(2):
        await client.post(chat(messages=[{"role": "user", "content": "x" * 200}]))
    return fleet, await samples(fleet.router)


def bounds(found: Samples, name: str) -> list[str]:
    return [labels["le"] for labels, _ in found[f"{name}_bucket"]]


async def test_plugins_are_timed(start_fleet: StartFleet) -> None:
    _, found = await served(start_fleet, "prefix-cache")
    name = "kthena_router_scheduler_plugin_duration_seconds"
    ((labels, count),) = found[f"{name}_count"]

    assert labels == {"model": "m", "plugin": "prefix-cache", "type": "score"}
    assert count == 2
    assert bounds(found, name) == ["0.001", "0.005", "0.01", "0.05", "0.1", "0.5", "+Inf"]


@pytest.mark.parametrize("plugin", ["prefix-cache", "kvcache-aware"])
async def test_matches_are_counted(start_fleet: StartFleet, plugin: str) -> None:
    _, found = await served(start_fleet, plugin)
    name = f"kthena_router_{plugin.replace('-', '_')}_match_ratio"

    assert found[f"{name}_count"] == [({"model": "m"}, 2)]
    assert found[f"{name}_sum"] == [({"model": "m"}, 1)], "nothing the first time, then all"
    assert bounds(found, name) == [
        *("0.0", "0.1", "0.25", "0.5", "0.75", "0.9", "0.95", "0.99", "1.0", "+Inf")
    ]


async def test_entries_of_the_prefix_cache_are_counted(start_fleet: StartFleet) -> None:
    _, found = await served(start_fleet, "prefix-cache")

    assert found["kthena_router_prefix_cache_entries"] == [({}, 4)], "blocks of 64 bytes"


async def test_a_model_that_is_gone_leaves_no_series(start_fleet: StartFleet) -> None:
    fleet, _ = await served(start_fleet, "prefix-cache")
    fleet.router.serve(model="another")
    found = await samples(fleet.router)

    assert "kthena_router_scheduler_plugin_duration_seconds_count" not in found
    assert "kthena_router_prefix_cache_match_ratio_count" not in found


async def test_rt_16_rt_38_outcomes_and_ejections_are_told_by_endpoint(
    router: RouterUnderTest, start_engine: StartEngine
) -> None:
    async def closes(turn: object) -> None:
        turn.close()  # type: ignore[attr-defined]

    good, bad = await start_engine(), await start_engine(closes)
    router.serve(good.entry(), bad.entry())
    client = await router.client()
    while len(bad.turns) < EJECT_AFTER_FAILURES:
        await client.post(chat(messages=[]))
    found = await samples(router)
    outcomes = {
        (labels["pod"], labels["outcome"]): count
        for labels, count in found["inferbus_router_endpoint_requests_total"]
    }
    ejected = {labels["pod"]: v for labels, v in found["inferbus_router_endpoint_ejected"]}

    assert outcomes[f"pod-{good.port}", "success"] == len(good.turns)
    assert outcomes[f"pod-{bad.port}", "failure"] == EJECT_AFTER_FAILURES
    assert outcomes[f"pod-{good.port}", "failure"] == 0
    assert ejected == {f"pod-{good.port}": 0, f"pod-{bad.port}": 1}
    assert {labels["model_server"] for labels, _ in found["inferbus_router_endpoint_ejected"]} == {
        "ns/ms"
    }


async def test_a_large_fleet_has_a_bounded_number_of_rows(router: RouterUnderTest) -> None:
    count = MOST_ENDPOINTS + 50
    entries = [
        endpoint(8000, pod=f"p{n}", address=f"127.1.{n // 250}.{n % 250}") for n in range(count)
    ]
    router.apply({server_key("ms"): server(*entries)})
    fleet = router.running.router.state.fleet
    for each in fleet.endpoints():
        each.health.succeeded()
    families = {family.name: family for family in endpoint_families(fleet)}
    requests = families["inferbus_router_endpoint_requests"].samples

    assert len({sample.labels["pod"] for sample in requests}) == MOST_ENDPOINTS + 1
    assert sum(sample.value for sample in requests) == count
