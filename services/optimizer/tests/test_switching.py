"""The ski rental between staying and switching."""

from hypothesis import given
from hypothesis import strategies as st

from inferbus_optimizer.policy_switching import Bargain, Regret, starting_cost


def test_regret_grows_with_time_and_extra_cost() -> None:
    regret = Regret().going_on(30, 1000).going_on(10, 1500)
    assert regret.at(1500) == 30 * 500
    assert regret.at(2500) == 30 * 500 + 10 * 1000


def test_the_same_extra_cost_is_the_same_regret() -> None:
    regret = Regret().going_on(30, 1000)
    assert regret.going_on(30, 5000) is regret


def test_an_optimal_mix_owes_nothing() -> None:
    assert Regret().going_on(30, 1000).going_on(0, 9000) == Regret()


def test_a_rate_of_0_switches_at_once() -> None:
    assert Bargain(extra=1, switching=10**9, rate_percent=0).pays(Regret(), 0)


def test_a_switch_that_costs_nothing_is_made_at_once() -> None:
    assert Bargain(extra=1, switching=0, rate_percent=200).pays(Regret(), 0)


def test_without_extra_cost_it_is_never_due() -> None:
    assert Bargain(extra=0, switching=5, rate_percent=200).due_ms(Regret(), 7) is None


@given(
    extra=st.integers(1, 500),
    switching=st.integers(0, 10**7),
    rate=st.integers(0, 400),
    accrued=st.integers(0, 10**7),
)
def test_it_pays_from_the_due_time_on_and_not_before(
    extra: int, switching: int, rate: int, accrued: int
) -> None:
    bargain = Bargain(extra=extra, switching=switching, rate_percent=rate)
    regret = Regret(accrued=accrued, extra=extra, since_ms=1000)
    due_ms = bargain.due_ms(regret, 1000)
    assert due_ms is not None
    assert bargain.pays(regret, due_ms)
    assert due_ms == 1000 or not bargain.pays(regret, due_ms - 1)


def test_only_replicas_above_the_current_ones_are_started() -> None:
    assert starting_cost([10, 7, 5], [2, 4, 0], [5, 1, 2]) == 3 * 10 + 2 * 5
