"""What plugins learn from an engine's pages."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferbus_router.policy_engine_page import FAMILIES, EnginePage, read_models, read_page
from inferbus_shared.pages.scan import scan

VLLM = """
vllm:num_requests_waiting{model_name="m"} 3
vllm:num_requests_running{model_name="m"} 7
vllm:kv_cache_usage_perc{model_name="m"} 0.25
"""


def read(text: str, before: EnginePage | None = None) -> EnginePage:
    return read_page(scan(text.encode(), FAMILIES), before)


def latencies(seconds: float, count: int, family: str = "vllm:time_to_first_token_seconds") -> str:
    return (
        f"# TYPE {family} histogram\n"
        f'{family}_bucket{{le="+Inf"}} {count}\n{family}_sum {seconds}\n{family}_count {count}\n'
    )


def test_gauges_of_vllm() -> None:
    reading = read(VLLM).reading

    assert (reading.waiting, reading.running, reading.kv_cache_usage) == (3, 7, 0.25)


@pytest.mark.parametrize(
    ("page", "field"),
    [
        ("vllm:gpu_cache_usage_perc 0.5", "kv_cache_usage"),
        ("sglang:token_usage 0.5", "kv_cache_usage"),
        ("sglang:num_queue_reqs 0.5", "waiting"),
        ("sglang:num_running_reqs 0.5", "running"),
    ],
)
def test_older_names_and_sglangs_mean_the_same(page: str, field: str) -> None:
    assert getattr(read(page + "\n").reading, field) == 0.5


def test_a_latency_is_the_mean_since_the_page_before() -> None:
    first = read(latencies(100, 10))
    second = read(latencies(104, 12), first)
    third = read(latencies(104, 12), second)

    assert first.reading.ttft_seconds is None, "it is of all time, not of lately"
    assert second.reading.ttft_seconds == 2
    assert third.reading.ttft_seconds == 2, "without new samples it stays"


def test_an_engine_that_has_restarted_begins_at_zero() -> None:
    before = read(latencies(100, 10))

    assert read(latencies(3, 2), before).reading.ttft_seconds == 1.5


@pytest.mark.parametrize(
    "family",
    [
        "vllm:inter_token_latency_seconds",
        "vllm:time_per_output_token_seconds",
        "sglang:inter_token_latency_seconds",
        "sglang:time_per_output_token_seconds",
    ],
)
def test_times_per_token_have_several_names(family: str) -> None:
    before = read(latencies(1, 10, family))

    assert read(latencies(2, 20, family), before).reading.tpot_seconds == pytest.approx(0.1)


def test_ranks_of_one_engine_make_one_number() -> None:
    """The reference takes whichever series stands last."""
    page = "".join(
        f'{name}{{engine="{rank}"}} {value}\n'
        for name, values in (
            ("vllm:num_requests_waiting", (1, 5)),
            ("vllm:kv_cache_usage_perc", (0.2, 0.6)),
        )
        for rank, value in enumerate(values)
    )
    reading = read(page).reading

    assert (reading.waiting, reading.kv_cache_usage) == (6, pytest.approx(0.4))


def test_rt_15_what_is_missing_is_unknown_and_not_zero() -> None:
    before = read(VLLM)
    reading = read("something_else 1\n", before).reading

    assert (reading.waiting, reading.running, reading.kv_cache_usage) == (None, None, None)


@given(st.floats(allow_nan=True, allow_infinity=True))
def test_what_is_no_number_is_unknown(value: float) -> None:
    reading = read(f"vllm:num_requests_waiting {value!r}\n").reading

    assert reading.waiting is None or 0 <= reading.waiting < float("inf")


@pytest.mark.parametrize(
    ("body", "models"),
    [
        (b'{"data": [{"id": "base"}, {"id": "la", "parent": "base"}]}', {"base", "la"}),
        (b'{"data": []}', set()),
        (b'{"data": [{"id": 5}, 7]}', set()),
        (b'{"data": null}', None),
        (b"[]", None),
        (b"oops", None),
    ],
)
def test_the_list_of_models(body: bytes, models: set[str] | None) -> None:
    assert read_models(body) == models
