"""How long a new prompt would wait at an endpoint."""

from hypothesis import given
from hypothesis import strategies as st

from inferbus_router.policy_ask import Ask
from inferbus_router.policy_load import Dispatch, EndpointLoad
from inferbus_router.policy_prefixes import PrefixIndex
from inferbus_router.policy_speed import DEFAULT_MS_PER_TOKEN

ENDS = range(100, 100_000, 100)
WORDS = 8_000
"""Tokens that take a second at first."""


def ask(tokens: int, is_stream: bool = True) -> Ask:
    made = Ask("m", tokens)
    made.is_stream = is_stream
    return made


def wait_ms(load: EndpointLoad, now_ms: int) -> float:
    return load.predicted_wait_ms(now_ms, DEFAULT_MS_PER_TOKEN)


def test_nothing_waits_at_an_idle_endpoint() -> None:
    assert wait_ms(EndpointLoad("a"), 0) == 0


def test_prompts_wait_for_those_before_them() -> None:
    load = EndpointLoad("a")
    load.started(ask(WORDS), 0)
    load.started(ask(WORDS), 0)

    assert wait_ms(load, 0) == 2000
    assert wait_ms(load, 400) == 1600


def test_the_clock_alone_finishes_no_prompt_whose_first_token_is_to_be_seen() -> None:
    load = EndpointLoad("a")
    first = load.started(ask(WORDS), 0)
    load.started(ask(WORDS), 0)

    assert 1000 < wait_ms(load, 1500) <= 1250
    assert wait_ms(load, 100_000) > 10_000, "what is late comes late"
    load.first_token(first, 100_000)
    assert wait_ms(load, 100_000) == 1000


def test_a_prompt_without_a_stream_is_thought_to_be_processed_in_time() -> None:
    load = EndpointLoad("a")
    unseen = load.started(ask(WORDS, is_stream=False), 0)
    load.started(ask(WORDS), 0)

    assert wait_ms(load, 1500) == 500
    load.ended(unseen)
    assert load.waiting_prompt_tokens == WORDS


def test_one_that_leaves_the_line_makes_room() -> None:
    load = EndpointLoad("a")
    first = load.started(ask(WORDS), 0)
    load.started(ask(WORDS), 0)
    load.ended(first)

    assert wait_ms(load, 0) == 1000


def test_rt_14_a_long_prompt_is_more_than_many_short_ones() -> None:
    long, short = EndpointLoad("long"), EndpointLoad("short")
    long.started(ask(100_000), 0)
    for _ in range(20):
        short.started(ask(100), 0)

    assert wait_ms(long, 0) > 10 * wait_ms(short, 0)


def test_what_the_endpoint_holds_is_not_counted() -> None:
    load, index = EndpointLoad("a"), PrefixIndex[EndpointLoad]()
    load.prefixes = index
    for _ in range(2):
        made = Ask.of_blocks("m", 1000, range(10), ENDS)
        made.look_up(index)
        load.started(made, 0)

    assert load.waiting_prompt_tokens == 1001


def test_a_time_that_is_far_too_long_tells_that_the_prefix_was_gone() -> None:
    load, index = EndpointLoad("a"), PrefixIndex[EndpointLoad]()
    load.prefixes = index
    blocks = list(range(200))
    now_ms = 0
    for took_ms in (2500, 2500):
        made = Ask.of_blocks("m", 20_000, blocks, ENDS)
        made.look_up(index)
        dispatch = load.started(made, now_ms)
        now_ms += took_ms
        load.first_token(dispatch, now_ms)
        load.ended(dispatch)
    index.sent(load, [1000])

    assert len(index) < 200
    assert load.slowness.factor == 1, "and nothing about the speed"


def test_a_prompt_that_failed_is_thought_to_be_nowhere() -> None:
    load, index = EndpointLoad("a"), PrefixIndex[EndpointLoad]()
    load.prefixes = index
    made = Ask.of_blocks("m", 1000, range(10), ENDS)
    made.look_up(index)
    load.ended(load.started(made, 0))
    load.failed(made)

    assert len(index) == 0


def test_it_warms_up() -> None:
    load = EndpointLoad("a")
    load.ready_since(1000)

    assert load.warm_up_factor(1000) == 4
    assert 1 < load.warm_up_factor(8000) < 3
    assert load.warm_up_factor(16_000) == 1


STEPS = st.lists(
    st.tuples(st.sampled_from(["start", "first", "end"]), st.integers(0, 30), st.booleans())
)


@given(STEPS)
def test_whatever_happens_an_endpoint_without_requests_has_no_load(
    steps: list[tuple[str, int, bool]],
) -> None:
    load, running, now_ms = EndpointLoad("a"), list[Dispatch](), 0
    for step, number, is_stream in steps:
        now_ms += number * 10
        if step == "start":
            running.append(load.started(ask(number * 100, is_stream), now_ms))
        elif running and step == "first":
            load.first_token(running[number % len(running)], now_ms)
        elif running:
            load.ended(running.pop(number % len(running)))
        assert load.in_flight == len(running)
        assert wait_ms(load, now_ms) >= 0
    for dispatch in running:
        load.ended(dispatch)

    assert (load.in_flight, load.waiting_prompt_tokens, wait_ms(load, now_ms)) == (0, 0, 0)
