"""The metrics page of SGLang (0.5 line): names, types, labels and bucket bounds.

The scheduler's families carry the parallel ranks as labels, the tokenizer's do not, and some of
these tell streamed requests apart. Families of features that are off (speculative decoding,
grammars, hierarchical cache, prefill delay, routing keys) are left out.

Invariant: the families do not depend on what was served, except `sglang:cached_tokens_total`.
"""

from collections import Counter
from collections.abc import Mapping, Sequence

from inferbus_engine_simulator.policy_command_line import ServerOptions
from inferbus_engine_simulator.policy_pages import (
    Family,
    HistogramRow,
    Kind,
    PageView,
    Row,
    Sample,
    histogram_families,
    simple_families,
)
from inferbus_engine_simulator.policy_statistics import Quantity

# fmt: off
_QUEUE_SECONDS = (
    0.0, 0.001, 0.005, 0.01, 0.05, 0.1, 0.2, 0.5, 1, 2, 3, 4, 5, 10, 15, 20, 30, 40, 50, 60, 70, 80,
    90, 100, 200, 300, 400, 500, 600, 700, 800, 900, 1000, 1200, 1400, 1600, 1800, 2000, 2500, 3000,
)
_FIRST_TOKEN_SECONDS = (
    0.1, 0.2, 0.4, 0.6, 0.8, 1, 2, 4, 6, 8, 10, 20, 40, 60, 80, 100, 200, 400,
)
_REQUEST_SECONDS = (*_FIRST_TOKEN_SECONDS, 600, 1200, 1800, 2400)
_TOKEN_SECONDS = (
    0.002, 0.004, 0.006, 0.008, 0.01, 0.015, 0.02, 0.025, 0.03, 0.035, 0.04, 0.06, 0.08, 0.1, 0.2,
    0.4, 0.6, 0.8, 1, 2, 4, 6, 8,
)
_TOKENS = (
    100, 300, 500, 700, 1000, 1500, 2000, 3000, 4000, 5000, 6000, 7000, 8000, 9000, 10000, 12500,
    15000, 17500, 20000, 22500, 25000, 27500, 30000, 35000, 40000, 60000, 80000, 100000, 200000,
    300000, 400000, 600000, 800000, 1000000, 1100000,
)
# fmt: on


def _usage(view: PageView) -> float:
    return view.cache_usage


def _used_tokens(view: PageView) -> int:
    return view.used_blocks * view.size.limits.block_size_tokens


def _idle_tokens(view: PageView) -> int:
    return view.idle_blocks * view.size.limits.block_size_tokens


def _hit_rate(view: PageView) -> float:
    queried = view.statistics.cache_queried_tokens
    return view.statistics.cache_hit_tokens / queried if queried else 0.0


_SCHEDULER_GAUGES = (
    Row("sglang:num_running_reqs", "Running requests.", lambda v: len(v.running)),
    Row("sglang:num_queue_reqs", "Waiting requests.", lambda v: len(v.waiting)),
    Row("sglang:num_grammar_queue_reqs", "Requests that wait for a grammar.", lambda v: 0),
    Row(
        "sglang:gen_throughput",
        "Generated tokens per second; 0 while idle.",
        lambda v: v.statistics.generation_rate if v.running else 0.0,
    ),
    Row("sglang:cache_hit_rate", "Share of prompt tokens found in the cache.", _hit_rate),
    Row("sglang:decode_sum_seq_lens", "Context of decoding requests.", lambda v: v.context_tokens),
    Row("sglang:token_usage", "Share of the KV pool in use, 0 to 1.", _usage),
    Row("sglang:full_token_usage", "The same for full attention layers.", _usage),
    Row("sglang:swa_token_usage", "The same for sliding window layers.", lambda v: 0),
    Row("sglang:mamba_usage", "The same for state space layers.", lambda v: 0),
    Row("sglang:num_used_tokens", "Token slots in use.", _used_tokens),
    Row(
        "sglang:kv_available_tokens",
        "Token slots never used or evicted.",
        lambda v: v.capacity_tokens - _used_tokens(v) - _idle_tokens(v),
    ),
    Row("sglang:kv_evictable_tokens", "Token slots of idle cached prefixes.", _idle_tokens),
    Row("sglang:kv_used_tokens", "Token slots that running requests hold.", _used_tokens),
    Row("sglang:num_retracted_reqs", "Requests retracted in the last step.", lambda v: 0),
    Row("sglang:num_paused_reqs", "Requests paused by a weight update.", lambda v: 0),
    Row("sglang:num_prefill_bootstrap_queue_reqs", "Waiting for a decode peer.", lambda v: 0),
    Row("sglang:num_prefill_inflight_queue_reqs", "KV being sent.", lambda v: 0),
    Row("sglang:num_decode_prealloc_queue_reqs", "Waiting for KV slots.", lambda v: 0),
    Row("sglang:num_decode_transfer_queue_reqs", "KV being received.", lambda v: 0),
    Row("sglang:pending_prealloc_token_usage", "Slots about to be allocated.", lambda v: 0),
    Row("sglang:utilization", "Share of what the objective allows.", lambda v: 0),
    Row("sglang:new_token_ratio", "Expected share of the output limit.", lambda v: 0.7),
    Row("sglang:is_cuda_graph", "Whether the batch ran as a graph.", lambda v: bool(v.running)),
    Row("sglang:num_unique_running_routing_keys", "Routing keys.", lambda v: 0),
    Row("sglang:max_total_num_tokens", "Token slots.", lambda v: v.capacity_tokens),
    Row("sglang:page_size", "Tokens per page.", lambda v: v.options.block_size),
    Row("sglang:num_pages", "Pages.", lambda v: v.capacity_tokens // v.options.block_size),
    Row("sglang:context_len", "Context length.", lambda v: v.size.max_model_len),
    Row(
        "sglang:weight_memory_usage_gb",
        "Memory of the weights, GB.",
        lambda v: v.size.shape.weight_bytes / 1e9,
    ),
    Row(
        "sglang:kv_cache_memory_usage_gb",
        "Memory of the KV pool, GB.",
        lambda v: v.capacity_tokens * v.size.shape.kv_bytes_per_token / 1e9,
    ),
)

_LORA_GAUGES = (
    Row("sglang:lora_pool_slots_used", "Adapter slots in use.", lambda v: _slots_used(v)),
    Row("sglang:lora_pool_slots_total", "Adapter slots.", lambda v: v.options.max_loras),
    Row(
        "sglang:lora_pool_utilization",
        "Share of adapter slots in use.",
        lambda v: _slots_used(v) / v.options.max_loras,
    ),
)

_SCHEDULER_COUNTERS = (
    Row("sglang:num_retracted_requests", "Retractions.", lambda v: v.statistics.preemptions),
    Row("sglang:num_bootstrap_failed_reqs", "Failed bootstraps.", lambda v: 0),
    Row("sglang:num_transfer_failed_reqs", "Failed transfers.", lambda v: 0),
)

_SCHEDULER_HISTOGRAMS = (
    HistogramRow(
        "sglang:queue_time_seconds", "Arrival to admission.", Quantity.QUEUE_TIME, _QUEUE_SECONDS
    ),
)

_TOKENIZER_HISTOGRAMS = (
    HistogramRow(
        "sglang:prompt_tokens_histogram", "Prompt tokens.", Quantity.PROMPT_TOKENS, _TOKENS
    ),
    HistogramRow(
        "sglang:uncached_prompt_tokens_histogram",
        "Prompt tokens that were not cached.",
        Quantity.COMPUTED_PROMPT_TOKENS,
        _TOKENS,
    ),
    HistogramRow(
        "sglang:generation_tokens_histogram", "Generated tokens.", Quantity.OUTPUT_TOKENS, _TOKENS
    ),
    HistogramRow(
        "sglang:inter_token_latency_seconds",
        "Token to next token.",
        Quantity.INTER_TOKEN_LATENCY,
        _TOKEN_SECONDS,
    ),
)

_STREAMING_HISTOGRAMS = (
    HistogramRow(
        "sglang:time_to_first_token_seconds",
        "Arrival to first token.",
        Quantity.TIME_TO_FIRST_TOKEN,
        _FIRST_TOKEN_SECONDS,
    ),
    HistogramRow(
        "sglang:e2e_request_latency_seconds",
        "Arrival to end.",
        Quantity.END_TO_END_LATENCY,
        _REQUEST_SECONDS,
    ),
)

HISTOGRAM_ROWS = (*_SCHEDULER_HISTOGRAMS, *_TOKENIZER_HISTOGRAMS, *_STREAMING_HISTOGRAMS)


def engine_type(options: ServerOptions) -> str:
    """The label that tells the parts of a disaggregated engine apart."""
    return options.kv_role if options.kv_role in ("prefill", "decode") else "unified"


def families(view: PageView) -> list[Family]:
    """The whole page."""
    tokenizer = {"model_name": view.model_name, "engine_type": engine_type(view.options)}
    scheduler = {**tokenizer, "tp_rank": "0", "pp_rank": "0", "moe_ep_rank": "0"}
    statistics = view.statistics
    return [
        *simple_families(Kind.GAUGE, _SCHEDULER_GAUGES, view, scheduler),
        *(
            simple_families(Kind.GAUGE, _LORA_GAUGES, view, scheduler)
            if view.options.lora_enabled
            else []
        ),
        *simple_families(Kind.COUNTER, _SCHEDULER_COUNTERS, view, scheduler),
        _realtime_tokens(view, scheduler),
        *histogram_families(_SCHEDULER_HISTOGRAMS, view, scheduler),
        _by_streaming(
            "sglang:prompt_tokens", "Prompt tokens.", statistics.prompt_tokens, tokenizer
        ),
        _by_streaming(
            "sglang:generation_tokens", "Generated tokens.", statistics.generation_tokens, tokenizer
        ),
        _by_streaming("sglang:num_requests", "Requests.", statistics.requests, tokenizer),
        _aborted(view, tokenizer),
        *_cached_tokens(view, tokenizer),
        *histogram_families(_TOKENIZER_HISTOGRAMS, view, tokenizer),
        *(_streaming_histogram(row, view, tokenizer) for row in _STREAMING_HISTOGRAMS),
    ]


def _slots_used(view: PageView) -> int:
    return min(len({request.adapter for request in view.running} - {""}), view.options.max_loras)


def _realtime_tokens(view: PageView, labels: Mapping[str, str]) -> Family:
    statistics = view.statistics
    modes = {
        "prefill_compute": statistics.prefilled_tokens,
        "prefill_cache": statistics.cache_hit_tokens,
        "decode": statistics.decoded_tokens,
    }
    samples = [Sample({**labels, "mode": mode}, float(count)) for mode, count in modes.items()]
    return Family("sglang:realtime_tokens", Kind.COUNTER, "Tokens by how they came.", samples)


def _by_streaming(
    name: str, help_text: str, counts: Counter[bool], labels: Mapping[str, str]
) -> Family:
    samples = [
        Sample({**labels, "is_streaming": word}, float(counts[streaming]))
        for streaming, word in _STREAMING
    ]
    return Family(name, Kind.COUNTER, help_text, samples)


def _streaming_histogram(row: HistogramRow, view: PageView, labels: Mapping[str, str]) -> Family:
    samples = [
        Sample({**labels, "is_streaming": word}, view.statistics.histogram(row.quantity, streaming))
        for streaming, word in _STREAMING
    ]
    return Family(row.name, Kind.HISTOGRAM, row.help, samples)


def _aborted(view: PageView, labels: Mapping[str, str]) -> Family:
    count = float(view.statistics.aborted)
    return Family(
        "sglang:num_aborted_requests", Kind.COUNTER, "Aborted requests.", [Sample(labels, count)]
    )


def _cached_tokens(view: PageView, labels: Mapping[str, str]) -> list[Family]:
    count = view.statistics.cached_prompt_tokens
    if not count:
        return []
    sample = Sample({**labels, "cache_source": "device"}, float(count))
    return [Family("sglang:cached_tokens", Kind.COUNTER, "Cached prompt tokens.", [sample])]


_STREAMING: Sequence[tuple[bool, str]] = ((False, "false"), (True, "true"))
