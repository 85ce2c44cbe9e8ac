"""What one replica of a mix really serves, learned while requests wait for it.

While at least one request per replica waits, a target works as fast as it can. The least rate of
`HELD_MS` of that is a rate it can hold; of the last few of those the highest counts, and only once
there are `ENOUGH` of them. Invariants: what is learned belongs to one object (its uid) and at most
`MOST_RATES` numbers of it are kept; and the rate that is in use changes only when the evidence
moves by more than `NOISE_PERCENT`. Rates are output tokens per second and ready replica.
"""

from collections.abc import Iterable
from typing import NamedTuple

from inferbus_autoscaler.events import Sampled, TargetReading
from inferbus_autoscaler.facts import TargetFacts

HELD_MS = 30_000
"""Twice the window that the collector takes rates over."""
LONGEST_GAP_MS = 15_000
"""Between two samples of one stretch."""
ENOUGH = 3
MOST_RATES = 4
LEAST_RATE, MOST_RATE = 0.01, 1_000_000.0
"""What lies outside is no engine's, and would take room in the log."""
NOISE_PERCENT = 10


class Stretch(NamedTuple):
    """Samples in a row that found the target saturated, with the same ready replicas."""

    ready: int
    since_ms: int
    held_ms: int
    """Until the last of them."""
    least: float
    """The least rate per replica so far."""


class Throughput(NamedTuple):
    """What is known of one target; an array in JSON."""

    target: str
    """Its identity."""
    rates: tuple[float, ...] = ()
    """Held rates, the latest last."""
    used: float | None = None
    """The rate that decisions rest on; None while the evidence is thin."""
    stretch: Stretch | None = None


def throughputs_after(
    known: tuple[Throughput, ...], targets: Iterable[TargetFacts], sample: Sampled
) -> tuple[Throughput, ...]:
    """What is known of the targets of a mix after a sample; the same object where that is."""
    before = {each.target: each for each in known}
    found = []
    for target in targets:
        mine = before.get(target.identity) or Throughput(target=target.identity)
        mine = _after(mine, target, sample.reading(target.key), sample.taken_at_ms)
        if mine.rates or mine.stretch:
            found.append(mine)
    return known if tuple(found) == known else tuple(found)


def _after(
    known: Throughput, target: TargetFacts, reading: TargetReading | None, now_ms: int
) -> Throughput:
    rate = _saturated_rate(target, reading)
    if rate is None:
        return known._replace(stretch=None)
    last = known.stretch
    gap_ms = now_ms - last.since_ms - last.held_ms if last else 0
    if last is not None and gap_ms <= 0:
        return known
    if last is None or last.ready != target.ready or gap_ms > LONGEST_GAP_MS:
        return known._replace(stretch=_begun(target, now_ms, rate))
    least = min(last.least, rate)
    if now_ms - last.since_ms < HELD_MS:
        return known._replace(stretch=last._replace(held_ms=now_ms - last.since_ms, least=least))
    rates = (*known.rates, least)[-MOST_RATES:]
    return known._replace(
        rates=rates,
        used=_used(known.used, rates),
        stretch=_begun(target, now_ms, rate),
    )


def _begun(target: TargetFacts, now_ms: int, rate: float) -> Stretch:
    return Stretch(ready=target.ready, since_ms=now_ms, held_ms=0, least=rate)


def _saturated_rate(target: TargetFacts, reading: TargetReading | None) -> float | None:
    """Tokens per second and replica; None unless every replica is seen, and has to let some wait.

    Three digits are kept: more would be noise in the log.
    """
    if reading is None or reading.waiting is None or reading.output_tokens is None:
        return None
    if target.ready == 0 or target.unready or reading.missing_pods:
        return None
    if reading.waiting < target.ready:
        return None
    rate = reading.output_tokens / target.ready
    return float(f"{rate:.3g}") if LEAST_RATE <= rate < MOST_RATE else None


def _used(before: float | None, rates: tuple[float, ...]) -> float | None:
    if len(rates) < ENOUGH:
        return before
    highest = max(rates)
    if before is not None and abs(highest - before) * 100 <= NOISE_PERCENT * before:
        return before
    return highest
