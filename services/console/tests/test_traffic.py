"""Latency quantiles, and the traffic of the last ten seconds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferbus_console.policy_latency import merged, quantile_ms
from inferbus_console.traffic import Traffic
from inferbus_contracts.events.demand import LATENCY_BOUNDS_MS, DemandObserved, ModelDemand
from services.console.tests.console_builders import H100, TARGET

BUCKETS = len(LATENCY_BOUNDS_MS) + 1


def histogram(**counts: int) -> list[int]:
    """Observations by upper bound, e.g. `le_100=3`."""
    buckets = [0] * BUCKETS
    for name, count in counts.items():
        buckets[LATENCY_BOUNDS_MS.index(int(name.removeprefix("le_")))] = count
    return buckets


def test_a_quantile_lies_inside_its_bucket() -> None:
    counts = histogram(le_100=10, le_250=10)
    assert quantile_ms(counts, 0.25) == 75.0
    assert quantile_ms(counts, 0.5) == 100.0
    assert quantile_ms(counts, 0.75) == 175.0
    assert quantile_ms(counts, 1.0) == 250.0


def test_beyond_the_last_bound_it_is_the_last_bound() -> None:
    assert quantile_ms([0] * (BUCKETS - 1) + [5], 0.5) == LATENCY_BOUNDS_MS[-1]


def test_without_observations_there_is_none() -> None:
    assert quantile_ms([0] * BUCKETS, 0.99) is None
    assert quantile_ms([], 0.99) is None


@given(st.lists(st.integers(0, 50), min_size=BUCKETS, max_size=BUCKETS), st.floats(0.01, 1))
def test_a_higher_share_is_never_below(counts: list[int], share: float) -> None:
    low, high = quantile_ms(counts, share / 2), quantile_ms(counts, share)
    assert (low is None) == (high is None) == (sum(counts) == 0)
    if low is not None and high is not None:
        assert 0 <= low <= high <= LATENCY_BOUNDS_MS[-1]


def test_merging_adds_bucket_by_bucket() -> None:
    assert merged([[1, 2], [], [0, 0, 5]])[:4] == [1, 2, 5, 0]


def second(start_ms: int, router: str = "r", model: str = "chat", **demand: int) -> DemandObserved:
    buckets = histogram(le_100=demand.get("arrivals", 0))
    one = ModelDemand(model=model, ttft_ms_buckets=buckets, **demand)
    return DemandObserved(router=router, interval_start_ms=start_ms, interval_ms=1000, models=[one])


def test_rates_are_over_ten_seconds_and_states_are_the_last() -> None:
    traffic = Traffic()
    for start_ms in range(0, 20_000, 1000):
        traffic.take(TARGET, second(start_ms, arrivals=5, output_tokens=100, in_flight=start_ms))
    (row,) = traffic.rows(20_000)
    assert (row.model, row.target) == ("chat", str(TARGET))
    assert row.requests_per_second == pytest.approx(4.5)
    assert row.output_tokens_per_second == pytest.approx(90)
    assert row.in_flight == 19_000
    assert row.ttft_p50_ms == pytest.approx(75)


def test_routers_add_up() -> None:
    traffic = Traffic()
    for router in ("r-0", "r-1"):
        traffic.take(TARGET, second(0, router, arrivals=10, errors=1, queued=3, in_flight=2))
        traffic.take(TARGET, second(1000, router, arrivals=10, queued=1, in_flight=4))
    (row,) = traffic.rows(2000)
    assert (row.requests_per_second, row.errors_per_second) == (4.0, 0.2)
    assert (row.queued, row.in_flight) == (2, 8)


def test_what_is_over_is_gone() -> None:
    traffic = Traffic()
    traffic.take(TARGET, second(0, arrivals=1))
    assert traffic.rows(9_999)
    assert not traffic.rows(10_000)
    assert not traffic.rows(5_000), "and it doesn't come back"


def test_what_a_router_says_of_a_time_to_come_waits_for_it() -> None:
    traffic = Traffic()
    traffic.take(TARGET, second(5_000, arrivals=1))
    assert not traffic.rows(4_000)
    assert traffic.rows(5_000)


def test_models_and_targets_are_apart() -> None:
    traffic = Traffic()
    traffic.take(TARGET, second(0, model="b", arrivals=1))
    traffic.take(TARGET, second(0, model="a", arrivals=1))
    traffic.take(H100, second(0, model="a", arrivals=1))
    names = [(row.model, row.target) for row in traffic.rows(1000)]
    assert names == [("a", str(TARGET)), ("a", str(H100)), ("b", str(TARGET))]
