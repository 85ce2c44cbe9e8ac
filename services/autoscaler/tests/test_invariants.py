"""What holds for any story of samples."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from inferbus_autoscaler.core import decide
from inferbus_autoscaler.facts import Behaviour, PolicyFacts, StepPolicy
from inferbus_contracts.resources.annotations import Compat
from services.autoscaler.tests.builders import STEP_MS, WEBHOOK_DEFAULTS, Fleet, policy, sample

MINUTE_MS = 60_000
STEADY = Behaviour(scale_down=StepPolicy(period_ms=0, stabilisation_ms=5 * MINUTE_MS))


loads = st.none() | st.floats(0, 2000)
samples = st.fixed_dictionaries(
    {
        "load": loads,
        "missing_pods": st.integers(0, 1),
        "unready_pods": st.integers(0, 3),
        "failed_pods": st.integers(0, 1),
    }
)
compats = st.sampled_from(Compat)
behaviours = st.sampled_from([Behaviour(), WEBHOOK_DEFAULTS, STEADY])


@settings(max_examples=60)
@given(st.lists(samples, min_size=1, max_size=25), behaviours, compats, st.integers(0, 60))
def test_the_bounds_always_hold(
    story: list[dict[str, Any]], behaviour: Behaviour, compat: Compat | None, start: int
) -> None:
    fleet = Fleet(start, policy(bounds=(2, 40), behaviour=behaviour, compat=compat))
    for each in story:
        fleet.sample(each.pop("load"), **each)
        fleet.advance(STEP_MS)
    assert all(2 <= decided.desired <= 40 for decided in fleet.decisions)


@settings(max_examples=60)
@given(st.lists(samples, min_size=1, max_size=25), behaviours, st.integers(2, 40))
def test_partial_data_never_scales_down(
    story: list[dict[str, Any]], behaviour: Behaviour, start: int
) -> None:
    fleet = Fleet(start, policy(bounds=(2, 40), behaviour=behaviour))
    for each in story:
        before = fleet.replicas
        load = each.pop("load")
        fleet.sample(load, **each)
        if load is None or each["missing_pods"]:
            assert fleet.replicas >= before
        fleet.advance(0)


@settings(max_examples=60)
@given(st.lists(samples, min_size=1, max_size=15), behaviours, compats)
def test_the_same_input_gives_the_same_bytes(
    story: list[dict[str, Any]], behaviour: Behaviour, compat: Compat
) -> None:
    the_policy: PolicyFacts = policy(behaviour=behaviour, compat=compat)

    def told() -> list[bytes]:
        fleet = Fleet(5, the_policy)
        for each in story:
            rest = {name: value for name, value in each.items() if name != "load"}
            fleet.sample(each["load"], **rest)
            fleet.advance(STEP_MS)
        return [decided.to_json() for decided in fleet.decisions]

    assert told() == told()


@settings(max_examples=60)
@given(st.lists(samples, min_size=1, max_size=15), behaviours)
def test_a_repeated_sample_changes_nothing(
    story: list[dict[str, Any]], behaviour: Behaviour
) -> None:
    fleet = Fleet(5, policy(behaviour=behaviour))
    for each in story:
        fleet.sample(each.pop("load"), **each)
        fleet.advance(STEP_MS)
    last = sample(float(len(story)), fleet.now_ms)
    fleet.feed(last)
    before = fleet.state
    after, effects = decide(before, last, fleet.facts(), fleet.now_ms)
    assert after is before
    assert effects == ()
