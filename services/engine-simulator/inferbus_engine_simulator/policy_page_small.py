"""The metrics pages of llama.cpp's server and of TGI: few families, without labels.

llama.cpp (2025 and later) dropped `llamacpp:kv_cache_usage_ratio`. Of TGI only the gauges and
counters are shown; the bounds of its histograms depend on its own flags.

Invariant: no sample carries a label.
"""

from inferbus_engine_simulator.policy_pages import Family, Kind, PageView, Row, simple_families

_US_PER_SECOND = 1_000_000


def _prompt_seconds(view: PageView) -> float:
    return view.statistics.prefill_us / _US_PER_SECOND


def _decode_seconds(view: PageView) -> float:
    return (view.statistics.busy_us - view.statistics.prefill_us) / _US_PER_SECOND


def _prompt_rate(view: PageView) -> float:
    seconds = _prompt_seconds(view)
    return view.statistics.prefilled_tokens / seconds if seconds else 0.0


def _decode_rate(view: PageView) -> float:
    seconds = _decode_seconds(view)
    return view.statistics.decoded_tokens / seconds if seconds else 0.0


def _busy_slots(view: PageView) -> float:
    return view.statistics.generation_tokens.total() / max(view.statistics.steps, 1)


_LLAMACPP_COUNTERS = (
    Row(
        "llamacpp:prompt_tokens",
        "Prompt tokens computed.",
        lambda v: v.statistics.prefilled_tokens,
    ),
    Row("llamacpp:prompt_seconds", "Time spent on prompts.", _prompt_seconds),
    Row(
        "llamacpp:tokens_predicted",
        "Generated tokens.",
        lambda v: v.statistics.generation_tokens.total(),
    ),
    Row("llamacpp:tokens_predicted_seconds", "Time spent on generation.", _decode_seconds),
    Row("llamacpp:n_decode", "Decode calls.", lambda v: v.statistics.steps),
)

_LLAMACPP_GAUGES = (
    Row("llamacpp:prompt_tokens_seconds", "Prompt tokens per second.", _prompt_rate),
    Row("llamacpp:predicted_tokens_seconds", "Generated tokens per second.", _decode_rate),
    Row("llamacpp:requests_processing", "Requests in a slot.", lambda v: len(v.running)),
    Row("llamacpp:requests_deferred", "Requests that wait.", lambda v: len(v.waiting)),
    Row("llamacpp:n_busy_slots_per_decode", "Mean batch size.", _busy_slots),
)

_TGI_GAUGES = (
    Row("tgi_queue_size", "Requests that wait.", lambda v: len(v.waiting)),
    Row("tgi_batch_current_size", "Requests in the batch.", lambda v: len(v.running)),
    Row("tgi_batch_current_max_tokens", "Token budget.", lambda v: v.capacity_tokens),
)


def llamacpp_families(view: PageView) -> list[Family]:
    """The page of llama.cpp's server."""
    return [
        *simple_families(Kind.COUNTER, _LLAMACPP_COUNTERS, view, {}),
        *simple_families(Kind.GAUGE, _LLAMACPP_GAUGES, view, {}),
    ]


def tgi_families(view: PageView) -> list[Family]:
    """The page of TGI."""
    return simple_families(Kind.GAUGE, _TGI_GAUGES, view, {})
