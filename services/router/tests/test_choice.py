"""The choice of an endpoint, and which endpoints are left alone for a while."""

from collections import Counter
from collections.abc import Collection, Sequence

from hypothesis import given
from hypothesis import strategies as st

from inferbus_router.policy_ask import Ask
from inferbus_router.policy_choice import ALIKE_TOKENS, MOST_LOOKED_AT, predicted_ttft_ms
from inferbus_router.policy_choice import choose as choose_for
from inferbus_router.policy_ejection import (
    BASE_EJECTION_MS,
    EJECT_AFTER_FAILURES,
    MAX_EJECTION_MS,
    Health,
)
from inferbus_router.policy_load import Backlog, EndpointLoad
from inferbus_router.policy_prefixes import PrefixIndex
from inferbus_router.policy_speed import DEFAULT_MS_PER_TOKEN, FleetSpeed

LOADS = st.lists(st.tuples(st.integers(0, 50), st.integers(0, 5000)), min_size=1, max_size=40)


ASK = Ask("m", 100)


def choose(
    loads: Sequence[EndpointLoad], start: int, tried: Collection[EndpointLoad], now_ms: int
) -> EndpointLoad | None:
    return choose_for(loads, ASK, tried, now_ms, start)


def loads_of(*work: tuple[int, int]) -> list[EndpointLoad]:
    """Endpoints with that many running requests, and one with a prompt that waits."""
    loads = [EndpointLoad(f"pod-{index}") for index in range(len(work))]
    for load, (running, waiting) in zip(loads, work, strict=True):
        for _ in range(running):
            load.first_token(load.started(Ask("m", 0), 0), 0)
        if waiting:
            load.started(Ask("m", waiting), 0)
    return loads


def ejected(load: EndpointLoad, now_ms: int = 0) -> EndpointLoad:
    for _ in range(EJECT_AFTER_FAILURES):
        dispatch = load.started(ASK, now_ms)
        load.health.failed(now_ms)
        load.ended(dispatch)
    return load


def test_no_candidates_no_endpoint() -> None:
    assert choose([], 0, (), 0) is None


@given(LOADS, st.integers(0, 1000))
def test_the_least_loaded_of_a_small_fleet_is_chosen(
    work: list[tuple[int, int]], start: int
) -> None:
    loads = loads_of(*work[:MOST_LOOKED_AT])
    chosen = choose(loads, start, (), 0)

    assert chosen is not None
    least_ms = min(predicted_ttft_ms(each, ASK, 0) for each in loads)
    assert predicted_ttft_ms(chosen, ASK, 0) <= least_ms + ALIKE_TOKENS * DEFAULT_MS_PER_TOKEN


@given(LOADS, st.integers(0, 1000), st.data())
def test_an_endpoint_that_was_tried_is_taken_only_when_no_other_is_left(
    work: list[tuple[int, int]], start: int, data: st.DataObject
) -> None:
    loads = loads_of(*work)
    tried = tuple(data.draw(st.lists(st.sampled_from(loads), unique=True)))
    chosen = choose(loads, start, tried, 0)

    assert chosen in loads
    assert (chosen in tried) == (len(tried) == len(loads))


def test_a_long_prompt_weighs_more_than_several_running_requests() -> None:
    busy, prefilling = loads_of((10, 0), (1, 20_000))

    assert choose([prefilling, busy], 0, (), 0) is busy


def test_running_requests_count_though_their_prompts_are_processed() -> None:
    load, idle = loads_of((2, 0), (0, 0))
    before_ms = predicted_ttft_ms(load, ASK, 0)
    dispatch = load.started(Ask("m", 500), 0)
    load.first_token(dispatch, 60)
    assert load.waiting_prompt_tokens == 0
    assert predicted_ttft_ms(load, ASK, 60) > before_ms
    assert choose([load, idle], 0, (), 60) is idle
    load.ended(dispatch)
    assert predicted_ttft_ms(load, ASK, 60) == before_ms


def test_an_idle_fleet_is_used_in_turn() -> None:
    loads = loads_of(*[(0, 0)] * 5)
    chosen = Counter(choose(loads, turn, (), 0) for turn in range(50))

    assert set(chosen.values()) == {10}


def test_every_endpoint_of_a_large_fleet_is_looked_at_sooner_or_later() -> None:
    loads = loads_of(*[(3, 0)] * 150, (0, 0), *[(3, 0)] * 49)

    assert any(choose(loads, turn, (), 0) is loads[150] for turn in range(200))


def test_rt_16_an_endpoint_that_keeps_failing_is_left_alone() -> None:
    good, bad = loads_of((5, 0), (0, 0))
    ejected(bad)

    assert all(choose([good, bad], turn, (), 1) is good for turn in range(4))


def test_a_fleet_that_is_ejected_as_a_whole_is_still_used() -> None:
    loads = [ejected(load) for load in loads_of((3, 0), (0, 0))]

    assert choose(loads, 0, (), 1) is loads[1]
    assert choose(loads[:1], 0, (), 1) is loads[0]


def test_failures_in_between_successes_eject_nobody() -> None:
    health = Health()
    for _ in range(20):
        health.failed(0)
        health.failed(0)
        health.succeeded()

    assert health.admits(0)


def test_an_ejected_endpoint_gets_one_probe_when_its_time_is_over() -> None:
    (load,) = loads_of((0, 0))
    ejected(load, now_ms=1000)

    assert not load.health.admits(1000 + BASE_EJECTION_MS - 1)
    assert load.health.admits(1000 + BASE_EJECTION_MS)
    load.started(ASK, 0)
    assert not load.health.admits(1000 + BASE_EJECTION_MS)


def test_a_probe_that_succeeds_brings_the_endpoint_back() -> None:
    (load,) = loads_of((0, 0))
    ejected(load)
    load.started(ASK, 0)
    load.health.succeeded()

    assert load.health.admits(0)
    ejected(load)
    assert load.health.admits(BASE_EJECTION_MS), "the next ejection starts from the base again"


def test_a_probe_that_is_abandoned_makes_room_for_another() -> None:
    (load,) = loads_of((0, 0))
    ejected(load)
    load.started(ASK, 0)
    load.health.abandoned()

    assert load.health.admits(BASE_EJECTION_MS)


def test_each_failed_probe_doubles_the_ejection_up_to_a_bound() -> None:
    (load,) = loads_of((0, 0))
    ejected(load)
    now_ms, lengths = 0, []
    for _ in range(10):
        lengths.append(load.health.ejected_until_ms - now_ms)
        now_ms = load.health.ejected_until_ms
        load.started(ASK, now_ms)
        load.health.failed(now_ms)

    assert lengths[:4] == [BASE_EJECTION_MS * factor for factor in (1, 2, 4, 8)]
    assert lengths[-1] == MAX_EJECTION_MS


def test_requests_that_were_running_do_not_prolong_an_ejection() -> None:
    (load,) = loads_of((0, 0))
    ejected(load)
    until_ms = load.health.ejected_until_ms
    load.health.failed(until_ms - 1)

    assert load.health.ejected_until_ms == until_ms


def holding(loads: Sequence[EndpointLoad], *holders: int, blocks: int = 20) -> Ask:
    """An ask of 100 tokens a block, with those endpoints that hold the whole prompt."""
    index: PrefixIndex[EndpointLoad] = PrefixIndex()
    for each in loads:
        each.prefixes = index
    for holder in holders:
        index.sent(loads[holder], range(blocks))
    ask = Ask.of_blocks("m", 100 * blocks, range(blocks), range(100, 100_000, 100))
    ask.look_up(index)
    return ask


def test_rt_09_who_holds_the_prompts_beginning_is_preferred() -> None:
    loads = loads_of(*[(0, 0)] * 8)
    ask = holding(loads, 5)

    assert {choose_for(loads, ask, (), 0, turn) for turn in range(8)} == {loads[5]}


def test_rt_13_a_prefix_is_worth_no_more_than_the_time_it_saves() -> None:
    loads = loads_of((0, 0), (0, 5000))
    ask = holding(loads, 1, blocks=20)

    assert choose_for(loads, ask, (), 0) is loads[0]


def test_rt_13_one_slow_endpoint_makes_no_difference_between_the_others() -> None:
    loads = loads_of((0, 0), (0, 2000), (0, 500_000))

    assert {choose(loads, turn, (), 0) for turn in range(6)} == {loads[0]}


def test_rt_13_a_slow_endpoint_gets_its_share_and_no_more() -> None:
    loads = loads_of((0, 0), (0, 0))
    fleet = FleetSpeed()
    for load in loads:
        load.fleet_speed = fleet
    for _ in range(60):
        loads[0].slowness.learn(1000, 125, fleet)
        loads[1].slowness.learn(1000, 1000, fleet)
    counts: Counter[str] = Counter()
    for turn in range(40):
        chosen = choose(loads, turn, (), 0)
        assert chosen is not None
        chosen.started(Ask("m", 2000), 0)
        counts[chosen.pod] += 1

    assert 2 <= counts["pod-1"] <= 12


def test_rt_14_tokens_are_counted_and_not_requests() -> None:
    loads = loads_of((0, 0), (0, 0))
    loads[0].started(Ask("m", 100_000), 0)
    for _ in range(5):
        loads[1].started(Ask("m", 10), 0)

    assert choose(loads, 0, (), 0) is loads[1]


def test_rt_15_what_was_sent_counts_at_once() -> None:
    loads = loads_of(*[(0, 0)] * 8)
    counts: Counter[str] = Counter()
    for turn in range(64):
        chosen = choose(loads, turn // 32, (), 0)
        assert chosen is not None
        chosen.started(Ask("m", 1000), 0)
        counts[chosen.pod] += 1

    assert set(counts.values()) == {8}, "within one millisecond, before any engine could tell"


def test_rt_23_equals_are_used_in_turn() -> None:
    loads = loads_of(*[(0, 0)] * 8)
    counts = Counter(choose(loads, turn, (), 0) for turn in range(80))

    assert set(counts.values()) == {10}


def test_rt_27_what_other_routers_have_there_counts() -> None:
    loads = loads_of((0, 0), (0, 0))
    loads[0].peers = Backlog(3, 9000, 3000, 0, 0)

    assert {choose(loads, turn, (), 0) for turn in range(4)} == {loads[1]}
    loads[0].peers = None
    assert {choose(loads, turn, (), 0) for turn in range(4)} == set(loads)


def test_who_holds_a_prompt_is_found_in_a_large_fleet() -> None:
    loads = loads_of(*[(1, 0)] * 1000)
    ask = holding(loads, 700)

    assert {choose_for(loads, ask, (), 0, turn) for turn in range(40)} == {loads[700]}


def test_a_beginning_that_a_large_fleet_shares_makes_nobody_special() -> None:
    loads = loads_of(*[(0, 0)] * 200)
    ask = holding(loads, *range(200))
    chosen = {choose_for(loads, ask, (), 0, turn) for turn in range(13)}

    assert len(chosen) == 13


def test_an_owner_elsewhere_is_not_taken() -> None:
    loads = loads_of(*[(1, 0)] * 40)
    ask = holding(loads, 39)

    assert choose_for(loads[:30], ask, (), 0, members=frozenset(loads[:30])) in loads[:30]


def test_when_those_looked_at_are_ejected_others_are_found() -> None:
    loads = loads_of(*[(0, 0)] * 100)
    for load in loads[:90]:
        ejected(load)

    assert choose(loads, 0, (), 1) in loads[90:]


def test_a_newcomer_is_not_flooded() -> None:
    old, new = loads_of((0, 0), (0, 0))
    new.ready_since(0)
    counts: Counter[str] = Counter()
    for turn in range(50):
        chosen = choose([new, old], turn, (), 0)
        assert chosen is not None
        chosen.started(Ask("m", 1000), 0)
        counts[chosen.pod] += 1

    assert 5 <= counts[new.pod] <= 15, "about a fifth of what it would take later"
