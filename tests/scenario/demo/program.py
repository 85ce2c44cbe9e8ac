"""What may be chosen, and what happens one after the other."""

import argparse
import asyncio
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

from rich.console import Console

from tests.scenario.demo.performance import Performance
from tests.scenario.demo.platform_session import DemoError, command, demo_platform
from tests.scenario.demo.screen import Listener, say, screen
from tests.scenario.demo.summary import summary
from tests.scenario.demo.targets import EXAMPLES, example_targets
from tests.scenario.demo.trace import Trace, made_trace, read_trace, stretch
from tests.scenario.demo.traffic import Traffic
from tests.support.platform import Platform

TRACE_FILE = Path(__file__).parents[4] / "shared" / "traces" / "azure_llm_2023_code.csv"
START_MS = 180_000
"""Where the stretch begins: behind the first silence of the trace."""
STARTUP_SECONDS = 20
"""Of a simulated engine, fleet's time: as long as a small model takes from a local disk."""
LEAST, MOST = 0.1, 100.0
"""Minutes, and the rate of the clock."""


def run(argv: Sequence[str] | None = None) -> int:
    """Run the demo; 0, or 1 when something failed. Raises `KeyboardInterrupt`."""
    chosen = _arguments(argv)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _as_interrupt)
    try:
        _run(Listener(), chosen)
    except DemoError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.scenario.demo",
        description="A platform comes up, serves a real trace on a faster clock, explains itself.",
    )
    parser.add_argument(
        "--minutes", type=_number, default=2.0, help="how long the trace plays, real time; 2"
    )
    parser.add_argument(
        "--rate", type=_number, default=10.0, help="seconds of the fleet in one second; 10"
    )
    parser.add_argument("--dir", type=Path, help="the platform's folder; a temporary one")
    parser.add_argument("--keep", action="store_true", help="leave the platform running")
    return parser.parse_args(argv)


def _number(text: str) -> float:
    value = float(text)
    if not LEAST <= value <= MOST:
        raise argparse.ArgumentTypeError(f"{text} is not between {LEAST:g} and {MOST:g}")
    return value


def _as_interrupt(_: int, __: FrameType | None) -> None:
    signal.raise_signal(signal.SIGINT)


def _run(console: Console, chosen: argparse.Namespace) -> None:
    trace = chosen_trace(round(chosen.minutes * 60_000 * chosen.rate))
    options = ("--clock-rate", f"{chosen.rate:g}", "--startup", str(STARTUP_SECONDS))
    with demo_platform(console, chosen.dir, options, keep=chosen.keep) as platform:
        command(console, platform, "apply", "-f", os.path.relpath(EXAMPLES), "--wait")
        say(console, _announcement(trace, chosen.rate))
        performance = asyncio.run(_perform(console, platform, trace, chosen.rate))
        say(console, "\n" + summary(performance.totals, performance.traffic.now_ms))
        command(console, platform, "why", str(performance.last_decided.key))


def chosen_trace(length_ms: int) -> Trace:
    """A stretch of the real trace; a made one where that isn't beside the checkout."""
    if not TRACE_FILE.exists():
        return made_trace(length_ms)
    return stretch(read_trace(TRACE_FILE), START_MS, length_ms)


def _announcement(trace: Trace, rate: float) -> str:
    return (
        f"\nTraffic: {len(trace.requests):,} requests from {trace.origin}.\n"
        f"Every time below is the fleet's own: {rate:g} of its seconds pass in one of yours.\n"
        "TTFT is the time to the first token, total the time to the last; of either the median\n"
        "and the 95th percentile over the last minute.\n"
    )


async def _perform(console: Console, platform: Platform, trace: Trace, rate: float) -> Performance:
    targets = example_targets()
    traffic = Traffic(platform.router, [one.model for one in targets], rate)
    async with platform.bus() as bus:
        with screen(console) as shown:
            performance = Performance(bus, traffic, targets, shown, trace)
            await performance.run()
            return performance
