"""Outages of an API server as one service sees them, and a clock that makes its minutes short."""

from typing import Any

from prometheus_client import CollectorRegistry

from inferbus_contracts.services import Service
from inferbus_shared.clock import Anchor, SystemClock
from tests.fakes.kubernetes import Answer, Cut, FakeKubernetes, Hang, Page

FAULTS = (
    Answer(500),
    Answer(503),
    Answer(409),
    Answer(410),
    Answer(429, retry_after_seconds=1),
    Page(),
    Hang(),
    Cut(),
)

MINUTE = 60.0
FAST = 20
"""How much faster than the machine's `fast_clock` runs."""
MOST_CALLS_PER_MINUTE = 20
"""Of one list and watch that fails: after 0.5 s, doubling to 30 s, half of it by chance."""

OUTAGE = frozenset({"out of service", "back in service"})
"""What the log says of one, and of its end."""


def named(action: Any) -> str:
    """A fault in a test's name."""
    return f"{type(action).__name__}{getattr(action, 'code', '')}"


def strike(fake: FakeKubernetes, user: Service, action: Any) -> None:
    """From now on no list and no watch of this service works."""
    for verb in ("list", "watch"):
        fake.faults.add(action, verb=verb, user=user, times=None)
    fake.cut_watches()


def watch_failures(registry: CollectorRegistry, prefix: str, kind: str) -> float:
    """How often the list or watch of a kind failed, by the service's own metrics."""
    return sum(
        sample.value
        for metric in registry.collect()
        for sample in metric.samples
        if sample.name == f"{prefix}_watch_failures_total" and sample.labels["kind"] == kind
    )


def fast_clock() -> SystemClock:
    """A clock for retries, on which a minute is three seconds."""
    now_ms = SystemClock().now_ms()
    return SystemClock(Anchor(real_ms=now_ms, virtual_ms=now_ms, rate=FAST))
