"""One vocabulary for what engines call by different names.

A policy may ask for a metric by an engine's own name or by a common one (`kthena:…`, as Kthena's
runtime names it; modelbooster spec 5.3). Either is turned into the families that can answer it, the
best first. Invariant: the name that was asked for is always its own first answer.
"""

_VOCABULARY: dict[str, tuple[str, ...]] = {
    "kthena:num_requests_running": (
        "vllm:num_requests_running",
        "sglang:num_running_reqs",
        "tgi_batch_current_size",
        "llamacpp:requests_processing",
        "trtllm_num_requests_running",
    ),
    "kthena:num_requests_waiting": (
        "vllm:num_requests_waiting",
        "sglang:num_queue_reqs",
        "tgi_queue_size",
        "llamacpp:requests_deferred",
        "trtllm_num_requests_waiting",
    ),
    "kthena:kv_cache_usage_perc": (
        "vllm:kv_cache_usage_perc",
        "vllm:gpu_cache_usage_perc",
        "sglang:token_usage",
        "llamacpp:kv_cache_usage_ratio",
        "trtllm_kv_cache_utilization",
    ),
    "kthena:prompt_tokens_total": (
        "vllm:prompt_tokens_total",
        "sglang:prompt_tokens_total",
        "tgi_request_input_length_sum",
        "llamacpp:prompt_tokens_total",
        "trtllm_prompt_tokens_total",
        "ollama_prompt_eval_total",
    ),
    "kthena:generation_tokens_total": (
        "vllm:generation_tokens_total",
        "sglang:generation_tokens_total",
        "tgi_request_generated_tokens_sum",
        "llamacpp:tokens_predicted_total",
        "trtllm_generation_tokens_total",
        "ollama_eval_total",
    ),
    "kthena:request_success_total": (
        "vllm:request_success_total",
        "sglang:num_requests_total",
        "tgi_request_success",
        "trtllm_request_success_total",
        "trtllm_num_requests_completed_total",
    ),
    "kthena:time_to_first_token_seconds": (
        "vllm:time_to_first_token_seconds",
        "sglang:time_to_first_token_seconds",
        "trtllm_time_to_first_token_seconds",
    ),
    "kthena:time_per_output_token_seconds": (
        "vllm:inter_token_latency_seconds",
        "vllm:time_per_output_token_seconds",
        "sglang:inter_token_latency_seconds",
        "sglang:time_per_output_token_seconds",
        "tgi_request_mean_time_per_token_duration",
        "trtllm_time_per_output_token_seconds",
    ),
    "kthena:e2e_request_latency_seconds": (
        "vllm:e2e_request_latency_seconds",
        "sglang:e2e_request_latency_seconds",
        "tgi_request_duration",
        "trtllm_e2e_request_latency_seconds",
    ),
    "kthena:request_queue_time_seconds": (
        "vllm:request_queue_time_seconds",
        "sglang:queue_time_seconds",
        "tgi_request_queue_duration",
        "trtllm_request_queue_time_seconds",
    ),
}
"""Common name to the families of vLLM, SGLang, TGI, llama.cpp, TensorRT-LLM and Ollama.

A missing engine has nothing of the kind. Ollama shows a page only in builds that add one.
"""

_RENAMED = (
    ("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc"),
    ("vllm:inter_token_latency_seconds", "vllm:time_per_output_token_seconds"),
    ("sglang:inter_token_latency_seconds", "sglang:time_per_output_token_seconds"),
)
"""Families that are the same measure under the new and the old name of one engine."""

_OTHER_NAME = {old: new for new, old in _RENAMED} | dict(_RENAMED)

COMMON_NAMES = frozenset(_VOCABULARY)
"""The names of the vocabulary."""


def families_of(name: str) -> tuple[str, ...]:
    """The families that can answer for `name`, the best first; `name` itself when it is unknown."""
    if name in _VOCABULARY:
        return (name, *_VOCABULARY[name])
    other = _OTHER_NAME.get(name)
    return (name,) if other is None else (name, other)
