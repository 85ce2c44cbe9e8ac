"""Which pods count as what, and how incomplete readings are carried."""

import pytest
from collector_builders import gauge_page, pod, serving

from inferbus_contracts.events.metrics import MetricAggregate, MetricKind
from inferbus_contracts.events.workload import PodFact
from inferbus_metrics_collector.plans import Page, PodMetric, PrometheusMetric, TargetPlan
from inferbus_metrics_collector.policy_history import PodReading, Reading
from inferbus_metrics_collector.policy_sample import (
    MOST_PROBLEMS,
    Failure,
    census,
    pages_of,
    target_sample,
)
from inferbus_metrics_collector.policy_selection import Selector
from inferbus_shared.pages.scan import scan

PAGE = Page(8100, "/metrics")
OTHER_PAGE = Page(9000, "/metrics")


def metric(name: str = "load", page: Page = PAGE, **labels: str) -> PodMetric:
    chosen = Selector(frozenset(labels.items()))
    return PodMetric(name=name, families=(name,), page=page, selector=chosen)


def target(*metrics: PodMetric | PrometheusMetric, role: str = "") -> TargetPlan:
    return TargetPlan(key=serving(role=role), metrics=metrics)


def read(text: bytes, at_ms: int = 0) -> PodReading:
    return PodReading(Reading(at_ms, scan(text, {"load"})), None)


@pytest.mark.parametrize(
    ("fact", "counts"),
    [
        (pod(), (1, 0, 0)),
        (pod(ready=False), (0, 1, 0)),
        (pod(ready=False, phase="Pending", address=""), (0, 1, 0)),
        (pod(phase="Failed"), (0, 0, 1)),
        (pod(failed=True), (0, 0, 1)),
        (pod(restarts=3), (1, 0, 0)),
        (pod(deleting=True), (0, 0, 0)),
        (pod(phase="Succeeded", ready=False), (0, 0, 0)),
        (pod(entry=False), (0, 0, 0)),
        (pod(phase="Unknown"), (0, 1, 0)),
    ],
    ids=[
        "ready",
        "unready",
        "pending",
        "failed phase",
        "broken",
        "AS_D04 restarted",
        "AS_D04 deleting",
        "done",
        "worker",
        "unknown",
    ],
)
def test_what_a_pod_counts_as(fact: PodFact, counts: tuple[int, int, int]) -> None:
    found = census(target(metric()), [fact])
    assert (len(found.ready), found.unready, found.failed) == counts


def test_as_d04_a_restart_or_a_pod_on_its_way_out_freezes_nothing() -> None:
    pods = [pod("a", restarts=3), pod("b", deleting=True), pod("c", failed=True)]
    found = census(target(metric()), pods)
    assert [item.name for item in found.ready] == ["a"]
    sample, *_ = target_sample(target(metric()), found, {("a", PAGE): read(gauge_page(4))}, {})
    assert (sample.ready_pods, sample.failed_pods, sample.missing) == (1, 1, [])
    assert sample.metrics[0].value == 4.0


def test_as_d05_unready_pods_do_not_hide_the_ready_ones() -> None:
    found = census(target(metric()), [pod("a"), pod("b", ready=False), pod("c", failed=True)])
    sample, *_ = target_sample(target(metric()), found, {("a", PAGE): read(gauge_page(4))}, {})
    assert sample.metrics[0].value == 4.0
    assert (sample.ready_pods, sample.unready_pods, sample.failed_pods) == (1, 1, 1)


def test_a_role_is_its_own_pods_only() -> None:
    pods = [pod("a", role="prefill"), pod("b", role="decode")]
    assert [item.name for item in census(target(metric(), role="decode"), pods).ready] == ["b"]
    assert len(census(target(metric()), pods).ready) == 2


def test_a_selector_narrows_what_is_counted_and_read() -> None:
    narrow, wide = metric("a", PAGE, gpu="x"), metric("b", OTHER_PAGE, gpu="x", tier="1")
    pods = [pod("p", labels={"gpu": "x"}), pod("q", labels={"gpu": "x", "tier": "1"}), pod("r")]
    found = census(target(narrow, wide), pods)
    assert [item.name for item in found.ready] == ["p", "q"]
    assert pages_of(pods[0], (narrow, wide)) == {PAGE}
    assert pages_of(pods[1], (narrow, wide)) == {PAGE, OTHER_PAGE}


def test_as_d10_a_pod_that_did_not_answer_is_missing_and_the_sum_is_partial() -> None:
    found = census(target(metric()), [pod("a"), pod("b"), pod("c")])
    pages: dict[tuple[str, Page], PodReading | Failure] = {
        ("a", PAGE): read(gauge_page(4)),
        ("b", PAGE): Failure("no page within 3 s"),
        ("c", PAGE): read(b"# TYPE load gauge\nload NaN\n"),
    }
    sample, *_ = target_sample(target(metric()), found, pages, {})
    assert sample.metrics == [
        MetricAggregate(name="load", kind=MetricKind.GAUGE, value=4.0, pods=1)
    ]
    assert (sample.ready_pods, sample.missing) == (1, ["b", "c"])
    assert sample.problems == [
        "pod b: port 8100/metrics: no page within 3 s",
        "load: pod c: load has a value that is negative, not finite or absurd",
    ]


def test_a_damaged_page_counts_but_its_pod_is_not_whole() -> None:
    found = census(target(metric()), [pod("a")])
    pages = {("a", PAGE): read(b'# TYPE load gauge\nload{a="1"} 4\nload{a="2" 5\n')}
    sample, *_ = target_sample(target(metric()), found, pages, {})
    assert sample.metrics[0].value == 4.0
    assert sample.missing == ["a"]
    assert sample.problems == ['pod a: 1 malformed lines: load {a="2" 5']


def test_external_values_stand_beside_those_of_pods() -> None:
    externals = [
        PrometheusMetric(name=name, server_url="http://p", query="q", kind=kind)
        for name, kind in (("x", MetricKind.EXTERNAL_AVERAGE), ("y", MetricKind.EXTERNAL_TOTAL))
    ]
    plan = target(metric(), *externals)
    sample, *_ = target_sample(
        plan,
        census(plan, [pod("a")]),
        {("a", PAGE): read(gauge_page(4))},
        {"x": 0.5, "y": Failure("HTTP status 500")},
    )
    assert [(item.name, item.kind, item.value) for item in sample.metrics] == [
        ("load", MetricKind.GAUGE, 4.0),
        ("x", MetricKind.EXTERNAL_AVERAGE, 0.5),
    ]
    assert sample.problems == ["y: HTTP status 500"]


def test_a_target_without_pods_or_metrics_is_still_reported() -> None:
    empty, *_ = target_sample(target(metric()), census(target(metric()), []), {}, {})
    assert (empty.metrics, empty.ready_pods, empty.problems) == ([], 0, [])
    fixed, *_ = target_sample(target(), census(target(), [pod("a")]), {}, {})
    assert (fixed.metrics, fixed.ready_pods) == ([], 1)


def test_problems_are_few_and_short_however_many_pods_fail() -> None:
    pods = [pod(f"p{number}") for number in range(50)]
    pages = {(item.name, PAGE): Failure("x" * 5000) for item in pods}
    sample, *_ = target_sample(target(metric()), census(target(metric()), pods), pages, {})
    assert len(sample.problems) == MOST_PROBLEMS + 1
    assert max(map(len, sample.problems)) <= 200
    assert sample.problems[-1] == "and 42 more"
    assert len(sample.missing) == 50
