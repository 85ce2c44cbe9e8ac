"""Metrics pages of the shape and size of a real engine's."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.exposition import generate_latest

_LABELS = {"engine": "0", "model_name": "meta-llama/Llama-3.1-8B-Instruct"}
_GAUGES = ("num_requests_running", "num_requests_waiting", "kv_cache_usage_perc")
_COUNTERS = ("prompt_tokens", "generation_tokens", "prefix_cache_hits", "prefix_cache_queries")
_HISTOGRAMS = (
    "time_to_first_token_seconds",
    "inter_token_latency_seconds",
    "request_time_per_output_token_seconds",
    "e2e_request_latency_seconds",
    "request_queue_time_seconds",
    "request_inference_time_seconds",
    "request_prefill_time_seconds",
    "request_decode_time_seconds",
    "request_prompt_tokens",
    "request_generation_tokens",
    "request_max_num_generation_tokens",
    "request_params_max_tokens",
    "request_prefill_kv_computed_tokens",
    "iteration_tokens_total",
)


def engine_page(least_bytes: int) -> bytes:
    """A page of vLLM's shape: its families, then those of its HTTP server until it is large enough.

    Every histogram has 22 buckets and twenty observations.
    """
    registry = CollectorRegistry()
    for name in _GAUGES:
        Gauge(f"vllm:{name}", name, _LABELS, registry=registry).labels(**_LABELS).set(3)
    for name in _COUNTERS:
        counter = Counter(f"vllm:{name}", name, _LABELS, registry=registry)
        counter.labels(**_LABELS).inc(123_456)
    for name in _HISTOGRAMS:
        _observed(registry, f"vllm:{name}", _LABELS)
    number = 0
    while len(page := generate_latest(registry)) < least_bytes:
        _observed(registry, f"http_request_duration_seconds_{number}", {"handler": "/v1/models"})
        number += 1
    return page


def _observed(registry: CollectorRegistry, name: str, labels: dict[str, str]) -> None:
    bounds = [2.0**power for power in range(-7, 15)]
    histogram = Histogram(name, name, labels, buckets=bounds, registry=registry)
    for value in range(20):
        histogram.labels(**labels).observe(value)
