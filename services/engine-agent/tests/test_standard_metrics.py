"""Standard metric names from the pages of vLLM, SGLang, llama.cpp and TGI."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from inferbus_engine_agent.policy_metrics import (
    STANDARDS,
    Engine,
    MalformedPageError,
    normalise,
    total,
)

DATA = Path(__file__).parent / "data"

# What each standard family is made of on the pages of today.
SOURCES = {
    Engine.VLLM: {
        "kthena:generation_tokens": "vllm:generation_tokens",
        "kthena:num_requests_waiting": "vllm:num_requests_waiting",
        "kthena:num_requests_running": "vllm:num_requests_running",
        "kthena:time_to_first_token_seconds": "vllm:time_to_first_token_seconds",
        "kthena:time_per_output_token_seconds": "vllm:inter_token_latency_seconds",
        "kthena:e2e_request_latency_seconds": "vllm:e2e_request_latency_seconds",
        "kthena:kv_cache_usage_perc": "vllm:kv_cache_usage_perc",
        "kthena:prompt_tokens": "vllm:prompt_tokens",
        "kthena:prefix_cache_hits": "vllm:prefix_cache_hits",
        "kthena:request_success": "vllm:request_success",
    },
    Engine.SGLANG: {
        "kthena:generation_tokens": "sglang:generation_tokens",
        "kthena:num_requests_waiting": "sglang:num_queue_reqs",
        "kthena:num_requests_running": "sglang:num_running_reqs",
        "kthena:time_to_first_token_seconds": "sglang:time_to_first_token_seconds",
        "kthena:time_per_output_token_seconds": "sglang:inter_token_latency_seconds",
        "kthena:e2e_request_latency_seconds": "sglang:e2e_request_latency_seconds",
        "kthena:kv_cache_usage_perc": "sglang:token_usage",
        "kthena:prompt_tokens": "sglang:prompt_tokens",
        "kthena:prefix_cache_hits": "sglang:cached_tokens",
        "kthena:request_success": "sglang:num_requests",
    },
    Engine.LLAMACPP: {
        "kthena:generation_tokens": "llamacpp:tokens_predicted",
        "kthena:num_requests_waiting": "llamacpp:requests_deferred",
        "kthena:num_requests_running": "llamacpp:requests_processing",
        "kthena:prompt_tokens": "llamacpp:prompt_tokens",
    },
}


def page(engine: Engine) -> str:
    return (DATA / f"{engine}.txt").read_text()


def parsed(text: str) -> dict[str, Metric]:
    return {family.name: family for family in text_string_to_metric_families(text)}


@pytest.mark.parametrize("engine", SOURCES, ids=str)
def test_standard_families_have_the_samples_of_their_source(engine: Engine) -> None:
    families = parsed(normalise(page(engine), engine))

    assert {name for name in families if name.startswith("kthena:")} == set(SOURCES[engine])
    for name, source in SOURCES[engine].items():
        renamed = [
            (sample.name.replace(name, source, 1), sample.labels, sample.value)
            for sample in families[name].samples
        ]
        original = [(s.name, s.labels, s.value) for s in families[source].samples]
        assert renamed == original, name
        assert families[name].type == families[source].type


@pytest.mark.parametrize("engine", SOURCES, ids=str)
def test_the_engines_own_page_is_passed_through_unchanged(engine: Engine) -> None:
    assert normalise(page(engine), engine).startswith(page(engine))


def test_mb_5_3_the_counter_gets_its_standard_name() -> None:
    text = normalise(page(Engine.VLLM), Engine.VLLM)

    assert '\nkthena:generation_tokens_total{engine="0",model_name="chat"} ' in text
    assert "\n# TYPE kthena:generation_tokens_total counter\n" in text


def test_mb_5_3_time_per_output_token_comes_from_either_source() -> None:
    former = 'vllm:time_per_output_token_seconds_count{m="a"} 3\n'
    today = 'vllm:inter_token_latency_seconds_count{m="a"} 5\n'

    def count(text: str) -> float:
        family = parsed(normalise(text, Engine.VLLM))["kthena:time_per_output_token_seconds"]
        return family.samples[0].value

    assert count(former) == 3
    assert count(today) == 5
    assert count(today + former) == 3


def test_a_counter_without_total_gets_it() -> None:
    text = "# TYPE vllm:generation_tokens counter\nvllm:generation_tokens 4\n"

    assert "\nkthena:generation_tokens_total 4\n" in normalise(text, Engine.VLLM)
    assert normalise(text, Engine.VLLM).startswith(text)


def test_all_series_of_a_data_parallel_engine_are_kept() -> None:
    text = 'vllm:num_requests_waiting{engine="0"} 1\nvllm:num_requests_waiting{engine="1"} 2.5\n'
    found = normalise(text, Engine.VLLM)

    assert found.count("kthena:num_requests_waiting{") == 2
    assert total(found, "kthena:num_requests_waiting") == 3.5


def test_timestamps_and_exemplars_are_kept() -> None:
    text = (
        'vllm:num_requests_waiting{m="a b} \\"c"} 1 1700000000000\n'
        'vllm:e2e_request_latency_seconds_bucket{le="0.3"} 2 # {trace="x"} 0.2 1.7e9\n'
    )
    found = normalise(text, Engine.VLLM)

    assert 'kthena:num_requests_waiting{m="a b} \\"c"} 1 1700000000000\n' in found
    assert 'kthena:e2e_request_latency_seconds_bucket{le="0.3"} 2 # {trace="x"} 0.2 1.7e9' in found


def test_an_openmetrics_end_does_not_stand_in_the_middle() -> None:
    found = normalise("vllm:num_requests_waiting 1\n# EOF\n", Engine.VLLM)

    assert "# EOF" not in found
    assert "kthena:num_requests_waiting 1" in found


def test_tgi_is_understood() -> None:
    text = "tgi_queue_size 2\ntgi_batch_current_size 3\ntgi_request_success 4\n"
    found = normalise(text, Engine.TGI)

    assert "kthena:num_requests_waiting 2\n" in found
    assert "kthena:num_requests_running 3\n" in found
    assert "kthena:request_success_total 4\n" in found


def test_another_engines_page_and_an_empty_page_stay_as_they_are() -> None:
    assert normalise("up 1\n", Engine.OTHER) == "up 1\n"
    assert normalise("", Engine.VLLM) == ""
    assert normalise(page(Engine.VLLM), Engine.SGLANG) == page(Engine.VLLM)


@pytest.mark.parametrize(
    "line",
    ["<html>", "vllm:num_requests_waiting", 'a{b="c} 1', "a one", "a{b=c} {} 1", "1a 1", "a 1e"],
)
def test_a_malformed_page_is_told_by_its_line(line: str) -> None:
    with pytest.raises(MalformedPageError, match="line 2 is no metric"):
        normalise(f"up 1\n{line}\n", Engine.VLLM)


@pytest.mark.parametrize("value", ["1", "-1.5", "1e+06", "+Inf", "-Inf", "NaN", ".5", "1.0e-9"])
def test_every_form_of_a_value_is_read(value: str) -> None:
    assert f"kthena:num_requests_waiting {value}" in normalise(
        f"vllm:num_requests_waiting {value}\n", Engine.VLLM
    )


@settings(deadline=None)
@given(
    st.dictionaries(
        st.sampled_from([s for each in STANDARDS for s in each.sources.get(Engine.VLLM, ())]),
        st.floats(0, 1e9),
    )
)
def test_nothing_is_invented(values: dict[str, float]) -> None:
    text = "".join(f"{name}_sum {value}\n" for name, value in values.items())
    found = parsed(normalise(text, Engine.VLLM))

    for name in found:
        if name.startswith("kthena:"):
            assert any(standard.name == name.removesuffix("_sum") for standard in STANDARDS)
    assert total(text, "kthena:num_requests_waiting") is None
