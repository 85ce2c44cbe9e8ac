"""A request counts once, however it is told."""

from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferbus_autoscaler.events import Counters, Demanded
from inferbus_autoscaler.policy_arrivals import LOOK_MS, MOST_ROUTERS, Arrivals, late_share
from services.autoscaler.tests.builders import T0

SECOND_MS = 1_000


def told(second: int, total: int, came: int, router: str = "a", queued: int = 0) -> Demanded:
    """What a router says of one second, with `total` requests since it started."""
    return Demanded(
        at_ms=T0 + second * SECOND_MS,
        router=router,
        totals=Counters(requests=total),
        interval=Counters(requests=came),
        interval_ms=SECOND_MS,
        queued=queued,
    )


seconds = st.lists(st.integers(0, 100), min_size=1, max_size=40)


@given(seconds, st.data())
def test_seconds_may_be_left_out_and_told_twice(counts: list[int], data: st.DataObject) -> None:
    """Up to the last second that was looked at, each request counts exactly once."""
    arrivals, looked = Arrivals(), 0
    for second, (total, came) in enumerate(zip(accumulate(counts), counts, strict=True)):
        if second and data.draw(st.booleans()):
            continue
        for _ in range(data.draw(st.integers(1, 2))):
            after = arrivals.heard(told(second, total, came))
            if after is not arrivals:
                looked = total
            arrivals = after
    assert arrivals.came.requests == looked


@pytest.mark.parametrize("timed", [True, False])
def test_times_to_the_first_token_are_kept_where_they_are_asked_for(timed: bool) -> None:
    first, second = (
        Demanded(
            at_ms=T0 + second * LOOK_MS,
            router="a",
            totals=Counters(requests=total, first_tokens=(total, 0)),
            interval=Counters(requests=total, first_tokens=(total, 0)),
        )
        for second, total in ((0, 3), (1, 5))
    )
    arrivals = Arrivals().heard(first, timed=timed).heard(second, timed=timed)
    assert arrivals.came == Counters(requests=5, first_tokens=(5, 0) if timed else ())


def test_between_two_looks_nothing_changes() -> None:
    arrivals = Arrivals().heard(told(0, 5, 5))
    assert arrivals.heard(told(4, 50, 9)) is arrivals
    assert arrivals.heard(told(LOOK_MS // SECOND_MS, 60, 10)).came.requests == 60


def test_a_router_that_was_running_before_counts_from_its_first_second_on() -> None:
    assert Arrivals().heard(told(0, 1_000_000, 7)).came.requests == 7


def test_a_router_that_was_restarted_counts_on() -> None:
    arrivals = Arrivals().heard(told(0, 900, 3))
    assert arrivals.heard(told(10, 4, 4)).came.requests == 3 + 4


@pytest.mark.parametrize("routers", [3, MOST_ROUTERS + 4])
def test_any_number_of_routers_adds_up(routers: int) -> None:
    arrivals = Arrivals()
    for second in range(10):
        for number in range(routers):
            arrivals = arrivals.heard(told(second, second + 1, 1, f"router-{number:03}"))
    at_least, all_of_them = routers * 6, routers * 10
    assert at_least <= arrivals.came.requests <= all_of_them
    assert len(arrivals.routers) <= MOST_ROUTERS


def test_a_router_that_fell_silent_has_nothing_waiting() -> None:
    arrivals = Arrivals().heard(told(0, 5, 5, queued=4)).heard(told(0, 5, 5, "b", queued=2))
    assert arrivals.queued(T0 + SECOND_MS) == 6
    assert arrivals.queued(T0 + 60 * SECOND_MS) == 0


def test_held_requests_are_traffic() -> None:
    assert Arrivals().heard(Demanded(at_ms=T0, router="a", held=1)).last_ms == T0


@pytest.mark.parametrize(
    ("limit_ms", "share"),
    [(2_500, 0.25), (1_000, 0.5), (1_750, 0.375), (60_000, 0.0), (100_000, 0.0), (1, 0.95)],
)
def test_the_share_of_late_answers_is_read_from_buckets(limit_ms: int, share: float) -> None:
    """Five up to 5 ms, five up to a second, five up to 2.5 s, five up to 5 s."""
    buckets = [5, 0, 0, 0, 0, 0, 0, 5, 5, 5, 0, 0, 0, 0]
    assert late_share(buckets, limit_ms) == pytest.approx(share)
    assert late_share([0] * 14, limit_ms) == 0.0
