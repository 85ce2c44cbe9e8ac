"""The metrics page of vLLM (V1 engine, 0.13 and later): names, types, labels and bucket bounds.

All families carry `model_name` and `engine`; what a running vLLM leaves out without the feature
(speculative decoding, KV residency, NaN counting) is left out here too. The former
`vllm:time_per_output_token_seconds` and `vllm:gpu_cache_usage_perc` are gone since 0.13.

Invariant: the families do not depend on what was served, except `vllm:lora_requests_info`.
"""

from collections.abc import Mapping, Sequence

from inferbus_engine_simulator.policy_events import Request
from inferbus_engine_simulator.policy_pages import (
    Family,
    HistogramRow,
    Kind,
    PageView,
    Row,
    Sample,
    histogram_families,
    one_two_five,
    simple_families,
)
from inferbus_engine_simulator.policy_statistics import Quantity

# fmt: off
_FIRST_TOKEN_SECONDS = (
    0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0,
    20.0, 40.0, 80.0, 160.0, 640.0, 2560.0,
)
_TOKEN_SECONDS = (
    0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0,
    40.0, 80.0,
)
_REQUEST_SECONDS = (
    0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 60.0, 120.0, 240.0,
    480.0, 960.0, 1920.0, 7680.0,
)
# fmt: on
_STEP_TOKENS = (1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384)
_N_PARAMETER = (1, 2, 5, 10, 20)

_FINISH_REASONS = ("stop", "length", "abort", "error", "repetition")

_GAUGES = (
    Row("vllm:num_requests_running", "Requests in the running batch.", lambda v: len(v.running)),
    Row("vllm:num_requests_waiting", "Requests in the waiting queue.", lambda v: len(v.waiting)),
    Row("vllm:kv_cache_usage_perc", "Share of KV blocks in use, 0 to 1.", lambda v: v.cache_usage),
)

_COUNTERS = (
    Row(
        "vllm:prefix_cache_queries",
        "Tokens looked up in the prefix cache.",
        lambda v: v.statistics.cache_queried_tokens,
    ),
    Row(
        "vllm:prefix_cache_hits",
        "Tokens found in the prefix cache.",
        lambda v: v.statistics.cache_hit_tokens,
    ),
    Row(
        "vllm:external_prefix_cache_queries",
        "Tokens looked up through the KV connector.",
        lambda v: v.statistics.transferred_tokens,
    ),
    Row(
        "vllm:external_prefix_cache_hits",
        "Tokens received through the KV connector.",
        lambda v: v.statistics.transferred_tokens,
    ),
    Row("vllm:mm_cache_queries", "Items looked up in the multi-modal cache.", lambda v: 0),
    Row("vllm:mm_cache_hits", "Items found in the multi-modal cache.", lambda v: 0),
    Row("vllm:num_preemptions", "Preemptions.", lambda v: v.statistics.preemptions),
    Row("vllm:prompt_tokens", "Prompt tokens.", lambda v: v.statistics.prompt_tokens.total()),
    Row(
        "vllm:prompt_tokens_cached",
        "Prompt tokens that needed no prefill.",
        lambda v: v.statistics.cached_prompt_tokens + v.statistics.transferred_tokens,
    ),
    Row(
        "vllm:generation_tokens",
        "Generated tokens.",
        lambda v: v.statistics.generation_tokens.total(),
    ),
)


def histogram_rows(max_model_len: int) -> tuple[HistogramRow, ...]:
    """The histograms; bounds of token counts end at the context length."""
    tokens = one_two_five(max_model_len)
    return (
        HistogramRow(
            "vllm:request_prompt_tokens",
            "Prompt tokens of a request.",
            Quantity.PROMPT_TOKENS,
            tokens,
        ),
        HistogramRow(
            "vllm:request_generation_tokens",
            "Generated tokens of a request.",
            Quantity.OUTPUT_TOKENS,
            tokens,
        ),
        HistogramRow(
            "vllm:iteration_tokens_total", "Tokens of a step.", Quantity.STEP_TOKENS, _STEP_TOKENS
        ),
        HistogramRow(
            "vllm:request_max_num_generation_tokens",
            "Longest output of a request.",
            Quantity.OUTPUT_TOKENS,
            tokens,
        ),
        HistogramRow("vllm:request_params_n", "Parameter n.", Quantity.N_PARAMETER, _N_PARAMETER),
        HistogramRow(
            "vllm:request_params_max_tokens",
            "Parameter max_tokens.",
            Quantity.MAX_TOKENS_PARAMETER,
            tokens,
        ),
        HistogramRow(
            "vllm:time_to_first_token_seconds",
            "Arrival to first token.",
            Quantity.TIME_TO_FIRST_TOKEN,
            _FIRST_TOKEN_SECONDS,
        ),
        HistogramRow(
            "vllm:inter_token_latency_seconds",
            "Token to next token.",
            Quantity.INTER_TOKEN_LATENCY,
            _TOKEN_SECONDS,
        ),
        HistogramRow(
            "vllm:request_time_per_output_token_seconds",
            "Mean time per output token of a request.",
            Quantity.TIME_PER_OUTPUT_TOKEN,
            _TOKEN_SECONDS,
        ),
        *(
            HistogramRow(f"vllm:{name}_seconds", text, quantity, _REQUEST_SECONDS)
            for name, text, quantity in (
                ("e2e_request_latency", "Arrival to end.", Quantity.END_TO_END_LATENCY),
                ("request_queue_time", "Arrival to admission.", Quantity.QUEUE_TIME),
                ("request_inference_time", "Admission to end.", Quantity.INFERENCE_TIME),
                ("request_prefill_time", "Admission to first token.", Quantity.PREFILL_TIME),
                ("request_decode_time", "First to last token.", Quantity.DECODE_TIME),
            )
        ),
        HistogramRow(
            "vllm:request_prefill_kv_computed_tokens",
            "Prompt tokens of a request that were not cached.",
            Quantity.COMPUTED_PROMPT_TOKENS,
            tokens,
        ),
    )


def families(view: PageView) -> list[Family]:
    """The whole page."""
    labels = {"model_name": view.model_name, "engine": "0"}
    return [
        *simple_families(Kind.GAUGE, _GAUGES, view, labels),
        _waiting_by_reason(view, labels),
        _sleep_state(labels),
        *simple_families(Kind.COUNTER, _COUNTERS, view, labels),
        _prompt_tokens_by_source(view, labels),
        _request_success(view, labels),
        *histogram_families(histogram_rows(view.size.max_model_len), view, labels),
        *_lora_requests(view),
        _cache_config(view),
    ]


def _waiting_by_reason(view: PageView, labels: Mapping[str, str]) -> Family:
    waiting = {"capacity": len(view.waiting), "deferred": 0}
    samples = [Sample({**labels, "reason": key}, float(n)) for key, n in waiting.items()]
    name = "vllm:num_requests_waiting_by_reason"
    return Family(name, Kind.GAUGE, "Requests in the waiting queue, by reason.", samples)


def _sleep_state(labels: Mapping[str, str]) -> Family:
    states = {"awake": 1.0, "weights_offloaded": 0.0, "discard_all": 0.0}
    samples = [Sample({**labels, "sleep_state": key}, value) for key, value in states.items()]
    return Family("vllm:engine_sleep_state", Kind.GAUGE, "1 for the state it is in.", samples)


def _prompt_tokens_by_source(view: PageView, labels: Mapping[str, str]) -> Family:
    statistics = view.statistics
    cached, transferred = statistics.cached_prompt_tokens, statistics.transferred_tokens
    sources = {
        "local_compute": statistics.prompt_tokens.total() - cached - transferred,
        "local_cache_hit": cached,
        "external_kv_transfer": transferred,
    }
    samples = [Sample({**labels, "source": key}, float(n)) for key, n in sources.items()]
    name = "vllm:prompt_tokens_by_source"
    return Family(name, Kind.COUNTER, "Prompt tokens by where their KV came from.", samples)


def _request_success(view: PageView, labels: Mapping[str, str]) -> Family:
    counts = {str(reason): count for reason, count in view.statistics.finished.items()}
    samples = [
        Sample({**labels, "finished_reason": reason}, float(counts.get(reason, 0)))
        for reason in _FINISH_REASONS
    ]
    return Family("vllm:request_success", Kind.COUNTER, "Requests by how they ended.", samples)


def _lora_requests(view: PageView) -> list[Family]:
    if not view.options.lora_enabled:
        return []
    labels = {
        "max_lora": str(view.options.max_loras),
        "waiting_lora_adapters": _adapters_of(view.waiting),
        "running_lora_adapters": _adapters_of(view.running),
    }
    help_text = "Adapters of running and waiting requests; the value is the time of the sample."
    sample = Sample(labels, view.now_seconds)
    return [Family("vllm:lora_requests_info", Kind.GAUGE, help_text, [sample])]


def _adapters_of(requests: Sequence[Request]) -> str:
    return ",".join(sorted({request.adapter for request in requests if request.adapter}))


def _cache_config(view: PageView) -> Family:
    labels = {
        "block_size": str(view.options.block_size),
        "cache_dtype": "auto",
        "enable_prefix_caching": str(view.options.prefix_caching),
        "engine": "0",
        "gpu_memory_utilization": str(view.options.gpu_memory_utilization),
        "num_cpu_blocks": "None",
        "num_gpu_blocks": str(view.size.limits.blocks),
        "num_gpu_blocks_override": "None",
        "prefix_caching_hash_algo": "sha256",
        "sliding_window": "None",
    }
    return Family("vllm:cache_config_info", Kind.GAUGE, "The KV cache.", [Sample(labels, 1.0)])
