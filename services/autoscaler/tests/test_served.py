"""The mean request, as routers count it: prompts when they come, outputs when they are done."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferbus_autoscaler.events import Counters
from inferbus_autoscaler.policy_served import Sizes, capacity_per_second
from inferbus_contracts.resources.annotations import CapacityUnit
from services.autoscaler.tests.objective_world import objective

PROMPT, OUTPUT = 2_000, 20


def test_a_burst_does_not_make_requests_look_larger() -> None:
    """Ten have come when the first of them is done."""
    sizes = Sizes().after(
        Counters(requests=10, completions=1, prompt_tokens=10 * PROMPT, output_tokens=OUTPUT)
    )
    assert (sizes.prompt_tokens, sizes.output_tokens) == (PROMPT, OUTPUT)
    by_tokens = objective(capacity=4_040.0, unit=CapacityUnit.TOKENS)
    assert capacity_per_second(by_tokens, sizes, None) == pytest.approx(2.0)


def test_a_capacity_in_tokens_is_unknown_until_a_request_is_answered() -> None:
    sizes = Sizes().after(Counters(requests=3, prompt_tokens=3 * PROMPT))
    by_tokens = objective(capacity=4_040.0, unit=CapacityUnit.TOKENS)
    assert capacity_per_second(by_tokens, sizes, None) is None


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), min_size=1, max_size=40))
def test_the_mean_of_equal_requests_is_their_size_however_they_are_told(
    steps: list[tuple[int, int]],
) -> None:
    sizes = Sizes()
    for came, done in steps:
        sizes = sizes.after(
            Counters(
                requests=came,
                completions=done,
                prompt_tokens=came * PROMPT,
                output_tokens=done * OUTPUT,
            )
        )
    assert sizes.prompt_tokens in (0.0, pytest.approx(PROMPT))
    assert sizes.output_tokens in (0.0, pytest.approx(OUTPUT))
    assert (sizes.prompt_tokens > 0) is any(came for came, _ in steps)
    assert (sizes.output_tokens > 0) is any(done for _, done in steps)
