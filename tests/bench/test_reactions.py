"""Which decision belongs to which sample."""

from tests.bench.reactions import Reactions, Sample


def test_a_decision_is_measured_from_its_own_sample() -> None:
    reactions = Reactions(
        samples={
            "a": Sample(changed_ms=1000, taken_ms=1500, stored_ms=1502),
            "b": Sample(changed_ms=1200, taken_ms=1510, stored_ms=1515),
        },
        decided_ms={"b": 1530, "a": 1540},
    )
    delays = reactions.delays()
    assert sorted(delays.from_taken) == [20, 40]
    assert sorted(delays.from_stored) == [15, 38]
    assert sorted(delays.from_changed) == [330, 540]
    assert reactions.unanswered == 0


def test_a_decision_about_an_earlier_sample_is_left_out() -> None:
    reactions = Reactions(samples={}, decided_ms={"before": 5})
    assert reactions.delays().from_taken == []


def test_samples_without_a_decision_are_counted() -> None:
    sample = Sample(changed_ms=0, taken_ms=1, stored_ms=2)
    reactions = Reactions(samples={"a": sample, "b": sample}, decided_ms={"a": 9})
    assert reactions.unanswered == 1
