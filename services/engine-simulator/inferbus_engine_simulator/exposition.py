"""From families to the text of a metrics page, by prometheus_client.

Invariant: nothing is registered globally; a page is made of one private collector.
"""

from collections.abc import Iterable, Mapping, Sequence

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

from inferbus_engine_simulator import policy_page_sglang, policy_page_small, policy_page_vllm
from inferbus_engine_simulator.policy_command_line import ServerOptions
from inferbus_engine_simulator.policy_engine_flags import EngineKind
from inferbus_engine_simulator.policy_pages import Family, HistogramRow, Kind, PageView
from inferbus_engine_simulator.policy_statistics import Histogram, Quantity

CONTENT_TYPE = CONTENT_TYPE_PLAIN_0_0_4


def histogram_bounds(
    options: ServerOptions, max_model_len: int
) -> Mapping[Quantity, Sequence[float]]:
    """The histograms that the page of this engine needs."""
    rows: Sequence[HistogramRow] = ()
    if options.engine is EngineKind.VLLM:
        rows = policy_page_vllm.histogram_rows(max_model_len)
    elif options.engine is EngineKind.SGLANG:
        rows = policy_page_sglang.HISTOGRAM_ROWS
    return {row.quantity: row.bounds for row in rows}


def families(view: PageView) -> list[Family]:
    """The page that this engine shows; empty for an engine without one."""
    match view.options.engine:
        case EngineKind.VLLM:
            return policy_page_vllm.families(view)
        case EngineKind.SGLANG:
            return policy_page_sglang.families(view)
        case EngineKind.LLAMACPP:
            return policy_page_small.llamacpp_families(view)
        case EngineKind.TGI:
            return policy_page_small.tgi_families(view)
        case _:
            return []


def render(page: Sequence[Family]) -> bytes:
    """The page in the Prometheus text format 0.0.4."""
    return generate_latest(_Page(page))


class _Page(Collector):
    """A collector that shows given families; it stands for a registry, too."""

    def __init__(self, page: Sequence[Family]) -> None:
        self._page = page

    def collect(self) -> Iterable[Metric]:
        return map(_metric, self._page)


def _metric(family: Family) -> Metric:
    names = list(family.samples[0].labels)
    metric: GaugeMetricFamily | CounterMetricFamily | HistogramMetricFamily
    if family.kind is Kind.HISTOGRAM:
        metric = HistogramMetricFamily(family.name, family.help, labels=names)
        for labels, value in family.samples:
            assert isinstance(value, Histogram)
            metric.add_metric(list(labels.values()), _cumulated(value), value.total)
        return metric
    kind = CounterMetricFamily if family.kind is Kind.COUNTER else GaugeMetricFamily
    metric = kind(family.name, family.help, labels=names)
    for labels, value in family.samples:
        assert not isinstance(value, Histogram)
        metric.add_metric(list(labels.values()), value)
    return metric


def _cumulated(histogram: Histogram) -> list[tuple[str, float]]:
    buckets = []
    seen = 0
    for bound, count in zip((*histogram.bounds, float("inf")), histogram.counts, strict=True):
        seen += count
        upper = floatToGoString(bound)  # type: ignore[no-untyped-call]
        buckets.append((upper, float(seen)))
    return buckets
