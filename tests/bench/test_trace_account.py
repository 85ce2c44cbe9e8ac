"""What a load needed and what became of it."""

import pytest

from tests.bench.trace_account import attained_percent, direction_changes, needed_replica_seconds
from tests.scenario.demo.measured import Answer
from tests.scenario.demo.trace import TracedRequest


def answered(first_token_ms: float | None, error: str = "") -> Answer:
    return Answer(sent_ms=0, first_token_ms=first_token_ms, total_ms=10, error=error)


def test_only_whole_answers_in_time_count() -> None:
    answers = [answered(900), answered(1_000), answered(1_001), answered(None, "status 503")]
    assert attained_percent(answers, 1_000) == 50
    assert attained_percent([answered(1, "cut off")], 1_000) == 0
    assert attained_percent([], 1_000) == 100


def test_every_window_needs_what_its_tokens_take() -> None:
    """A second for each request: 61 in the first half minute, none in the second, one later."""
    burst = [TracedRequest(at_ms, 900, 100) for at_ms in range(61)]
    later = [TracedRequest(60_000, 900, 100)]
    needed = needed_replica_seconds([*burst, *later], 90_000, token_us=1_000)
    assert needed == pytest.approx(30 * (3 + 1 + 1))


@pytest.mark.parametrize(
    ("replicas", "changes"),
    [([], 0), ([1, 2, 2, 5], 0), ([1, 2, 1], 1), ([3, 3, 1, 2, 2, 1], 2), ([4], 0)],
)
def test_changes_of_direction_are_counted(replicas: list[int], changes: int) -> None:
    assert direction_changes(replicas) == changes
