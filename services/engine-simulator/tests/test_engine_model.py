"""The engine model: what holds for every load, and the behaviour of known small loads."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inferbus_engine_simulator.core import Engine
from inferbus_engine_simulator.policy_events import (
    Aborted,
    Admitted,
    Emitted,
    Event,
    Finished,
    Preempted,
    Prefilled,
    Request,
    Stepped,
)
from inferbus_engine_simulator.policy_limits import EngineLimits
from inferbus_engine_simulator.policy_timing import StepTiming
from inferbus_engine_simulator.policy_tokens import output_token

TIMING = StepTiming(overhead_us=700, weights_us=3000, context_token_us=3, compute_token_us=90)


def request(name: str, prompt_tokens: int, output_tokens: int, first_token: int = 0) -> Request:
    """A request whose prompt differs from others with another `first_token`."""
    prompt = tuple(range(first_token, first_token + prompt_tokens))
    return Request(name, prompt, output_tokens)


def run_to_end(engine: Engine) -> list[Event]:
    """All events until the engine is idle."""
    events: list[Event] = []
    while (next_ms := engine.next_event_ms()) is not None:
        events += engine.advance(next_ms)
    return events


def finish_times(events: list[Event]) -> dict[str, int]:
    return {event.request_id: event.at_us for event in events if isinstance(event, Finished)}


Load = list[tuple[int, Request]]


@st.composite
def limits(draw: st.DrawFn) -> EngineLimits:
    seqs = draw(st.integers(1, 6))
    return EngineLimits(
        block_size_tokens=draw(st.sampled_from([2, 4, 8])),
        blocks=draw(st.integers(16, 40)),
        max_num_seqs=seqs,
        max_num_batched_tokens=draw(st.integers(seqs, 40)),
        prefix_caching=draw(st.booleans()),
    )


_TRANSFERS = [(0, 0), (0, 0), (20, 0), (20, 2_000), (8, 45_000)]
"""(tokens whose blocks come from elsewhere, microseconds that they take)."""


@st.composite
def loads(draw: st.DrawFn, most: int = 12, with_transfers: bool = True) -> Load:
    """Requests of at most 32 tokens, some with common prefixes, at times that never decrease."""
    load: Load = []
    now_ms = 0
    for index in range(draw(st.integers(1, most))):
        now_ms += draw(st.integers(0, 30))
        prompt = draw(st.integers(1, 20))
        output = draw(st.integers(0, 12))
        start = draw(st.sampled_from([0, 0, 1000, 2000]))
        transferred, transfer_us = draw(
            st.sampled_from(_TRANSFERS if with_transfers else _TRANSFERS[:1])
        )
        made = request(f"r{index}", prompt, output, start)
        load.append(
            (now_ms, made._replace(transferred_tokens=transferred, transfer_us=transfer_us))
        )
    return load


def play(load: Load, shape: EngineLimits, startup_ms: int = 0) -> list[Event]:
    engine = Engine(shape, TIMING, 0, startup_ms)
    events: list[Event] = []
    for at_ms, each in load:
        events += engine.advance(at_ms)
        engine.submit(each, at_ms)
    return events + run_to_end(engine)


@settings(deadline=None)
@given(loads(), limits())
def test_every_request_finishes_exactly_once_with_all_its_tokens(
    load: Load, shape: EngineLimits
) -> None:
    events = play(load, shape)

    ended = Counter(event.request_id for event in events if isinstance(event, Finished))
    assert ended == {each.request_id: 1 for _, each in load}
    emitted = Counter(event.request_id for event in events if isinstance(event, Emitted))
    assert emitted == {r.request_id: r.output_tokens for _, r in load if r.output_tokens}
    prefilled = Counter(event.request_id for event in events if isinstance(event, Prefilled))
    assert prefilled == ended


@settings(deadline=None)
@given(loads(), limits(), st.data())
def test_an_aborted_request_ends_once_and_never_speaks_again(
    load: Load, shape: EngineLimits, data: st.DataObject
) -> None:
    engine = Engine(shape, TIMING, 0)
    events: list[Event] = []
    for at_ms, each in load:
        engine.submit(each, at_ms)
        if data.draw(st.booleans()):
            victim = data.draw(st.sampled_from([r.request_id for _, r in load]))
            engine.abort(victim, at_ms)
        events += engine.advance(at_ms)
    events += run_to_end(engine)

    ends = [e.request_id for e in events if isinstance(e, Finished | Aborted)]
    assert Counter(ends) == {each.request_id: 1 for _, each in load}
    aborted_at = {e.request_id: i for i, e in enumerate(events) if isinstance(e, Aborted)}
    for index, event in enumerate(events):
        if not isinstance(event, Stepped) and event.request_id in aborted_at:
            assert index <= aborted_at[event.request_id]
    assert engine.blocks.used == 0


@settings(deadline=None)
@given(loads(), limits())
def test_blocks_never_exceed_the_capacity_and_all_come_back(
    load: Load, shape: EngineLimits
) -> None:
    engine = Engine(shape, TIMING, 0)
    for at_ms, each in load:
        engine.submit(each, at_ms)
        assert engine.blocks.used + engine.blocks.idle <= shape.blocks
    while (next_ms := engine.next_event_ms()) is not None:
        engine.advance(next_ms)
        assert engine.blocks.used + engine.blocks.idle <= shape.blocks
        assert len(engine.running) <= shape.max_num_seqs
    assert engine.blocks.used == 0


@settings(deadline=None)
@given(loads(), limits())
def test_first_admissions_are_first_in_first_out(load: Load, shape: EngineLimits) -> None:
    admitted = [e.request_id for e in play(load, shape) if isinstance(e, Admitted)]

    local = [each.request_id for _, each in load if not each.transfer_us]
    first_time = [name for name in dict.fromkeys(admitted) if name in local]
    assert first_time == local


@settings(deadline=None)
@given(loads(), limits())
def test_no_request_is_admitted_in_a_step_that_took_blocks_from_another(
    load: Load, shape: EngineLimits
) -> None:
    events = play(load, shape)
    preempted_at = {event.at_us for event in events if isinstance(event, Preempted)}

    assert not preempted_at & {e.at_us for e in events if isinstance(e, Admitted)}


@settings(deadline=None)
@given(loads(), limits())
def test_a_step_stays_within_the_token_budget(load: Load, shape: EngineLimits) -> None:
    for event in play(load, shape):
        if isinstance(event, Stepped):
            assert 0 < event.prefill_tokens + event.decode_tokens <= shape.max_num_batched_tokens


@settings(deadline=None)
@given(loads(), limits())
def test_time_never_runs_backwards(load: Load, shape: EngineLimits) -> None:
    times = [event.at_us for event in play(load, shape)]

    assert times == sorted(times)


@settings(deadline=None)
@given(loads(), limits())
def test_the_same_load_gives_the_same_events(load: Load, shape: EngineLimits) -> None:
    assert play(load, shape) == play(load, shape)


@settings(deadline=None)
@given(loads(), limits(), st.integers(1, 50))
def test_events_do_not_depend_on_when_the_engine_is_asked(
    load: Load, shape: EngineLimits, every_ms: int
) -> None:
    asked_rarely = Engine(shape, TIMING, 0)
    asked_often = Engine(shape, TIMING, 0)
    often: list[Event] = []
    for at_ms, each in load:
        asked_rarely.submit(each, at_ms)
        asked_often.submit(each, at_ms)
    rarely = asked_rarely.advance(1_000_000)
    now_ms = load[-1][0]
    while asked_often.next_event_ms() is not None:
        often += asked_often.advance(now_ms)
        now_ms += every_ms

    assert often == rarely


@settings(deadline=None)
@given(loads(most=8, with_transfers=False), limits(), st.integers(1, 20), st.integers(0, 12))
def test_a_later_request_never_makes_an_earlier_one_finish_sooner(
    load: Load, shape: EngineLimits, prompt: int, output: int
) -> None:
    roomy = shape._replace(prefix_caching=False, blocks=400)
    at_ms = load[-1][0]

    alone = finish_times(play(load, roomy))
    together = finish_times(play([*load, (at_ms, request("late", prompt, output))], roomy))

    assert all(together[name] >= alone[name] for name in alone)


@settings(deadline=None)
@given(loads(), limits(), st.integers(1, 5000))
def test_nothing_is_computed_before_the_start_up_is_over(
    load: Load, shape: EngineLimits, startup_ms: int
) -> None:
    for event in play(load, shape, startup_ms):
        assert event.at_us >= startup_ms * 1000


def test_a_decode_step_takes_longer_with_a_longer_context_and_a_larger_batch() -> None:
    one = TIMING.step_us(1, 100)

    assert TIMING.step_us(1, 5000) > one
    assert TIMING.step_us(500, 100) > one


def test_a_long_prompt_is_computed_in_chunks_between_the_tokens_of_others() -> None:
    engine = Engine(EngineLimits(16, 100, 4, 64), TIMING, 0)
    engine.submit(request("short", 8, 40), 0)
    engine.advance(10)
    engine.submit(request("long", 600, 1, first_token=5000), 10)
    events = run_to_end(engine)

    admitted_us = next(
        e.at_us for e in events if isinstance(e, Admitted) and e.request_id == "long"
    )
    first_us = next(e.at_us for e in events if isinstance(e, Emitted) and e.request_id == "long")
    between = [
        e
        for e in events
        if isinstance(e, Emitted) and e.request_id == "short" and admitted_us < e.at_us < first_us
    ]
    assert len(between) == 600 // 63
    assert all(e.prefill_tokens <= 64 for e in events if isinstance(e, Stepped))


def test_a_prompt_that_was_served_before_is_found_in_the_cache() -> None:
    engine = Engine(EngineLimits(block_size_tokens=4, blocks=256), TIMING, 0)
    engine.submit(request("first", 320, 2), 0)
    cold = run_to_end(engine)
    engine.submit(request("again", 320, 2), 10_000)
    warm = run_to_end(engine)

    (admission,) = [e for e in warm if isinstance(e, Admitted)]
    assert (admission.queried_tokens, admission.cached_tokens) == (320, 316)
    first_token = [e.since_us for e in cold + warm if isinstance(e, Emitted) and not e.position]
    assert first_token[1] < first_token[0]


def test_what_was_generated_is_found_when_the_conversation_goes_on() -> None:
    engine = Engine(EngineLimits(block_size_tokens=4, blocks=64), TIMING, 0)
    question = Request("first", tuple(range(8)), 9, output_seed=7)
    engine.submit(question, 0)
    run_to_end(engine)
    answer = tuple(output_token(7, index) for index in range(8))
    engine.submit(Request("second", (*range(8), *answer, 1, 2), 1), 5_000)
    (admission,) = [e for e in run_to_end(engine) if isinstance(e, Admitted)]

    assert admission.cached_tokens == 16


def test_adapters_do_not_share_cached_blocks() -> None:
    engine = Engine(EngineLimits(block_size_tokens=4, blocks=64), TIMING, 0)
    engine.submit(request("base", 32, 1), 0)
    run_to_end(engine)
    engine.submit(request("tuned", 32, 1)._replace(adapter="sql"), 5_000)
    (admission,) = [e for e in run_to_end(engine) if isinstance(e, Admitted)]

    assert admission.cached_tokens == 0


def test_when_blocks_run_out_the_last_admitted_request_is_computed_again() -> None:
    shape = EngineLimits(4, 8, 4, 32, prefix_caching=False)
    engine = Engine(shape, TIMING, 0)
    engine.submit(request("old", 8, 16), 0)
    engine.submit(request("new", 8, 16, first_token=100), 1)
    events = run_to_end(engine)

    preempted = {e.request_id for e in events if isinstance(e, Preempted)}
    assert preempted == {"new"}
    assert finish_times(events)["old"] < finish_times(events)["new"]


def test_a_preempted_request_comes_back_before_those_that_came_later() -> None:
    shape = EngineLimits(4, 10, 2, 32, prefix_caching=False)
    engine = Engine(shape, TIMING, 0)
    for index in range(4):
        engine.submit(request(f"r{index}", 8, 16, first_token=100 * index), index)
    events = run_to_end(engine)

    admitted = [e.request_id for e in events if isinstance(e, Admitted)]
    assert next(e.request_id for e in events if isinstance(e, Preempted)) == "r1"
    assert admitted[:3] == ["r0", "r1", "r1"]
    assert [e.queried_tokens for e in events if isinstance(e, Admitted)][1:3] == [8, 0]


def test_a_prompt_computed_elsewhere_needs_no_prefill_here() -> None:
    engine = Engine(EngineLimits(), TIMING, 0)
    engine.submit(request("remote", 1000, 2)._replace(transferred_tokens=1000), 0)
    events = run_to_end(engine)

    computed = sum(e.prefill_tokens for e in events if isinstance(e, Stepped))
    assert computed == 1
    (prefilled,) = [e for e in events if isinstance(e, Prefilled)]
    assert prefilled.transferred_tokens == 1000


def test_a_request_that_can_never_fit_is_refused() -> None:
    engine = Engine(EngineLimits(block_size_tokens=4, blocks=4), TIMING, 0)

    with pytest.raises(ValueError, match="longer than the cache"):
        engine.submit(request("big", 10, 7), 0)
    with pytest.raises(ValueError, match="at least one prompt token"):
        engine.submit(Request("empty", (), 1), 0)
    assert engine.next_event_ms() is None


def test_a_slowed_down_engine_takes_as_many_times_as_long() -> None:
    engine = Engine(EngineLimits(), TIMING, 0)
    engine.slowdown = 3.0
    engine.submit(request("a", 8, 5), 0)
    slow = finish_times(run_to_end(engine))["a"]

    assert slow == 3 * finish_times(play([(0, request("a", 8, 5))], EngineLimits()))["a"]


def test_blocks_on_their_way_are_waited_for_and_overtaken() -> None:
    engine = Engine(EngineLimits(16, 100, 1, 64), TIMING, 0)
    remote = request("remote", 32, 1)._replace(transferred_tokens=32, transfer_us=50_000)
    engine.submit(remote, 0)
    engine.submit(request("local", 16, 1), 0)
    assert [one.request_id for one in engine.waiting] == ["remote"]
    assert [one.request_id for one in engine.running] == ["local"]

    finished = finish_times(run_to_end(engine))
    alone = Engine(EngineLimits(16, 100, 1, 64), TIMING, 0)
    alone.submit(request("one", 1, 1), 0)
    one_token_us = finish_times(run_to_end(alone))["one"]
    assert finished["local"] < 50_000
    assert 50_000 + one_token_us <= finished["remote"] <= 50_000 + one_token_us + 3 * 32


def test_a_request_whose_blocks_are_on_their_way_can_be_aborted() -> None:
    engine = Engine(EngineLimits(), TIMING, 0)
    for name in ("first", "second"):
        engine.submit(request(name, 8, 1)._replace(transferred_tokens=8, transfer_us=5_000), 0)
    assert engine.abort("first", 1)

    events = run_to_end(engine)
    assert [event.request_id for event in events if isinstance(event, Aborted)] == ["first"]
    assert list(finish_times(events)) == ["second"]
    assert engine.next_event_ms() is None
