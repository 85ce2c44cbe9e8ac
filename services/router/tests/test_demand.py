"""What is told about traffic: seconds, tens of seconds, and what waits."""

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from inferbus_contracts.events.demand import DemandObserved, ModelDemand
from inferbus_contracts.keys import ObjectKey
from inferbus_router.demand import DemandAccumulator, DemandSums, TargetDemand
from inferbus_router.policy_hold import HoldQueue, Waiting

T0 = 1_700_000_000_000
TARGET = ObjectKey("ModelServing", "ns", "ms")
OTHER = ObjectKey("ModelServing", "ns", "other", "decode")


def accumulator(now_ms: int = T0) -> DemandAccumulator:
    return DemandAccumulator("router-1", now_ms)


def only_model(demand: TargetDemand) -> ModelDemand:
    (model,) = demand.data.models
    return model


def test_a_second_is_told_when_it_is_over() -> None:
    demand = accumulator()
    cell = demand.cell(TARGET, "m")
    cell.arrivals += 2
    cell.prompt_tokens += 30

    assert demand.flush(T0 + 999) == []
    (second,) = demand.flush(T0 + 1000)

    assert second.target == TARGET
    assert (second.data.router, second.data.interval_start_ms) == ("router-1", T0)
    assert second.data.interval_ms == 1000
    assert (only_model(second).arrivals, only_model(second).prompt_tokens) == (2, 30)
    assert demand.flush(T0 + 5000) == []


def test_seconds_begin_with_whole_seconds() -> None:
    demand = accumulator(T0 + 700)
    demand.cell(TARGET, "m").arrivals += 1

    (second,) = demand.flush(T0 + 1001)
    assert second.data.interval_start_ms == T0


def test_what_comes_after_the_end_belongs_to_the_next_second() -> None:
    demand = accumulator()
    cell = demand.cell(TARGET, "m")
    cell.arrivals += 1
    demand.advance(T0 + 1000)
    cell.arrivals += 5

    told = [only_model(second).arrivals for second in demand.flush(T0 + 2000)]
    assert told == [1, 5]


def test_models_and_targets_are_told_apart_and_in_order() -> None:
    demand = accumulator()
    for target, model in ((TARGET, "b"), (TARGET, "a"), (OTHER, "a")):
        demand.cell(target, model).arrivals += 1

    told = [(each.target, [m.model for m in each.data.models]) for each in demand.flush(T0 + 1000)]
    assert told == [(TARGET, ["a", "b"]), (OTHER, ["a"])]


def test_a_long_request_is_told_every_second_and_once_more_when_it_has_ended() -> None:
    demand = accumulator()
    cell = demand.cell(TARGET, "m")
    cell.in_flight += 1
    levels = []
    for second in range(1, 4):
        (told,) = demand.flush(T0 + second * 1000)
        levels.append(only_model(told).in_flight)
    cell.in_flight -= 1
    (told,) = demand.flush(T0 + 4000)
    levels.append(only_model(told).in_flight)

    assert levels == [1, 1, 1, 0]
    assert demand.flush(T0 + 5000) == []


def test_a_jump_of_the_clock_is_told_as_one_second() -> None:
    demand = accumulator()
    demand.cell(TARGET, "m").queued += 1
    told = demand.flush(T0 + 3_600_000)

    starts = [each.data.interval_start_ms for each in told]
    assert starts == [T0, T0 + 3_599_000]


def test_time_that_runs_backwards_loses_nothing() -> None:
    demand = accumulator()
    cell = demand.cell(TARGET, "m")
    cell.arrivals += 1
    demand.advance(T0 - 60_000)
    cell.arrivals += 1

    (second,) = demand.flush(T0 + 1000)
    assert only_model(second).arrivals == 2


def test_cells_in_use_are_kept_when_idle_ones_are_forgotten() -> None:
    demand = accumulator()
    running, idle = demand.cell(TARGET, "m"), demand.cell(OTHER, "m")
    running.in_flight += 1
    demand.forget_idle()

    assert demand.cell(TARGET, "m") is running
    assert demand.cell(OTHER, "m") is not idle


@given(
    st.lists(
        st.tuples(st.integers(0, 2500), st.sampled_from(["m", "n"]), st.booleans()), max_size=40
    )
)
def test_everything_is_told_exactly_once(steps: list[tuple[int, str, bool]]) -> None:
    demand, sums = accumulator(), DemandSums("router-1")
    now_ms = T0
    seconds, tens = [], []
    for wait_ms, model, flush in steps:
        now_ms += wait_ms
        demand.advance(now_ms)
        demand.cell(TARGET, model).arrivals += 1
        if flush:
            taken = demand.flush(now_ms)
            seconds += taken
            sums.add(taken)
            tens += sums.flush(now_ms)
    last = demand.flush(now_ms + 1000)
    seconds += last
    sums.add(last)
    tens += sums.flush(now_ms + 20_000)

    assert arrivals(seconds) == arrivals(tens) == len(steps)
    starts = [each.data.interval_start_ms for each in seconds]
    assert starts == sorted(set(starts))
    assert all(each.data.interval_start_ms % 10_000 == 0 for each in tens)


@dataclass
class HasData:
    data: DemandObserved


def arrivals(told: list[TargetDemand] | list[HasData]) -> int:
    return sum(model.arrivals for each in told for model in each.data.models)


def test_ten_seconds_add_counts_and_take_the_last_level() -> None:
    demand, sums = accumulator(T0), DemandSums("router-1")
    cell = demand.cell(TARGET, "m")
    for second in range(3):
        cell.arrivals += 1
        cell.errors += 2
        cell.output_tokens += 10
        cell.ttft_buckets[2] += 1
        cell.duration_buckets[-1] += 1
        cell.in_flight = 3 - second
        sums.add(demand.flush(T0 + (second + 1) * 1000))

    assert sums.flush(T0 + 9_999) == []
    (total,) = sums.flush(T0 + 10_000)
    (model,) = total.data.models

    assert (total.data.interval_start_ms, total.data.interval_ms) == (T0, 10_000)
    assert (model.arrivals, model.errors, model.output_tokens, model.in_flight) == (3, 6, 30, 1)
    assert model.ttft_ms_buckets[2] == model.duration_ms_buckets[-1] == 3
    assert sums.flush(T0 + 30_000) == []


# What waits.


def waiting(since_ms: int = T0, body_bytes: int = 10, model: str = "m") -> Waiting:
    return Waiting(TARGET, model, since_ms, body_bytes)


def test_as_many_wait_as_may() -> None:
    hold: HoldQueue[str] = HoldQueue(most_requests=2, most_bytes=100)

    assert [hold.admit(item, waiting()) for item in "abc"] == [True, True, False]
    hold.leave("a")
    hold.leave("a")
    assert hold.admit("c", waiting())
    assert hold.items() == ["b", "c"]


def test_their_bodies_are_bounded_together() -> None:
    hold: HoldQueue[str] = HoldQueue(most_requests=10, most_bytes=100)

    assert hold.admit("a", waiting(body_bytes=60))
    assert not hold.admit("b", waiting(body_bytes=41))
    assert hold.admit("c", waiting(body_bytes=40))
    hold.leave("a")
    assert hold.admit("b", waiting(body_bytes=60))


def test_what_waits_is_told_by_target_and_model_with_the_oldest() -> None:
    hold: HoldQueue[str] = HoldQueue(10, 1000)
    hold.admit("a", waiting(T0 + 5))
    hold.admit("b", waiting(T0 + 3))
    hold.admit("c", waiting(T0 + 9, model="n"))
    told = [(each.target, each.data) for each in hold.pending("router-1")]

    assert [(key, data.model, data.waiting, data.since_ms) for key, data in told] == [
        (TARGET, "m", 2, T0 + 3),
        (TARGET, "n", 1, T0 + 9),
    ]
    assert {data.router for _, data in told} == {"router-1"}
