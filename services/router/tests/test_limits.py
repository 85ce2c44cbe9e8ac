"""Token limits: what they admit, what they charge, and what a changed table does to them."""

from typing import Literal

from hypothesis import given
from hypothesis import strategies as st

from inferbus_contracts.events.route import TokenLimit
from inferbus_router.ledger import Ledger
from inferbus_router.limits import ClosableLink, Limiters
from inferbus_router.policy_limits import Need, Refused, Reservation, RouteLimiter, TokenBucket
from services.router.tests.builders import route, route_key, table_of

T0 = 1_700_000_000_000


def limit(
    input_tokens: int | None = None, output_tokens: int | None = None, unit_seconds: int = 1
) -> TokenLimit:
    return TokenLimit(
        input_tokens=input_tokens, output_tokens=output_tokens, unit_seconds=unit_seconds
    )


def need(
    tokens: int, max_output_tokens: int | None = None, name: str = "m", principal: str = ""
) -> Need:
    return Need(name, principal, tokens, max_output_tokens)


def no_redis(address: str) -> ClosableLink:
    raise AssertionError(f"nobody shares a limit on {address}")


def admitted(limiter: RouteLimiter, now_ms: int, tokens: int) -> bool:
    return isinstance(limiter.reserve(need(tokens), now_ms), Reservation)


def test_t073_input_is_refused_when_it_is_used_up_and_comes_back() -> None:
    limiter = RouteLimiter(limit(input_tokens=10))

    assert [admitted(limiter, T0, 3) for _ in range(4)] == [True, True, True, False]
    assert admitted(limiter, T0 + 1100, 3)


def test_a_refusal_says_when_to_try_again() -> None:
    limiter = RouteLimiter(limit(input_tokens=10))
    limiter.reserve(need(10), T0)

    refused = limiter.reserve(need(3), T0)

    assert refused == Refused("input", limit=10, unit_seconds=1, wait_ms=300)
    assert not admitted(limiter, T0 + 299, 3)
    assert admitted(limiter, T0 + 300, 3)


def test_a_request_larger_than_the_limit_is_told_that_waiting_does_not_help() -> None:
    refused = RouteLimiter(limit(input_tokens=10)).reserve(need(11), T0)

    assert isinstance(refused, Refused)
    assert refused.wait_ms is None


def test_t074_output_passes_while_there_is_a_token_left() -> None:
    limiter = RouteLimiter(limit(output_tokens=5))
    reserved = limiter.reserve(need(100), T0)
    assert isinstance(reserved, Reservation)
    reserved.settle(100, 5)

    refused = limiter.reserve(need(100), T0)

    assert isinstance(refused, Refused)
    assert refused.side == "output"
    assert admitted(limiter, T0 + 200, 100)


def test_t075_the_refill_is_continuous() -> None:
    limiter = RouteLimiter(limit(input_tokens=30, unit_seconds=60))

    assert [admitted(limiter, T0, 10) for _ in range(4)] == [True, True, True, False]
    assert not admitted(limiter, T0 + 19_000, 10)
    assert admitted(limiter, T0 + 20_000, 10)


def test_rt_06_a_long_answer_is_charged_in_full_and_paid_off() -> None:
    limiter = RouteLimiter(limit(output_tokens=10))
    reserved = limiter.reserve(need(1), T0)
    assert isinstance(reserved, Reservation)
    reserved.settle(1, 100)

    assert not admitted(limiter, T0 + 9_000, 1)
    assert admitted(limiter, T0 + 9_100, 1)


def test_the_requests_own_bound_is_reserved() -> None:
    limiter = RouteLimiter(limit(output_tokens=100))
    first = limiter.reserve(need(1, 80), T0)
    second = limiter.reserve(need(1, 80), T0)

    assert isinstance(first, Reservation)
    assert isinstance(second, Reservation)
    assert (first.output_tokens, second.output_tokens) == (80, 20)
    assert isinstance(limiter.reserve(need(1, 80), T0), Refused)


def test_what_recent_requests_used_is_reserved_where_there_is_no_bound() -> None:
    limiter = RouteLimiter(limit(output_tokens=1000))
    for second in range(50):
        now_ms = T0 + second * 1000
        reserved = limiter.reserve(need(1), now_ms)
        assert isinstance(reserved, Reservation)
        reserved.settle(1, 400)

    together = [admitted(limiter, T0 + 60_000, 1) for _ in range(4)]

    assert together == [True, True, True, False]


def test_rt_07_output_that_is_used_up_does_not_charge_input() -> None:
    limiter = RouteLimiter(limit(input_tokens=10, output_tokens=1))
    first = limiter.reserve(need(1), T0)
    assert isinstance(first, Reservation)
    for _ in range(20):
        assert not admitted(limiter, T0, 9)
    first.settle(1, 0)

    assert admitted(limiter, T0, 9)


def test_a_request_that_failed_gets_everything_back() -> None:
    limiter = RouteLimiter(limit(input_tokens=10, output_tokens=10))
    reserved = limiter.reserve(need(10, 10), T0)
    assert isinstance(reserved, Reservation)
    reserved.settle(0, 0)

    again = limiter.reserve(need(10, 10), T0)
    assert isinstance(again, Reservation)
    assert (again.input_tokens, again.output_tokens) == (10, 10)


@given(
    st.integers(1, 50),
    st.sampled_from([1, 60, 3600]),
    st.lists(st.tuples(st.integers(0, 5_000), st.integers(0, 60)), max_size=60),
)
def test_what_is_admitted_never_exceeds_capacity_and_refill(
    capacity: int, unit_seconds: int, steps: list[tuple[int, int]]
) -> None:
    limiter = RouteLimiter(limit(input_tokens=capacity, unit_seconds=unit_seconds))
    now_ms, charged = T0, 0
    for wait_ms, tokens in steps:
        now_ms += wait_ms
        if admitted(limiter, now_ms, tokens):
            charged += tokens
        assert charged * unit_seconds * 1000 <= capacity * (unit_seconds * 1000 + now_ms - T0)


@given(
    st.integers(1, 20),
    st.lists(st.tuples(st.integers(0, 500), st.integers(0, 100)), min_size=1, max_size=60),
)
def test_output_holds_over_time_whatever_answers_cost(
    capacity: int, steps: list[tuple[int, int]]
) -> None:
    """One at a time, so that only the last answer can be beyond what there was."""
    limiter = RouteLimiter(limit(output_tokens=capacity))
    now_ms, charged = T0, 0
    for wait_ms, used in steps:
        now_ms += wait_ms
        reserved = limiter.reserve(need(0), now_ms)
        if isinstance(reserved, Refused):
            continue
        assert charged * 1000 <= capacity * (1000 + now_ms - T0)
        reserved.settle(0, used)
        charged += used


@given(st.integers(1, 1000), st.integers(1, 86_400), st.integers(0, 10**9))
def test_a_wait_is_exactly_long_enough(capacity: int, unit_seconds: int, later_ms: int) -> None:
    bucket = TokenBucket(capacity, unit_seconds, T0)
    bucket.charge(capacity)
    wait_ms = bucket.wait_ms(1, T0)

    assert bucket.tokens(T0 + wait_ms - 1) < 1
    assert bucket.tokens(T0 + wait_ms) >= 1
    assert bucket.tokens(T0 + wait_ms + later_ms) <= capacity


def test_time_that_runs_backwards_refills_nothing() -> None:
    bucket = TokenBucket(10, 1, T0)
    bucket.charge(10)

    assert bucket.tokens(T0 - 5_000) == 0
    assert bucket.tokens(T0 + 100) == 1


def test_rt_07_touching_a_route_keeps_the_balance_of_its_limit() -> None:
    limiters = Limiters(no_redis)
    entry = route(limit=limit(input_tokens=10))
    table = table_of({route_key("r"): entry})
    limiters.sync(table.routes, T0)
    limiter = limiters.of(table.routes[0])
    assert isinstance(limiter, RouteLimiter)
    assert admitted(limiter, T0, 10)

    touched = table_of({route_key("r"): entry.model_copy(update={"owned_by": "us"})})
    limiters.sync(touched.routes, T0)

    assert limiters.of(touched.routes[0]) is limiter
    assert not admitted(limiter, T0, 1)


def test_a_changed_limit_keeps_what_was_used() -> None:
    limiter = RouteLimiter(limit(input_tokens=100, output_tokens=10))
    reserved = limiter.reserve(need(100), T0)
    assert isinstance(reserved, Reservation)
    reserved.settle(100, 30)
    limiter.change(limit(input_tokens=1000, output_tokens=20), T0)

    refused = limiter.reserve(need(101), T0 + 100)

    assert isinstance(refused, Refused)
    assert (refused.side, refused.limit) == ("input", 1000)
    assert not admitted(limiter, T0 + 900, 1), "the debt of 20 output tokens is not paid off yet"
    assert admitted(limiter, T0 + 1100, 1)


def test_a_smaller_limit_keeps_only_what_fits() -> None:
    limiter = RouteLimiter(limit(input_tokens=100))
    limiter.change(limit(input_tokens=10), T0)

    assert not admitted(limiter, T0, 11)
    assert admitted(limiter, T0, 10)


def test_a_side_that_is_taken_away_limits_no_more_and_returns_full() -> None:
    limiter = RouteLimiter(limit(input_tokens=10, output_tokens=1))
    assert admitted(limiter, T0, 10)
    limiter.change(limit(output_tokens=100), T0)
    assert admitted(limiter, T0 + 1000, 10_000)
    limiter.change(limit(input_tokens=10), T0)

    assert admitted(limiter, T0, 10)


def test_t076_a_limit_that_is_gone_limits_nothing() -> None:
    limiters = Limiters(no_redis)
    table = table_of({route_key("r"): route(limit=limit(input_tokens=1))})
    limiters.sync(table.routes, T0)
    without = table_of({route_key("r"): route()})
    limiters.sync(without.routes, T0)

    assert limiters.of(without.routes[0]) is None


def test_a_limit_that_comes_back_is_the_one_that_is_charged() -> None:
    ledger = Ledger("r", T0, lambda record: None, Limiters(no_redis))
    table = table_of({route_key("r"): route(limit=limit(input_tokens=1))})
    for each in (table, table_of({}), table):
        ledger.follow(each, T0)
        for known in each.routes:
            assert ledger.charge(known, "m").limiter is ledger.limiters.of(known)


def test_t079_units_last_as_long_as_their_names_say() -> None:
    for unit_seconds in (1, 60, 3_600, 86_400, 30 * 86_400):
        limiter = RouteLimiter(limit(input_tokens=1, unit_seconds=unit_seconds))
        assert admitted(limiter, T0, 1)
        assert not admitted(limiter, T0 + unit_seconds * 1000 - 1, 1)
        assert admitted(limiter, T0 + unit_seconds * 1000, 1)


# Whose limit it is.


def passes(limiter: RouteLimiter, name: str = "m", principal: str = "") -> bool:
    return isinstance(limiter.reserve(need(10, name=name, principal=principal), T0), Reservation)


def test_rt_07_every_client_and_every_name_has_the_limit_of_its_own() -> None:
    limiter = RouteLimiter(limit(input_tokens=10))
    holders = [("m", ""), ("m", "ann"), ("m", "bob"), ("lora", "ann")]

    first = [passes(limiter, name=name, principal=principal) for name, principal in holders]
    second = [passes(limiter, name=name, principal=principal) for name, principal in holders]

    assert first == [True] * 4
    assert second == [False] * 4


def test_a_limit_may_be_for_clients_for_names_or_for_the_route_as_a_whole() -> None:
    holders = [("m", "ann"), ("m", "bob"), ("lora", "ann")]

    def admitted_of(*per: Literal["name", "principal"]) -> list[bool]:
        declared = limit(input_tokens=10).model_copy(update={"per": list(per)})
        limiter = RouteLimiter(declared)
        return [passes(limiter, name=name, principal=principal) for name, principal in holders]

    assert admitted_of("name", "principal") == [True, True, True]
    assert admitted_of("principal") == [True, True, False]
    assert admitted_of("name") == [True, False, True]
    assert admitted_of() == [True, False, False]


def test_a_router_alone_gives_out_its_part_and_a_large_request_still_passes() -> None:
    limiter = RouteLimiter(limit(input_tokens=100), routers=4)

    assert isinstance(limiter.reserve(need(101), T0), Refused)
    assert isinstance(limiter.reserve(need(100), T0), Reservation), "into debt, once"
    refused = limiter.reserve(need(10), T0)
    assert isinstance(refused, Refused)
    assert (refused.limit, refused.wait_ms) == (100, 3400)
    assert isinstance(limiter.reserve(need(10), T0 + 3400), Reservation)


def test_holders_are_forgotten_when_nothing_is_known_of_them_and_never_before() -> None:
    limiter = RouteLimiter(limit(input_tokens=10, unit_seconds=3600))
    for number in range(3_000):
        now_ms = T0 + number * 3_600_000
        taken = limiter.reserve(need(10, principal=str(number)), now_ms)
        assert isinstance(taken, Reservation)
        taken.settle(10, 0)
    assert limiter.holders < 1_100

    owing = RouteLimiter(limit(input_tokens=10, unit_seconds=3600))
    for number in range(3_000):
        assert passes(owing, principal=str(number))
    assert not any(passes(owing, principal=str(number)) for number in range(3_000))


@given(
    st.lists(
        st.tuples(st.integers(0, 2_000), st.integers(0, 30), st.integers(0, 60), st.booleans()),
        max_size=60,
    )
)
def test_what_is_charged_in_the_end_is_what_was_used(
    steps: list[tuple[int, int, int, bool]],
) -> None:
    """However requests overlap, and whether they fail: the balance is capacity less use."""
    limiter = RouteLimiter(limit(input_tokens=10**6, output_tokens=10**6, unit_seconds=86_400))
    running: list[Reservation] = []
    used_input = used_output = 0
    for _, tokens, output, settles in steps:
        taken = limiter.reserve(need(tokens, 50), T0)
        assert isinstance(taken, Reservation)
        running.append(taken)
        if settles:
            running.pop(0).settle(tokens, output)
            used_input, used_output = used_input + tokens, used_output + output
    for taken in running:
        taken.settle(0, 0)

    whole = limiter.reserve(need(10**6 - used_input), T0)
    assert isinstance(whole, Reservation)
    assert isinstance(limiter.reserve(need(1), T0), Refused)
    whole.settle(0, 0)
    rest = limiter.reserve(need(0, 10**6), T0)
    assert isinstance(rest, Reservation)
    assert rest.output_tokens == 10**6 - used_output
