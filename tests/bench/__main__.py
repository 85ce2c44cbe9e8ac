"""`python -m tests.bench [--json] [NAME…]`: measure, print, and say whether every promise holds.

Exit code 0 when all limits hold, 1 when one doesn't, 2 for a name that isn't known. The whole run
is bounded: what is made again takes no more than `SPARE_SECONDS` in all.
"""

import argparse
import asyncio
import json
import sys
from collections.abc import Sequence

from tests.bench import (
    apply,
    azure_trace,
    core_rate,
    decision_latency,
    decision_rate,
    decisions,
    footprint,
    kube_reconciler,
    kube_watcher,
    router,
    router_kills,
    router_peers,
    router_streams,
    scrape,
    startup,
    wake_up,
)
from tests.bench.attempts import Measurement, SpareTime, attempt
from tests.bench.figure import Outcome
from tests.bench.machine import machine
from tests.bench.report import conclusion, json_of, listed, text_of

SPARE_SECONDS = 100.0

MEASUREMENTS = (
    Measurement(name="start-up", measure=startup.measure),
    Measurement(name="footprint", measure=footprint.measure),
    Measurement(name="decision-latency", measure=decision_latency.measure),
    Measurement(name="wake-up", measure=wake_up.measure),
    Measurement(name="router-kills", measure=router_kills.measure, noisy=False),
    Measurement(name="router", measure=router.measure),
    Measurement(name="router-peers", measure=router_peers.measure, promised=False),
    Measurement(name="router-streams", measure=router_streams.measure, promised=False),
    Measurement(name="apply", measure=apply.measure),
    Measurement(name="core-rate", measure=core_rate.measure),
    Measurement(name="decision-rate", measure=decision_rate.measure),
    Measurement(name="decisions", measure=decisions.measure),
    Measurement(name="azure-trace", measure=azure_trace.measure, noisy=False),
    Measurement(name="kube-reconciler", measure=kube_reconciler.measure, promised=False),
    Measurement(name="kube-watcher", measure=kube_watcher.measure),
    Measurement(name="scrape", measure=scrape.measure),
)


async def measure_all(measurements: Sequence[Measurement], tell: bool) -> list[Outcome]:
    """The figures of all measurements; with `tell` each is printed once it is known."""
    spare = SpareTime(SPARE_SECONDS)
    found: list[Outcome] = []
    for measurement in measurements:
        sys.stderr.write(f"measuring {measurement.name}\n")
        outcomes = await attempt(measurement, spare)
        found += outcomes
        if tell:
            for outcome in outcomes:
                print(f"{text_of(outcome)}\n", flush=True)
    return found


def main(argv: Sequence[str]) -> int:
    """Measure what is named, or everything that is promised; the exit code."""
    names = [measurement.name for measurement in MEASUREMENTS]
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("--json", action="store_true", help="one JSON document instead of text")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(names)}")
    arguments = parser.parse_args(argv)
    unknown = sorted(set(arguments.names) - set(names))
    if unknown:
        parser.error(f"there is no measurement {', '.join(unknown)}; name some of {names}")
    chosen = [
        one
        for one in MEASUREMENTS
        if (one.name in arguments.names if arguments.names else one.promised)
    ]
    known = machine()
    if not arguments.json:
        print(f"machine: {listed(known)}\n", flush=True)
    outcomes = asyncio.run(measure_all(chosen, tell=not arguments.json))
    if arguments.json:
        print(json.dumps(json_of(known, outcomes), indent=2))
    else:
        print(conclusion(outcomes))
    return 0 if all(outcome.holds for outcome in outcomes) else 1


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
