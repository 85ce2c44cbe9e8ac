"""What a traced load needed, and what became of it. Pure.

Invariant: a request without a whole answer is never counted as in time.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import pairwise

from tests.scenario.demo.measured import Answer
from tests.scenario.demo.trace import TracedRequest

WINDOW_MS = 30_000
"""Over so long work may be spread."""


def attained_percent(answers: Sequence[Answer], limit_ms: int) -> float:
    """Percent of the requests whose first token came within `limit_ms`; 100 without any."""
    if not answers:
        return 100.0
    met = sum(
        not one.error and one.first_token_ms is not None and one.first_token_ms <= limit_ms
        for one in answers
    )
    return 100 * met / len(answers)


def needed_replica_seconds(
    requests: Iterable[TracedRequest], length_ms: int, token_us: float
) -> float:
    """What the tokens alone take, in whole replicas for whole windows, never below one replica.

    `token_us` is what a replica that is never idle takes for one token, prompt or output. Nobody
    can have less: start-up is free here, and the future known.
    """
    work_us: defaultdict[int, float] = defaultdict(float)
    for one in requests:
        work_us[one.at_ms // WINDOW_MS] += (one.prompt_tokens + one.output_tokens) * token_us
    windows = range(-(-length_ms // WINDOW_MS))
    replicas = (max(1, -(-work_us[window] // (WINDOW_MS * 1000))) for window in windows)
    return sum(replicas) * WINDOW_MS / 1000


def direction_changes(replicas: Iterable[int]) -> int:
    """How often a number that grew fell next, or the other way round."""
    steps = [after > before for before, after in pairwise(replicas) if after != before]
    return sum(one != two for one, two in pairwise(steps))
