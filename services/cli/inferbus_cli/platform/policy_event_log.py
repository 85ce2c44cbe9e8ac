"""When a NATS server that runs is started anew, because it stores nothing any more.

A server that met a full disk refuses every write from then on, even when there is room again; only
a start makes it try. Pure. Invariant: a server is started anew only if that can help: it was well
in this life, isn't any more, and there is room.
"""

from dataclasses import dataclass

UNWELL_SECONDS = 4.0
"""A server that is that long unwell doesn't recover by itself."""

ROOM_BYTES = 32 * 1024 * 1024
"""Less free space than that would be full again at once."""


@dataclass(frozen=True, slots=True)
class LogHealth:
    """What is known of the server's life so far; times are monotonic seconds."""

    life: int = 0
    """The process; another one is another life."""
    was_well: bool = False
    unwell_since: float | None = None


def observed(state: LogHealth, life: int, is_well: bool, now: float) -> LogHealth:
    """It was looked at."""
    if life != state.life:
        state = LogHealth(life)
    if is_well:
        return LogHealth(life, was_well=True)
    since = now if state.unwell_since is None else state.unwell_since
    return LogHealth(life, state.was_well, since)


def should_start_anew(state: LogHealth, now: float, free_bytes: int) -> bool:
    """Whether to end it, so that it is started again.

    A server that was never well may be reading back a large store.
    """
    if state.unwell_since is None or not state.was_well:
        return False
    return now - state.unwell_since >= UNWELL_SECONDS and free_bytes >= ROOM_BYTES
