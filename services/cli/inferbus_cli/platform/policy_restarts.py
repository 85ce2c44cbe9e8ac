"""When a process that ended is started again.

The first time at once; then with a delay that doubles up to a limit, until it has run well for a
while. A process is never given up: at three in the morning a platform that stopped trying is worse
than one that tries every half minute.
"""

from dataclasses import dataclass

FIRST_DELAY_SECONDS = 0.0
SECOND_DELAY_SECONDS = 0.5
MOST_DELAY_SECONDS = 30.0
WELL_AFTER_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class RestartState:
    """What is known of a process's life so far."""

    restarts: int = 0
    """Since the platform was started."""
    in_a_row: int = 0
    """Without running well in between."""
    started_at: float = 0.0
    """Monotonic seconds."""
    due_at: float | None = None
    """When it is to be started; None while it runs."""


def started(state: RestartState, now: float) -> RestartState:
    """It has been started."""
    return RestartState(state.restarts, state.in_a_row, now, None)


def ended(state: RestartState, now: float) -> RestartState:
    """It has ended without being asked to."""
    ran_well = now - state.started_at >= WELL_AFTER_SECONDS
    in_a_row = 1 if ran_well else state.in_a_row + 1
    return RestartState(state.restarts + 1, in_a_row, state.started_at, now + delay(in_a_row))


def delay(in_a_row: int) -> float:
    """Seconds before the n-th start in a row (from 1)."""
    if in_a_row <= 1:
        return FIRST_DELAY_SECONDS
    return min(SECOND_DELAY_SECONDS * 2.0 ** (in_a_row - 2), MOST_DELAY_SECONDS)
