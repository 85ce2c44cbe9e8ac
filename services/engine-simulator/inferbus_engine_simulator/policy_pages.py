"""What a metrics page is made of, whichever engine it imitates.

Invariant: a page is a function of a `PageView` alone, and every sample of a family has the same
label names.
"""

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

from inferbus_engine_simulator.policy_command_line import ServerOptions
from inferbus_engine_simulator.policy_events import Request
from inferbus_engine_simulator.policy_sizing import EngineSize
from inferbus_engine_simulator.policy_statistics import Histogram, Quantity, Statistics


class PageView(NamedTuple):
    """An engine at one moment."""

    options: ServerOptions
    size: EngineSize
    statistics: Statistics
    running: Sequence[Request]
    waiting: Sequence[Request]
    used_blocks: int
    idle_blocks: int
    """Cached blocks that can be evicted."""
    context_tokens: int
    """Tokens of running requests in the KV cache."""
    adapters: Sequence[str]
    """Names of the loaded LoRA adapters."""
    now_seconds: float
    """Unix time, virtual."""

    @property
    def model_name(self) -> str:
        """The first served name, which engines use as label."""
        return self.options.served_model_names[0]

    @property
    def cache_usage(self) -> float:
        """Share of the blocks that requests hold, 0 to 1."""
        return self.used_blocks / self.size.limits.blocks

    @property
    def capacity_tokens(self) -> int:
        """Tokens that the KV cache holds."""
        return self.size.limits.blocks * self.size.limits.block_size_tokens


class Kind(StrEnum):
    """The types of the Prometheus text format."""

    GAUGE = "gauge"
    COUNTER = "counter"
    HISTOGRAM = "histogram"


class Sample(NamedTuple):
    """One series: its labels, and a number or a histogram."""

    labels: Mapping[str, str]
    value: float | Histogram


class Family(NamedTuple):
    """One metric. The name of a counter is without `_total`."""

    name: str
    kind: Kind
    help: str
    samples: Sequence[Sample]


class Row(NamedTuple):
    """A gauge or counter with one sample."""

    name: str
    help: str
    value: Callable[[PageView], float]


class HistogramRow(NamedTuple):
    """A histogram with one sample."""

    name: str
    help: str
    quantity: Quantity
    bounds: Sequence[float]


def simple_families(
    kind: Kind, rows: Sequence[Row], view: PageView, labels: Mapping[str, str]
) -> list[Family]:
    """One family per row, all with the same labels."""
    return [
        Family(row.name, kind, row.help, [Sample(labels, float(row.value(view)))]) for row in rows
    ]


def histogram_families(
    rows: Sequence[HistogramRow], view: PageView, labels: Mapping[str, str]
) -> list[Family]:
    """One family per row, streamed and other requests together."""
    return [
        Family(
            row.name,
            Kind.HISTOGRAM,
            row.help,
            [Sample(labels, view.statistics.histogram(row.quantity))],
        )
        for row in rows
    ]


def one_two_five(maximum: int) -> list[float]:
    """The bounds 1, 2, 5, 10, 20, 50, … up to and including `maximum`."""
    bounds: list[float] = []
    scale = 1
    while True:
        for mantissa in (1, 2, 5):
            if mantissa * scale > maximum:
                return bounds
            bounds.append(mantissa * scale)
        scale *= 10
