"""How far a download is, as numbers and as a line for people.

Invariant: the rate is that of the last seconds, not of the whole download, so a stalled download
shows as one.
"""

from collections import deque
from dataclasses import dataclass, field

_WINDOW_MS = 5_000
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


@dataclass(slots=True)
class Progress:
    """What a download counts while it runs; the one place that knows how far it is."""

    total_bytes: int | None = None
    """None until the source has been listed."""
    done_bytes: int = 0
    waiting: bool = False
    """Another process does the work."""
    received_bytes: int = 0
    """What came from the source, also what was thrown away again."""

    def start(self, total_bytes: int, done_bytes: int, *, waiting: bool = False) -> None:
        """Set where a download stands."""
        self.total_bytes, self.done_bytes, self.waiting = total_bytes, done_bytes, waiting

    def add(self, count: int) -> None:
        """Count bytes that arrived."""
        self.done_bytes += count
        self.received_bytes += count

    def take_back(self, count: int) -> None:
        """Count off bytes that turned out to be wrong."""
        self.done_bytes -= count


@dataclass(slots=True)
class Meter:
    """The rate over the last seconds, from samples."""

    _samples: deque[tuple[int, int]] = field(default_factory=deque)

    def bytes_per_second(self, now_ms: int, done_bytes: int) -> float:
        """Take a sample; returns the rate since the oldest sample in the window, at least 0."""
        self._samples.append((now_ms, done_bytes))
        while len(self._samples) > 2 and self._samples[1][0] <= now_ms - _WINDOW_MS:
            self._samples.popleft()
        first_ms, first_bytes = self._samples[0]
        elapsed_ms = now_ms - first_ms
        return max(0.0, (done_bytes - first_bytes) * 1000 / elapsed_ms) if elapsed_ms > 0 else 0.0


def progress_line(progress: Progress, bytes_per_second: float) -> str:
    """One line, e.g. `62 %  1.2 GiB of 2.0 GiB  45.0 MiB/s  18 s left`."""
    if progress.total_bytes is None:
        return "asking the source"
    share = 100 if not progress.total_bytes else 100 * progress.done_bytes // progress.total_bytes
    parts = [
        f"{share} %",
        f"{human_bytes(progress.done_bytes)} of {human_bytes(progress.total_bytes)}",
        f"{human_bytes(bytes_per_second)}/s",
    ]
    if bytes_per_second > 0:
        left_seconds = (progress.total_bytes - progress.done_bytes) / bytes_per_second
        parts.append(f"{left_seconds:.0f} s left")
    if progress.waiting:
        parts.append("(downloaded by another process)")
    return "  ".join(parts)


def human_bytes(count: float) -> str:
    """`count` bytes with a binary unit and one decimal, e.g. `1.5 GiB`."""
    for unit in _UNITS[:-1]:
        if count < 1024:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} {_UNITS[-1]}"
