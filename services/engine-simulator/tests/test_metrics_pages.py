"""The metrics pages, against the lists of what the engines of today show."""

import json
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from inferbus_engine_simulator.core import Engine
from inferbus_engine_simulator.exposition import families, histogram_bounds, render
from inferbus_engine_simulator.policy_accelerators import accelerator
from inferbus_engine_simulator.policy_command_line import parse_command_line
from inferbus_engine_simulator.policy_engine_flags import EngineKind
from inferbus_engine_simulator.policy_events import Request
from inferbus_engine_simulator.policy_pages import PageView, one_two_five
from inferbus_engine_simulator.policy_sizing import size_engine
from inferbus_engine_simulator.policy_statistics import Histogram, Statistics

DATA = Path(__file__).parent / "data"

LINES: dict[str, list[str]] = {
    "vllm": ["vllm", "serve", "org/m-7b", "--max-model-len", "4096", "--enable-lora"],
    "sglang": [
        *("python3", "-m", "sglang.launch_server", "--model-path", "org/m-7b"),
        *("--context-length", "4096", "--enable-metrics", "--enable-lora"),
    ],
    "llamacpp": ["llama-server", "-m", "m-7b.gguf", "-c", "4096", "--metrics"],
}


class Model:
    """An engine on its own, with its statistics."""

    def __init__(self, *argv: str) -> None:
        self.options = parse_command_line(argv, {})
        self.size = size_engine(self.options, accelerator("a10"))
        self.engine = Engine(self.size.limits, self.size.timing, start_ms=0)
        bounds = histogram_bounds(self.options, self.size.max_model_len)
        self.statistics = Statistics(bounds)

    def submit(self, name: str, now_ms: int, **changes: Any) -> None:
        request = Request(name, tuple(range(100)), 5, streaming=True)
        self.engine.submit(request._replace(**changes), now_ms)

    def advance(self, now_ms: int) -> None:
        self.statistics.record(self.engine.advance(now_ms))

    def page(self) -> str:
        view = PageView(
            options=self.options,
            size=self.size,
            statistics=self.statistics,
            running=self.engine.running,
            waiting=self.engine.waiting,
            used_blocks=self.engine.blocks.used,
            idle_blocks=self.engine.blocks.idle,
            context_tokens=self.engine.context_tokens,
            adapters=(),
            now_seconds=1_700_000_000.0,
        )
        return render(families(view)).decode()

    def value(self, name: str, **labels: str) -> float:
        found = [
            sample.value
            for family in text_string_to_metric_families(self.page())
            for sample in family.samples
            if sample.name == name and labels.items() <= sample.labels.items()
        ]
        assert len(found) == 1, f"{name} {labels}: {found}"
        return found[0]


def described(page: str) -> dict[str, dict[str, Any]]:
    """Type, labels and bucket bounds of each family of a page."""
    result: dict[str, dict[str, Any]] = {}
    for family in text_string_to_metric_families(page):
        labels = {name for sample in family.samples for name in sample.labels} - {"le"}
        result[family.name] = {"type": family.type, "labels": sorted(labels)}
        bounds = [sample.labels["le"] for sample in family.samples if "le" in sample.labels]
        if bounds:
            result[family.name]["buckets"] = [float(b) for b in dict.fromkeys(bounds)][:-1]
            assert bounds[-1] == "+Inf"
    return result


@pytest.mark.parametrize("engine", sorted(LINES))
def test_names_types_labels_and_buckets_are_those_of_the_engine(engine: str) -> None:
    model = Model(*LINES[engine])
    for index in range(2):
        model.submit(f"r{index}", index * 10_000)
        model.advance((index + 1) * 10_000)
    expected = json.loads((DATA / f"families_{engine}.json").read_text())

    assert described(model.page()) == expected


@pytest.mark.parametrize("engine", sorted(LINES))
def test_the_page_of_an_idle_engine_is_small(engine: str) -> None:
    assert len(Model(*LINES[engine]).page()) < 100_000


def test_vllm_counts_what_was_served() -> None:
    model = Model(*LINES["vllm"])
    model.submit("cold", 0)
    model.advance(5_000)
    model.submit("warm", 5_000, adapter="")
    model.advance(10_000)

    assert model.value("vllm:prompt_tokens_total") == 200
    assert model.value("vllm:generation_tokens_total") == 10
    assert model.value("vllm:prefix_cache_queries_total") == 200
    assert model.value("vllm:prefix_cache_hits_total") == 96
    assert model.value("vllm:prompt_tokens_by_source_total", source="local_cache_hit") == 96
    assert model.value("vllm:prompt_tokens_by_source_total", source="local_compute") == 104
    assert model.value("vllm:request_success_total", finished_reason="stop") == 2
    assert model.value("vllm:time_to_first_token_seconds_count") == 2
    assert model.value("vllm:inter_token_latency_seconds_count") == 8
    assert model.value("vllm:request_prompt_tokens_bucket", le="100.0") == 2
    assert model.value("vllm:request_prompt_tokens_bucket", le="50.0") == 0


def test_vllm_splits_the_latency_of_requests_into_phases() -> None:
    model = Model(*LINES["vllm"], "--max-num-seqs", "1")
    for index in range(3):
        model.submit(f"r{index}", 5_000)
    model.advance(15_000)
    seconds = {
        phase: model.value(f"vllm:{phase}_seconds_sum")
        for phase in (
            *("request_queue_time", "request_prefill_time", "request_decode_time"),
            *("request_inference_time", "e2e_request_latency", "time_to_first_token"),
            "inter_token_latency",
        )
    }

    assert all(seconds.values())
    prefill, decode = seconds["request_prefill_time"], seconds["request_decode_time"]
    queue, inference = seconds["request_queue_time"], seconds["request_inference_time"]
    assert inference == pytest.approx(prefill + decode)
    assert seconds["e2e_request_latency"] == pytest.approx(queue + inference)
    assert seconds["time_to_first_token"] == pytest.approx(queue + prefill)
    assert seconds["inter_token_latency"] == pytest.approx(decode)


def test_vllm_shows_queue_batch_and_cache_while_it_works() -> None:
    model = Model(*LINES["vllm"], "--max-num-seqs", "2")
    for index in range(5):
        model.submit(f"r{index}", 0, prompt=tuple(range(index, index + 160)), adapter="sql")
    model.advance(100)

    assert model.value("vllm:num_requests_running") == 2
    assert model.value("vllm:num_requests_waiting") == 3
    assert model.value("vllm:num_requests_waiting_by_reason", reason="capacity") == 3
    used = model.engine.blocks.used / model.size.limits.blocks
    assert 0 < model.value("vllm:kv_cache_usage_perc") == used
    labels = {"running_lora_adapters": "sql", "waiting_lora_adapters": "sql", "max_lora": "1"}
    assert model.value("vllm:lora_requests_info", **labels) == 1_700_000_000.0


def test_sglang_tells_streamed_requests_apart() -> None:
    model = Model(*LINES["sglang"])
    model.submit("streamed", 0)
    model.submit("whole", 1, streaming=False)
    model.advance(60)
    assert model.value("sglang:num_running_reqs") + model.value("sglang:num_queue_reqs") == 2
    model.advance(10_000)

    assert model.value("sglang:generation_tokens_total", is_streaming="true") == 5
    assert model.value("sglang:num_requests_total", is_streaming="false") == 1
    assert model.value("sglang:time_to_first_token_seconds_count", is_streaming="true") == 1
    assert model.value("sglang:token_usage") == 0
    assert model.value("sglang:page_size") == 1
    slots = [model.value(f"sglang:kv_{kind}_tokens") for kind in ("available", "evictable", "used")]
    assert sum(slots) == model.value("sglang:max_total_num_tokens")


def test_an_aborted_request_is_counted_as_such() -> None:
    vllm, sglang = Model(*LINES["vllm"]), Model(*LINES["sglang"])
    for model in (vllm, sglang):
        model.submit("a", 0)
        model.engine.abort("a", 1)
        model.advance(1_000)

    assert vllm.value("vllm:request_success_total", finished_reason="abort") == 1
    assert sglang.value("sglang:num_aborted_requests_total") == 1


def test_an_awkward_model_name_is_escaped() -> None:
    model = Model("vllm", "serve", "m", "--served-model-name", 'a"b\\c')

    assert model.value("vllm:num_requests_running", model_name='a"b\\c') == 0


def test_every_engine_with_a_page_renders_it() -> None:
    shown = {
        EngineKind.VLLM: True,
        EngineKind.SGLANG: True,
        EngineKind.LLAMACPP: True,
        EngineKind.TGI: True,
    }
    lines = [
        *LINES.values(),
        ["text-generation-launcher"],
        ["trtllm-serve", "m"],
        ["ollama", "serve"],
    ]
    for argv in lines:
        model = Model(*argv)
        assert bool(model.page()) is shown.get(model.options.engine, False)


def test_a_value_on_a_bound_belongs_to_the_bucket_below() -> None:
    histogram = Histogram([1, 2, 5])
    for value in (0.5, 1, 1.5, 5, 7):
        histogram.observe(value)

    assert histogram.counts == [2, 1, 1, 1]
    assert (histogram.count, histogram.total) == (5, 15.0)


def test_token_bounds_end_at_the_context_length() -> None:
    assert one_two_five(100) == [1, 2, 5, 10, 20, 50, 100]
    assert one_two_five(4096)[-1] == 2000
