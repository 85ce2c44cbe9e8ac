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
from tests.scenario.demo.screen import Screen, say
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


def run(argv: Sequence[str] | None = None) -> int:
    """Run the demo; 0, or 1 when something failed. Raises `KeyboardInterrupt`."""
    chosen = _arguments(argv)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _as_interrupt)
    try:
        _run(Console(), chosen)
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
        "--minutes", type=_positive, default=2.0, help="how long the trace plays, real time; 2"
    )
    parser.add_argument(
        "--rate", type=_positive, default=10.0, help="seconds of the fleet in one second; 10"
    )
    parser.add_argument("--dir", type=Path, help="the platform's folder; a temporary one")
    parser.add_argument("--keep", action="store_true", help="leave the platform running")
    return parser.parse_args(argv)


def _positive(text: str) -> float:
    value = float(text)
    if not 0 < value <= 1000:
        raise argparse.ArgumentTypeError(f"{text} is not above 0 and up to 1000")
    return value


def _as_interrupt(_: int, __: FrameType | None) -> None:
    signal.raise_signal(signal.SIGINT)


def _run(console: Console, chosen: argparse.Namespace) -> None:
    length_ms = round(chosen.minutes * 60_000 * chosen.rate)
    trace = _trace(length_ms)
    say(console, "Starting a platform: NATS, the services, two routers. A few seconds.")
    options = ("--clock-rate", f"{chosen.rate:g}", "--startup", str(STARTUP_SECONDS))
    with demo_platform(console, chosen.dir, options, keep=chosen.keep) as platform:
        command(console, platform, "apply", "-f", os.path.relpath(EXAMPLES), "--wait")
        say(console, _announcement(trace, chosen.rate))
        performance = asyncio.run(_perform(console, platform, trace, length_ms, chosen.rate))
        say(console, "\n" + summary(performance.totals, performance.traffic.now_ms))
        command(console, platform, "why", str(performance.last_decided.key))


def _trace(length_ms: int) -> Trace:
    if not TRACE_FILE.exists():
        return made_trace(length_ms)
    return stretch(read_trace(TRACE_FILE), START_MS, length_ms)


def _announcement(trace: Trace, rate: float) -> str:
    return (
        f"\nTraffic: {len(trace.requests):,} requests from {trace.origin}.\n"
        f"Every time below is the fleet's own: {rate:g} of its seconds pass in one of yours.\n"
        "TTFT is the time to the first token; latencies are of the last minute, p50 / p95.\n"
    )


async def _perform(
    console: Console, platform: Platform, trace: Trace, length_ms: int, rate: float
) -> Performance:
    targets = example_targets()
    traffic = Traffic(platform.router, [one.model for one in targets], rate)
    async with platform.bus() as bus:
        with Screen(console) as screen:
            performance = Performance(bus, traffic, targets, screen, length_ms)
            await performance.run(trace)
            return performance
