"""Makes the pipeline that a configuration names.

Invariant: every name that `policy_router_configuration` accepts has a maker here.
"""

from collections.abc import Callable, Mapping
from random import random
from typing import Any

from inferbus_router.policy_pipeline import Pipeline
from inferbus_router.policy_plugins import FilterPlugin, ScorePlugin
from inferbus_router.policy_plugins_cache import (
    Matched,
    PrefixOwners,
    kvcache_aware,
    prefix_cache,
)
from inferbus_router.policy_plugins_load import (
    GpuUsage,
    LeastLatency,
    LeastRequestFilter,
    LeastRequestScore,
    RandomScore,
)
from inferbus_router.policy_plugins_lora import LoraAffinity
from inferbus_router.policy_router_configuration import (
    KvCacheArguments,
    LeastLatencyArguments,
    LeastRequestArguments,
    PrefixCacheArguments,
    SchedulerConfiguration,
)

_FILTERS: Mapping[str, Callable[[Any], FilterPlugin]] = {
    "least-request": lambda arguments: LeastRequestFilter(
        (arguments or LeastRequestArguments()).max_waiting_requests
    ),
    "lora-affinity": lambda _: LoraAffinity(),
}


def _prefix_cache(arguments: PrefixCacheArguments | None) -> ScorePlugin:
    known = arguments or PrefixCacheArguments()
    return prefix_cache(
        known.block_size_to_hash,
        known.max_blocks_to_match,
        known.max_hash_cache_size,
        known.top_k_matches,
    )


def _kvcache_aware(arguments: KvCacheArguments | None) -> ScorePlugin:
    known = arguments or KvCacheArguments()
    return kvcache_aware(known.block_size_to_hash, known.max_blocks_to_match)


_SCORES: Mapping[str, Callable[[Any], ScorePlugin]] = {
    "gpu-usage": lambda _: GpuUsage(),
    "kvcache-aware": _kvcache_aware,
    "least-latency": lambda arguments: LeastLatency(
        (arguments or LeastLatencyArguments()).ttft_weight
    ),
    "least-request": lambda _: LeastRequestScore(),
    "prefix-cache": _prefix_cache,
    "random": lambda _: RandomScore(random),
}


def make_pipeline(
    configuration: SchedulerConfiguration, matched: Matched | None = None
) -> Pipeline:
    """New plugins; they remember nothing of earlier ones.

    `matched` is told of each prompt that a cache-aware plugin looks up.
    """
    arguments = configuration.arguments
    scores = [(_SCORES[name](arguments.get(name)), weight) for name, weight in configuration.scores]
    for plugin, _ in scores:
        if matched is not None and isinstance(plugin, PrefixOwners):
            plugin.matched = matched
    return Pipeline([_FILTERS[name](arguments.get(name)) for name in configuration.filters], scores)
