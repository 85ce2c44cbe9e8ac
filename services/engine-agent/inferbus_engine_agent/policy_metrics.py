"""The standard names of engine metrics, whatever the engine calls them.

A page is passed through unchanged, and the families below are appended under their standard names:
the five of the reference's runtime (modelbooster spec 5.3), corrected where its renaming never
worked (counters lose `_total` in its parser; vLLM has replaced `time_per_output_token_seconds` by
`inter_token_latency_seconds`), and those that it lacks.

Invariant: a standard family has the samples of exactly one family of the page, with the same
labels, values, timestamps and exemplars; families that the page doesn't have are left out.
"""

import re
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import NamedTuple


class Engine(StrEnum):
    """The engines whose metrics have standard names."""

    VLLM = "vllm"
    SGLANG = "sglang"
    LLAMACPP = "llamacpp"
    TGI = "tgi"
    OTHER = "other"
    """Anything else: its page is passed through."""


class MalformedPageError(ValueError):
    """A page that is no Prometheus text; the message names the line."""


class Standard(NamedTuple):
    """One standard family."""

    name: str
    """Without `_total` for a counter."""
    kind: str
    help: str
    sources: Mapping[Engine, tuple[str, ...]]
    """What each engine calls it, without `_total`; the first one on the page counts."""


STANDARDS: tuple[Standard, ...] = (
    Standard(
        "kthena:generation_tokens",
        "counter",
        "Generated tokens.",
        {
            Engine.VLLM: ("vllm:generation_tokens",),
            Engine.SGLANG: ("sglang:generation_tokens",),
            Engine.LLAMACPP: ("llamacpp:tokens_predicted",),
        },
    ),
    Standard(
        "kthena:num_requests_waiting",
        "gauge",
        "Requests that wait for the engine.",
        {
            Engine.VLLM: ("vllm:num_requests_waiting",),
            Engine.SGLANG: ("sglang:num_queue_reqs",),
            Engine.LLAMACPP: ("llamacpp:requests_deferred",),
            Engine.TGI: ("tgi_queue_size",),
        },
    ),
    Standard(
        "kthena:time_to_first_token_seconds",
        "histogram",
        "Arrival to first token.",
        {
            Engine.VLLM: ("vllm:time_to_first_token_seconds",),
            Engine.SGLANG: ("sglang:time_to_first_token_seconds",),
        },
    ),
    Standard(
        "kthena:time_per_output_token_seconds",
        "histogram",
        "Token to next token.",
        {
            Engine.VLLM: (
                "vllm:time_per_output_token_seconds",
                "vllm:inter_token_latency_seconds",
            ),
            Engine.SGLANG: (
                "sglang:inter_token_latency_seconds",
                "sglang:time_per_output_token_seconds",
            ),
            Engine.TGI: ("tgi_request_mean_time_per_token_duration",),
        },
    ),
    Standard(
        "kthena:e2e_request_latency_seconds",
        "histogram",
        "Arrival to end.",
        {
            Engine.VLLM: ("vllm:e2e_request_latency_seconds",),
            Engine.SGLANG: ("sglang:e2e_request_latency_seconds",),
            Engine.TGI: ("tgi_request_duration",),
        },
    ),
    Standard(
        "kthena:num_requests_running",
        "gauge",
        "Requests in the batch.",
        {
            Engine.VLLM: ("vllm:num_requests_running",),
            Engine.SGLANG: ("sglang:num_running_reqs",),
            Engine.LLAMACPP: ("llamacpp:requests_processing",),
            Engine.TGI: ("tgi_batch_current_size",),
        },
    ),
    Standard(
        "kthena:kv_cache_usage_perc",
        "gauge",
        "Share of the KV cache in use, 0 to 1.",
        {
            Engine.VLLM: ("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc"),
            Engine.SGLANG: ("sglang:token_usage",),
            Engine.LLAMACPP: ("llamacpp:kv_cache_usage_ratio",),
        },
    ),
    Standard(
        "kthena:prompt_tokens",
        "counter",
        "Prompt tokens.",
        {
            Engine.VLLM: ("vllm:prompt_tokens",),
            Engine.SGLANG: ("sglang:prompt_tokens",),
            Engine.LLAMACPP: ("llamacpp:prompt_tokens",),
        },
    ),
    Standard(
        "kthena:prefix_cache_hits",
        "counter",
        "Prompt tokens found in the prefix cache.",
        {
            Engine.VLLM: ("vllm:prefix_cache_hits", "vllm:gpu_prefix_cache_hits"),
            Engine.SGLANG: ("sglang:cached_tokens",),
        },
    ),
    Standard(
        "kthena:request_success",
        "counter",
        "Finished requests.",
        {
            Engine.VLLM: ("vllm:request_success",),
            Engine.SGLANG: ("sglang:num_requests",),
            Engine.TGI: ("tgi_request_success",),
        },
    ),
)

_SAMPLE = re.compile(
    r"([a-zA-Z_:][a-zA-Z0-9_:]*)"
    r'(?:\{(?:[^"{}]|"(?:[^"\\]|\\.)*")*\})?'
    r"[ \t]+([-+]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?|Inf|NaN))"
    r"(?:[ \t].*)?"
)
_SUFFIXES: Mapping[str, tuple[tuple[str, str], ...]] = {
    "gauge": (("", ""),),
    "counter": (("_total", "_total"), ("", "_total")),
    "histogram": (("_bucket", "_bucket"), ("_sum", "_sum"), ("_count", "_count")),
}
"""Suffixes of a family's samples: as the engine writes them, and as the standard has them."""


def normalise(page: str, engine: Engine) -> str:
    """The page with the standard families appended; an empty page stays empty.

    Raises `MalformedPageError` for a line that is no sample, comment or blank line.
    """
    samples = _samples_by_name(page)
    parts = [line for line in page.splitlines() if line.strip() != "# EOF"]
    for standard in STANDARDS:
        parts += _standard_lines(standard, standard.sources.get(engine, ()), samples)
    return "\n".join(parts) + "\n" if parts else ""


def total(page: str, name: str) -> float | None:
    """The sum of a gauge over its series, or None when the page doesn't have it."""
    found = _samples_by_name(page).get(name)
    return None if found is None else sum(sample.value for sample in found)


class _Sample(NamedTuple):
    line_number: int
    rest: str
    """What follows the name: labels, value, timestamp, exemplar."""
    value: float


def _samples_by_name(page: str) -> dict[str, list[_Sample]]:
    samples: dict[str, list[_Sample]] = {}
    for number, line in enumerate(page.splitlines(), start=1):
        if not line.strip() or line.startswith("#"):
            continue
        match = _SAMPLE.fullmatch(line)
        if match is None:
            raise MalformedPageError(f"line {number} is no metric: {line[:120]}")
        sample = _Sample(number, line[match.end(1) :], float(match[2]))
        samples.setdefault(match[1], []).append(sample)
    return samples


def _standard_lines(
    standard: Standard, sources: Iterable[str], samples: Mapping[str, list[_Sample]]
) -> list[str]:
    """The standard family, made of the first of its sources that is there."""
    for source in sources:
        found = [
            (sample.line_number, standard.name + target + sample.rest)
            for suffix, target in _SUFFIXES[standard.kind]
            for sample in samples.get(source + suffix, ())
        ]
        if found:
            shown = standard.name + ("_total" if standard.kind == "counter" else "")
            head = [f"# HELP {shown} {standard.help}", f"# TYPE {shown} {standard.kind}"]
            return head + [line for _, line in sorted(found)]
    return []
