"""The scores and filters of the reference's scheduler plugins, by the numbers of its test cases."""

from collections import Counter
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferbus_router.policy_pipeline import FilteredOutError
from inferbus_router.policy_plugins import HIGHEST_SCORE
from inferbus_router.policy_plugins_cache import kvcache_aware, prefix_cache
from inferbus_router.policy_plugins_load import (
    GpuUsage,
    LeastLatency,
    LeastRequestFilter,
    LeastRequestScore,
    RandomScore,
)
from inferbus_router.policy_plugins_lora import LoraAffinity
from services.router.tests.plugin_fleet import candidates, names, no_lap, pipeline, request


@pytest.mark.parametrize(
    ("in_flight", "running", "scores"),
    [
        pytest.param((0, 10, 5), (0, 0, 0), [100, 0, 50], id="t045"),
        pytest.param((1, 2, 3), (0, 0, 0), [66, 33, 0], id="t046"),
        pytest.param((5, 5, 0), (5, 0, 0), [99, 0, 100], id="t047"),
        pytest.param((0, 0, 0), (0, 0, 0), [100, 100, 100], id="t048"),
        pytest.param((0, 10, 5), (None, None, None), [100, 0, 50], id="engines-say-nothing"),
        pytest.param((2, 2), (9, 9), [0, 0], id="others-send-there-too"),
    ],
)
def test_t045_t046_t047_t048_least_request_scores(
    in_flight: tuple[int, ...], running: tuple[float | None, ...], scores: list[int]
) -> None:
    fleet = candidates(*in_flight, running=running)

    assert LeastRequestScore().scores(request(), fleet) == scores


@pytest.mark.parametrize(("weight", "scores"), [(1.0, [0, 100]), (0.0, [100, 0]), (0.5, [50, 50])])
def test_t049_least_latency_weighs_both_latencies(weight: float, scores: list[int]) -> None:
    fleet = candidates(0, 0, ttft_seconds=(100, 1), tpot_seconds=(10, 20))

    assert LeastLatency(weight).scores(request(), fleet) == scores


@pytest.mark.parametrize("count", [1, 3])
def test_t050_equally_fast_engines_score_100(count: int) -> None:
    fleet = candidates(*[0] * count, ttft_seconds=[2.0] * count, tpot_seconds=[0.1] * count)

    assert LeastLatency().scores(request(), fleet) == [100] * count


@pytest.mark.parametrize("unknown", [0, None])
def test_t051_an_engine_without_a_latency_gets_the_middle_and_sets_no_scale(
    unknown: float | None,
) -> None:
    fleet = candidates(0, 0, 0, ttft_seconds=(unknown, 1, 3), tpot_seconds=(1, 1, 1))

    assert LeastLatency(1.0).scores(request(), fleet) == [50, 100, 0]


def test_t053_gpu_usage_scores_the_free_part_of_the_cache() -> None:
    fleet = candidates(0, 0, 0, kv_cache_usage=(0.25, None, 1.2))

    assert GpuUsage().scores(request(), fleet) == [75, 50, 0]


def test_t058_random_alone_gives_each_endpoint_its_part() -> None:
    plugins = pipeline(RandomScore(Random(1).random))
    fleet = candidates(0, 0, 0)
    first = Counter(names(plugins.best(request(), fleet, no_lap))[0] for _ in range(3000))

    assert all(abs(count / 3000 - 1 / 3) < 0.1 for count in first.values())
    assert len(first) == 3


def test_random_scores_reach_from_0_to_100() -> None:
    draws = iter([0.0, 0.5, 0.9999])

    assert RandomScore(lambda: next(draws)).scores(request(), candidates(0, 0, 0)) == [0, 50, 100]


def test_least_request_leaves_out_engines_with_a_full_queue() -> None:
    fleet = candidates(0, 0, 0, 0, waiting=(9, 10, 11, None))
    kept = pipeline(filters=[LeastRequestFilter()]).admitted(request(), fleet, no_lap)

    assert names(kept) == ["0", "3"]


def test_rt_05_nothing_left_names_the_filter() -> None:
    busy = candidates(0, 0, waiting=(5, 5))
    with pytest.raises(FilteredOutError) as raised:
        pipeline(filters=[LoraAffinity(), LeastRequestFilter(5)]).best(request(), busy, no_lap)

    assert raised.value.filter_name == "least-request"


def test_t055_lora_affinity_keeps_the_endpoints_that_have_the_adapter() -> None:
    models = (frozenset({"base", "la"}), frozenset({"base"}), frozenset[str]())
    kept = pipeline(filters=[LoraAffinity()]).admitted(
        request(model="la"), candidates(0, 0, 0, models=models), no_lap
    )

    assert names(kept) == ["0"]


def test_lora_affinity_keeps_an_engine_whose_models_are_not_known() -> None:
    assert pipeline(filters=[LoraAffinity()]).admitted(request(), candidates(0), no_lap)


def test_t064_rt_12_an_empty_score_map_leaves_all_to_the_default_rule() -> None:
    """The reference's client gets 503; here candidates count 0 where nothing is known of them."""
    fleet = candidates(0, 0, 0)

    for plugins in ((), (prefix_cache(),), (kvcache_aware(),)):
        assert names(pipeline(*plugins).best(request(""), fleet, no_lap)) == ["0", "1", "2"]


def test_t065_of_two_decode_endpoints_the_busy_one_is_left_out() -> None:
    decodes = candidates(0, 0, waiting=(10, 0))
    kept = pipeline(filters=[LeastRequestFilter(10)]).admitted(request(), decodes, no_lap)

    assert names(kept) == ["1"]


def test_scores_add_up_by_weight() -> None:
    fleet = candidates(0, 10, kv_cache_usage=(1.0, 0.0))
    for weight, best in ((1, ["0", "1"]), (2, ["1"])):
        plugins = pipeline(LeastRequestScore(), (GpuUsage(), weight))
        assert names(plugins.best(request(), fleet, no_lap)) == best


def test_every_plugin_that_ran_is_told() -> None:
    laps: list[tuple[str, str]] = []
    plugins = pipeline(LeastRequestScore(), GpuUsage(), filters=[LeastRequestFilter()])
    plugins.best(request(), candidates(0, 0), lambda name, kind: laps.append((name, kind)))

    assert laps == [("least-request", "filter"), ("least-request", "score"), ("gpu-usage", "score")]


GAUGES = st.none() | st.floats(0, 1e6)
READINGS = st.tuples(st.integers(0, 100), GAUGES, GAUGES, GAUGES, GAUGES, GAUGES)


@given(st.lists(READINGS, min_size=1, max_size=8))
def test_whatever_engines_say_a_score_is_between_0_and_100(
    readings: list[tuple[int, *tuple[float | None, ...]]],
) -> None:
    in_flight, waiting, running, usage, ttft, tpot = zip(*readings, strict=True)
    fleet = candidates(
        *in_flight,
        waiting=waiting,
        running=running,
        kv_cache_usage=usage,
        ttft_seconds=ttft,
        tpot_seconds=tpot,
    )
    for plugin in (LeastRequestScore(), LeastLatency(), GpuUsage()):
        scores = plugin.scores(request(), fleet)
        assert len(scores) == len(fleet)
        assert all(0 <= score <= HIGHEST_SCORE for score in scores)
