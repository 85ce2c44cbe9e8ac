"""Values of one pod: gauges, rates over restarts, histogram increases, and when there is none."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferbus_contracts.events.metrics import MetricKind
from inferbus_metrics_collector.policy_history import (
    History,
    PodStart,
    Reading,
    Window,
    baseline,
    remember,
)
from inferbus_metrics_collector.policy_series import (
    PodValue,
    Unusable,
    bucket_increases,
    counter_increase,
    pod_value,
)
from inferbus_shared.pages.scan import scan

START = PodStart("u", 1)
WINDOW = Window(length_ms=15_000, interval_ms=5_000)


def reading(text: str, at_ms: int = 0, *wanted: str) -> Reading:
    return Reading(at_ms, scan(text.encode(), wanted or ("load",)))


def value_of(now: str, past: str | None = None, name: str = "load") -> PodValue | Unusable | None:
    before = None if past is None else reading(past, 0, name)
    return pod_value((name,), reading(now, 10_000, name), before)


def test_as_t124_a_gauge_is_the_sum_of_its_series() -> None:
    found = value_of('# TYPE load gauge\nload{a="1"} 4\nload{a="2"} 6\n')
    assert found == PodValue(kind=MetricKind.GAUGE, value=10.0)


def test_as_d06_a_counter_is_its_increase_per_second() -> None:
    found = value_of("# TYPE load counter\nload 250\n", "# TYPE load counter\nload 200\n")
    assert found == PodValue(kind=MetricKind.RATE, value=5.0, span_ms=10_000)


def test_a_counter_has_no_rate_at_its_first_reading() -> None:
    for past in (None, "# TYPE other counter\n", "# TYPE load gauge\nload 4\n"):
        assert isinstance(value_of("# TYPE load counter\nload 250\n", past), Unusable)


def test_a_family_that_the_page_lacks_is_absent_and_not_zero() -> None:
    assert value_of("# TYPE load gauge\nother 1\n") is None


@pytest.mark.parametrize("number", ["NaN", "+Inf", "-Inf", "-1", "1e300"])
@pytest.mark.parametrize("type_", ["gauge", "counter"])
def test_as_d10_an_impossible_number_is_no_number(number: str, type_: str) -> None:
    good, bad = (f"# TYPE load {type_}\nload {n}\n" for n in ("5", number))
    assert isinstance(value_of(bad, good), Unusable)
    if type_ == "counter":
        assert isinstance(value_of(good, bad), Unusable)


def test_as_d10_a_histogram_with_an_impossible_count_gives_no_number() -> None:
    page = '# TYPE load histogram\nload_bucket{{le="1"}} {}\nload_bucket{{le="+Inf"}} 9\n'
    for count in ("NaN", "+Inf", "-3"):
        assert isinstance(value_of(page.format(count), page.format(4)), Unusable)
        assert isinstance(value_of(page.format(4), page.format(count)), Unusable)


def test_a_summary_is_refused_with_the_reason() -> None:
    found = value_of('# TYPE load summary\nload{quantile="0.5"} 1\nload_sum 2\nload_count 2\n')
    assert isinstance(found, Unusable)
    assert "summary" in found.reason


def test_the_first_family_on_the_page_answers() -> None:
    page = reading("# TYPE b gauge\nb 1\n# TYPE c gauge\nc 2\n", 0, "a", "b", "c")
    found = pod_value(("a", "b", "c"), page, None)
    assert isinstance(found, PodValue)
    assert found.value == 1.0


@pytest.mark.parametrize(
    ("past", "now", "increase"),
    [
        ({b"x": 5.0}, {b"x": 8.0}, 3.0),
        ({b"x": 5.0}, {b"x": 2.0}, 2.0),
        ({b"x": 5.0, b"y": 1.0}, {b"x": 6.0}, 1.0),
        ({b"x": 5.0}, {b"x": 6.0, b"y": 4.0}, 5.0),
        ({b"x": 5.0}, {b"x": 5.0}, 0.0),
    ],
    ids=["grew", "restarted", "a series vanished", "a series appeared", "stood still"],
)
def test_the_increase_of_a_counter(
    past: dict[bytes, float], now: dict[bytes, float], increase: float
) -> None:
    assert counter_increase(now, past) == increase


counts = st.dictionaries(st.sampled_from([b"a", b"b", b"c"]), st.integers(0, 10**9).map(float))


@given(counts, counts)
def test_no_increase_is_negative_or_more_than_what_is_there(
    past: dict[bytes, float], now: dict[bytes, float]
) -> None:
    assert 0 <= counter_increase(now, past) <= sum(now.values())


def buckets(*counts_: float, model: str = "m") -> dict[bytes, float]:
    bounds = ("0.1", "1", "+Inf")
    return {
        f'{{model="{model}",le="{bound}"}}'.encode(): count
        for bound, count in zip(bounds, counts_, strict=True)
    }


def test_buckets_grow_by_series_and_are_summed_over_them() -> None:
    now = buckets(4, 6, 9) | buckets(1, 1, 1, model="n")
    found = bucket_increases(now, buckets(1, 2, 3))
    assert found == {0.1: 4.0, 1.0: 5.0, math.inf: 7.0}


def test_a_restarted_series_counts_from_zero_in_all_its_buckets() -> None:
    now = buckets(5, 8, 10) | buckets(3, 3, 3, model="n")
    past = buckets(3, 50, 100) | buckets(1, 1, 1, model="n")
    assert bucket_increases(now, past) == {0.1: 5.0 + 2, 1.0: 8.0 + 2, math.inf: 10.0 + 2}


@pytest.mark.parametrize(
    "now",
    [
        {b'{le="1"}': 1.0},
        {b'{model="m"}': 1.0},
        {f'{{le="{bound}"}}'.encode(): 1.0 for bound in (*range(600), "+Inf")},
    ],
    ids=["no +Inf", "no bound", "too many"],
)
def test_histograms_that_cannot_be_read(now: dict[bytes, float]) -> None:
    assert isinstance(bucket_increases(now, {}), Unusable)


def history(*times_ms: int, start: PodStart = START) -> History | None:
    past: History | None = None
    for at_ms in times_ms:
        past = remember(past, start, reading("", at_ms), WINDOW)
    return past


@pytest.mark.parametrize(
    ("times_ms", "now_ms", "expected_ms"),
    [
        ([], 0, None),
        ([0], 1_000, None),
        ([0], 5_000, 0),
        ([0, 5_000], 10_000, 0),
        ([0, 5_000, 10_000, 15_000], 20_000, 5_000),
        ([0, 5_000, 10_002], 24_999, 10_002),
        ([0], 61_000, None),
    ],
    ids=["none", "too young", "second", "growing", "full", "jitter", "too old"],
)
def test_the_baseline_is_about_one_window_old(
    times_ms: list[int], now_ms: int, expected_ms: int | None
) -> None:
    found = baseline(history(*times_ms), START, now_ms, WINDOW)
    assert (found and found.at_ms) == expected_ms


def test_another_start_of_the_pod_has_no_past() -> None:
    past = history(0, 5_000)
    for start in (PodStart("v", 1), PodStart("u", 2)):
        assert baseline(past, start, 10_000, WINDOW) is None
        assert len(remember(past, start, reading("", 10_000), WINDOW).readings) == 1


@given(st.lists(st.integers(1, 20_000), max_size=60))
def test_a_history_stays_short_and_keeps_every_baseline(steps_ms: list[int]) -> None:
    at_ms = 0
    short: History | None = None
    everything: tuple[Reading, ...] = ()
    for step_ms in steps_ms:
        at_ms += step_ms
        whole = History(START, everything)
        assert baseline(short, START, at_ms, WINDOW) == baseline(whole, START, at_ms, WINDOW)
        item = reading("", at_ms)
        short, everything = remember(short, START, item, WINDOW), (*everything, item)
        inside = sum(at_ms - known.at_ms < WINDOW.length_ms for known in everything)
        assert len(short.readings) <= inside + 1
