"""What the metrics page says about scheduler plugins, under the reference's names (spec 6.6).

Invariant: every family of the reference is there, with or without samples.
"""

from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from inferbus_router.metric_families import REFERENCE, distributions
from inferbus_router.policy_plugins_cache import PrefixOwners
from inferbus_router.scheduling import Scheduling
from inferbus_router.scheduling_counts import SchedulingCounts

_PREFIX_CACHE, _KVCACHE_AWARE = "prefix-cache", "kvcache-aware"


def scheduling_families(scheduling: Scheduling) -> Iterator[Metric]:
    """All of them."""
    counts = scheduling.counts
    yield distributions(
        REFERENCE + "scheduler_plugin_duration_seconds",
        "How long a scheduler plugin ran for one request",
        ("model", "plugin", "type"),
        counts.plugin_seconds.items(),
    )
    for plugin, prefix in ((_PREFIX_CACHE, "prefix_cache"), (_KVCACHE_AWARE, "kvcache_aware")):
        yield distributions(
            f"{REFERENCE}{prefix}_match_ratio",
            "The longest part of a prompt that an endpoint was known to have",
            ("model",),
            (
                ((model,), each)
                for (name, model), each in counts.match_ratios.items()
                if name == plugin
            ),
        )
    yield from _prefix_cache_families(scheduling.caches())
    yield from _kv_families(counts)


def _prefix_cache_families(caches: list[PrefixOwners]) -> Iterator[Metric]:
    evictions = CounterMetricFamily(
        REFERENCE + "prefix_cache_evictions",
        "Blocks that were forgotten for lack of room",
        labels=("model",),
    )
    entries = 0
    for cache in caches:
        if cache.name == _PREFIX_CACHE:
            entries += len(cache.owners)
            for model, count in cache.owners.evictions.items():
                evictions.add_metric((model,), count)
    yield evictions
    yield GaugeMetricFamily(
        REFERENCE + "prefix_cache_entries", "Blocks that endpoints are known to have", entries
    )


def _kv_families(counts: SchedulingCounts) -> Iterator[Metric]:
    """About learning from Redis, which no request waits for."""
    for work in ("redis", "tokenize"):
        yield distributions(
            f"{REFERENCE}kvcache_aware_{work}_duration_seconds",
            "How long asking about KV caches took",
            ("model",),
            (((model,), each) for (name, model), each in counts.kv_seconds.items() if name == work),
        )
    errors = CounterMetricFamily(
        REFERENCE + "kvcache_aware_errors",
        "Questions about KV caches without an answer",
        labels=("model", "stage"),
    )
    for labels, count in counts.kv_errors.items():
        errors.add_metric(labels, count)
    yield errors
    yield CounterMetricFamily(
        REFERENCE + "tokenizer_unsupported_engine",
        "Always empty: every engine is asked alike",
        labels=("model", "engine"),
    )
