"""What holds whatever the demand does: what stability costs, and that the demand is served."""

from itertools import pairwise
from typing import NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from inferbus_optimizer.events import Demand, Option
from inferbus_optimizer.policy_exact import cheapest, running_cost
from inferbus_optimizer.policy_placement import Placement, place
from inferbus_optimizer.policy_room import choices_of, needed_of
from inferbus_optimizer.policy_switching import Regret, starting_cost
from services.optimizer.tests.builders import T0

NOTHING: frozenset[str] = frozenset()


class Step(NamedTuple):
    """A demand in capacity units, and for how long it stays."""

    capacity: float
    lasts_ms: int


def option(index: int, **changes: int | float | bool | None) -> Option:
    given_ = {"min_replicas": 0, "max_replicas": 6, "cost": 10, "capacity": 1.0, "startup_ms": 1}
    return Option(
        target=f"ModelServing/default/t{index}",
        uid=f"uid of {index}",
        generation=1,
        current=0,
        **(given_ | changes),  # type: ignore[arg-type]
    )


options = st.lists(
    st.tuples(
        st.integers(0, 2),
        st.integers(0, 6),
        st.integers(1, 12),
        st.sampled_from([0.5, 1.0, 2.0, 3.0, 4.0]),
        st.integers(0, 5_000),
        st.one_of(st.none(), st.integers(0, 6)),
        st.booleans(),
    ),
    min_size=2,
    max_size=3,
).map(
    lambda made: tuple(
        option(
            index,
            min_replicas=low,
            max_replicas=low + more,
            cost=cost,
            capacity=capacity,
            startup_ms=startup_ms,
            schedulable=room,
            probe=probe and room is not None,
        )
        for index, (low, more, cost, capacity, startup_ms, room, probe) in enumerate(made)
    )
)

steps = st.lists(
    st.builds(Step, st.floats(0, 20, width=16), st.integers(1, 20_000)), min_size=1, max_size=12
)


def demand(capacity: float, mix: tuple[Option, ...], rate: int) -> Demand:
    return Demand(capacity=capacity, replicas=0, rate_percent=rate, options=mix)


def without_rooms(mix: tuple[Option, ...]) -> tuple[Option, ...]:
    return tuple(
        option(
            index,
            min_replicas=each.min_replicas,
            max_replicas=each.max_replicas,
            cost=each.cost,
            capacity=each.capacity,
            startup_ms=each.startup_ms,
        )
        for index, each in enumerate(mix)
    )


class Detour:
    """A mix that is followed exactly: what it ran up over the optimum, counted independently."""

    def __init__(self, mix: tuple[Option, ...], rate: int) -> None:
        self.mix = mix
        self.rate = rate
        self.now_ms = T0
        self.current = tuple(each.min_replicas for each in mix)
        self.regret = Regret()
        self.run_up = 0
        """Extra cost times milliseconds since the mix was last optimal."""
        self.allowed = 0
        """The most that switching could have cost in that time, times the rate."""
        self.last_extra = 0
        self.seen: list[Placement] = []

    def follow(self, step: Step) -> None:
        """Live through one step, with the timer that the placement asks for."""
        end_ms = self.now_ms + step.lasts_ms
        found = self._look(step.capacity)
        while found.due_ms is not None and found.due_ms < end_ms:
            assert found.due_ms > self.now_ms, "what is due now is done now"
            self._pass_until(found.due_ms)
            found = self._look(step.capacity)
        self._pass_until(end_ms)

    def _look(self, capacity: float) -> Placement:
        given_ = demand(capacity, self.mix, self.rate)
        choices = choices_of(given_, self.current, NOTHING)
        optimum = cheapest(choices, needed_of(given_, self.current, NOTHING))
        found = place(given_, self.current, NOTHING, self.regret, self.now_ms)
        best = optimum.replicas if optimum else found.replicas
        self._was_due(place(given_, self.current, NOTHING, Regret(), self.now_ms), found, best)
        extra = found.cost - running_cost(choices, best)
        if extra > 0:
            self.allowed = max(self.allowed, self.rate * self._switching(best, found.replicas))
        else:
            self.run_up = self.allowed = 0
        self.last_extra = extra
        self.current, self.regret = found.replicas, found.regret
        self.seen.append(found)
        return found

    def _was_due(self, patient: Placement, found: Placement, best: tuple[int, ...]) -> None:
        """Where patience would keep a dearer mix, only what was run up ends it."""
        if patient.cost > patient.optimal_cost and found.replicas == best:
            costs = [each.cost * each.startup_ms for each in self.mix]
            wanted, kept = (
                starting_cost(costs, self.current, mix) for mix in (best, patient.replicas)
            )
            assert self.run_up * 100 >= self.rate * (wanted - kept)

    def _switching(self, best: tuple[int, ...], kept: tuple[int, ...]) -> int:
        costs = [each.cost * each.startup_ms for each in self.mix]
        now = starting_cost(costs, self.current, best) - starting_cost(costs, self.current, kept)
        return max(now, starting_cost(costs, kept, best))

    def _pass_until(self, at_ms: int) -> None:
        self.run_up += self.last_extra * (at_ms - self.now_ms)
        self.now_ms = at_ms
        assert self.run_up * 100 <= self.allowed + 100 * self.last_extra


@settings(max_examples=300)
@given(options, steps, st.sampled_from([0, 1, 50, 100, 200, 400]))
def test_a_detour_costs_no_more_than_its_share_of_switching(
    mix: tuple[Option, ...], story: list[Step], rate: int
) -> None:
    """A timer is as exact as a millisecond; so is the bound."""
    detour = Detour(without_rooms(mix), rate)
    for step in story:
        detour.follow(step)


@given(options, steps)
def test_a_rate_of_0_is_always_optimal(mix: tuple[Option, ...], story: list[Step]) -> None:
    detour = Detour(without_rooms(mix), 0)
    for step in story:
        detour.follow(step)
    assert all(found.cost == found.optimal_cost for found in detour.seen)
    assert all(found.due_ms is None for found in detour.seen)


@given(options, st.floats(0, 20, width=16), st.sampled_from([0, 100, 200]), st.data())
def test_under_one_demand_the_mix_changes_once_and_then_stays(
    mix: tuple[Option, ...], capacity: float, rate: int, data: st.DataObject
) -> None:
    """Hysteresis: no two mixes take turns."""
    detour = Detour(without_rooms(mix), rate)
    start = [data.draw(st.integers(each.min_replicas, each.max_replicas)) for each in mix]
    detour.current = tuple(start)
    detour.follow(Step(capacity, 10**9))
    detour.follow(Step(capacity, 10**9))
    chosen = [found.replicas for found in detour.seen]
    changes = sum(one != other for one, other in pairwise(chosen))
    assert changes <= 1
    assert detour.seen[-1].cost == detour.seen[-1].optimal_cost or detour.seen[-1].due_ms


def sure_units(mix: tuple[Option, ...], replicas: tuple[int, ...]) -> float:
    """What surely serves: neither probes nor replicas that cannot be scheduled."""
    return sum(
        each.capacity * min(count, count if each.schedulable is None else each.schedulable)
        for each, count in zip(mix, replicas, strict=True)
    )


def most_units(mix: tuple[Option, ...]) -> float:
    return sure_units(mix, tuple(each.max_replicas for each in mix))


@settings(max_examples=400)
@given(options, st.floats(0, 20, width=16), st.sampled_from([0, 100, 200]), st.data())
def test_what_surely_can_be_scheduled_serves_the_demand_at_once(
    mix: tuple[Option, ...], capacity: float, rate: int, data: st.DataObject
) -> None:
    current = tuple(data.draw(st.integers(0, 8)) for _ in mix)
    extra = data.draw(st.integers(0, 50))
    regret = Regret(accrued=data.draw(st.integers(0, 10**6)), extra=extra, since_ms=T0)
    found = place(demand(capacity, mix, rate), current, NOTHING, regret, T0 + 5_000)
    for each, count in zip(mix, found.replicas, strict=True):
        assert each.min_replicas <= count <= each.max_replicas
        if each.schedulable is not None:
            assert count <= max(each.min_replicas, each.schedulable + each.probe)
    assert sure_units(mix, found.replicas) >= min(capacity, most_units(mix))
