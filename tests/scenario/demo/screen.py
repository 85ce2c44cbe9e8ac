"""What is shown while the trace plays: a table that moves on a terminal, lines where there is none.

Invariant: nothing but plain text goes to what isn't a terminal.
"""

import contextlib
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from inferbus_cli.units import latency
from tests.scenario.demo.fleet import Replicas
from tests.scenario.demo.measured import Present, Spread

LINES_EVERY_SECONDS = 5.0
"""Between two looks at the fleet where there is no terminal; real time."""
FRAMES_PER_SECOND = 4

_BAR_WIDTH = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelView:
    """One model as it is now."""

    name: str
    api: str
    """Whose manifest it comes from."""
    replicas: Replicas
    present: Present


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """Everything as it is now; times are the fleet's."""

    now_ms: float
    end_ms: float
    sent: int
    errors: int
    models: Sequence[ModelView]


def minutes(milliseconds: float) -> str:
    """E.g. `04:09`."""
    seconds = int(max(0.0, milliseconds) // 1000)
    return f"{seconds // 60:02}:{seconds % 60:02}"


def lines(view: View) -> str:
    """A line for each model, for what isn't a terminal."""
    width = max(len(model.name) for model in view.models)
    return "\n".join(
        f"{minutes(view.now_ms)}  {model.name:<{width}} {_in_words(model)}" for model in view.models
    )


def picture(view: View) -> Group:
    """Everything as a table, for a terminal."""
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    for title in ("MODEL", "API", "REPLICAS"):
        table.add_column(title, no_wrap=True)
    for title in ("RUNNING", "REQ/S", "TTFT", "P95", "TOTAL", "P95"):
        table.add_column(title, no_wrap=True, justify="right")
    for model in view.models:
        table.add_row(*_cells(model))
    progress = Table.grid(padding=(0, 2, 0, 0))
    failed = Text(f"{view.errors:,} failed", style="red" if view.errors else "")
    progress.add_row(
        f"{minutes(view.now_ms)} of {minutes(view.end_ms)}",
        _progress(view),
        f"{view.sent:,} requests",
        failed,
    )
    return Group("", progress, "", table)


class Listener(Console):
    """Standard output; when nobody reads it any more, that is an interrupt."""

    def on_broken_pipe(self) -> None:
        """Called instead of raising `BrokenPipeError`."""
        with Path(os.devnull).open("w") as nowhere:
            os.dup2(nowhere.fileno(), sys.stdout.fileno())
        signal.raise_signal(signal.SIGINT)


class Screen:
    """A terminal, or a file; `screen` makes and ends it."""

    def __init__(self, console: Console, live: Live | None) -> None:
        """`live` is the part of a terminal that moves; None where lines stay."""
        self._console = console
        self._live = live
        self._next_line_seconds = 0.0

    def say(self, text: str, *, quiet: bool = False) -> None:
        """A line that stays; a quiet one is there for those who look for it."""
        say(self._console, text, style="dim" if quiet else "")

    def show(self, view: View, real_seconds: float) -> None:
        """The present, `real_seconds` after the beginning; where lines stay, only now and then."""
        if self._live is not None:
            self._live.update(picture(view), refresh=True)
        elif real_seconds >= self._next_line_seconds:
            self._next_line_seconds = real_seconds + LINES_EVERY_SECONDS
            self.say(lines(view))


@contextlib.contextmanager
def screen(console: Console) -> Iterator[Screen]:
    """A screen; of what moves on a terminal nothing stays behind."""
    if not console.is_terminal or console.is_dumb_terminal:
        yield Screen(console, None)
        return
    with Live(console=console, auto_refresh=False, transient=True) as live:
        yield Screen(console, live)


def say(console: Console, text: str, style: str = "") -> None:
    """Text as it is."""
    console.print(Text(text, style), soft_wrap=True)


def _progress(view: View) -> ProgressBar:
    done = min(view.now_ms, view.end_ms)
    return ProgressBar(total=view.end_ms, completed=done, width=_BAR_WIDTH, complete_style="green")


def _in_words(model: ModelView) -> str:
    replicas, present = model.replicas, model.present
    return (
        f"{replicas.ready:>3}/{replicas.standing} ready {present.per_second:>7.1f} req/s "
        f"{present.in_flight:>5} running   TTFT {_pair(present.first_token):<15} "
        f"  total {_pair(present.total)}"
    )


def _cells(model: ModelView) -> tuple[str | Text, ...]:
    present = model.present
    return (
        model.name,
        model.api,
        _blocks(model.replicas),
        str(present.in_flight),
        f"{present.per_second:.1f}",
        latency(present.first_token.p50_ms) or "-",
        latency(present.first_token.p95_ms) or "-",
        latency(present.total.p50_ms) or "-",
        latency(present.total.p95_ms) or "-",
    )


def _blocks(replicas: Replicas) -> Text:
    """One sign for each replica the policy allows: ready, standing and not ready, not there."""
    waiting = max(0, replicas.standing - replicas.ready)
    free = max(0, replicas.maximum - replicas.standing)
    blocks = Text()
    blocks.append("■" * replicas.ready, style="green")
    blocks.append("▣" * waiting, style="yellow")
    blocks.append("·" * free, style="dim")
    blocks.append(f" {replicas.ready}/{replicas.standing}")
    return blocks


def _pair(spread: Spread) -> str:
    if spread.p50_ms is None:
        return "-"
    return f"{latency(spread.p50_ms)} / {latency(spread.p95_ms)}"
