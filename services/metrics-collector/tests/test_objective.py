"""A policy with an objective and no metric: what is sampled for it, under which names."""

from typing import Any

import pytest
from collector_builders import planned, pod, policy, role, serving, single, workload

from inferbus_contracts.admission import admit
from inferbus_contracts.errors import ProblemsError
from inferbus_contracts.events.metrics import MetricKind
from inferbus_metrics_collector.plans import ENGINE_PORT, Page, TargetPlan
from inferbus_metrics_collector.policy_history import PodReading, Reading
from inferbus_metrics_collector.policy_objective import OBJECTIVE_FAMILIES
from inferbus_metrics_collector.policy_sample import TargetOutcome, census, target_sample
from inferbus_metrics_collector.policy_selection import engine_port
from inferbus_shared.pages.scan import scan

OBJECTIVE = {"inferbus.dev/objective": "ttft=2s@99.5%"}
NAMES = [
    "kthena:num_requests_waiting",
    "kthena:num_requests_running",
    "kthena:request_success_total",
    "kthena:generation_tokens_total",
]
PAGES = {
    "vLLM": """
        # TYPE vllm:num_requests_waiting gauge
        vllm:num_requests_waiting{engine="0"} 5
        vllm:num_requests_waiting{engine="1"} 2
        # TYPE vllm:num_requests_running gauge
        vllm:num_requests_running{engine="0"} 3
        # TYPE vllm:request_success_total counter
        vllm:request_success_total{finished_reason="stop"} {20}
        vllm:request_success_total{finished_reason="length"} {0}
        # TYPE vllm:generation_tokens_total counter
        vllm:generation_tokens_total {600}
    """,
    "SGLang": """
        # TYPE sglang:num_queue_reqs gauge
        sglang:num_queue_reqs 7
        # TYPE sglang:num_running_reqs gauge
        sglang:num_running_reqs 3
        # TYPE sglang:num_requests_total counter
        sglang:num_requests_total {20}
        # TYPE sglang:generation_tokens_total counter
        sglang:generation_tokens_total {600}
    """,
    "TGI": """
        # TYPE tgi_queue_size gauge
        tgi_queue_size 7
        # TYPE tgi_batch_current_size gauge
        tgi_batch_current_size 3
        # TYPE tgi_request_success counter
        tgi_request_success {20}
        # TYPE tgi_request_generated_tokens histogram
        tgi_request_generated_tokens_bucket{le="+Inf"} 1
        tgi_request_generated_tokens_sum {600}
        tgi_request_generated_tokens_count 1
    """,
    "TensorRT-LLM": """
        # TYPE trtllm_num_requests_waiting gauge
        trtllm_num_requests_waiting 7
        # TYPE trtllm_num_requests_running gauge
        trtllm_num_requests_running 3
        # TYPE trtllm_request_success_total counter
        trtllm_request_success_total {20}
        # TYPE trtllm_generation_tokens_total counter
        trtllm_generation_tokens_total {600}
    """,
    "an engine that only times its requests": """
        # TYPE vllm:num_requests_waiting gauge
        vllm:num_requests_waiting 7
        # TYPE vllm:num_requests_running gauge
        vllm:num_requests_running 3
        # TYPE vllm:e2e_request_latency_seconds histogram
        vllm:e2e_request_latency_seconds_bucket{le="+Inf"} {20}
        vllm:e2e_request_latency_seconds_sum 9
        vllm:e2e_request_latency_seconds_count {20}
        # TYPE vllm:generation_tokens_total counter
        vllm:generation_tokens_total {600}
    """,
}
"""A number in braces is what the counter grew by since the page before."""


def page(text: str, *, grown: bool) -> bytes:
    lines = (line.strip() for line in text.strip().splitlines())
    return "\n".join(_grown(line) if grown else _begun(line) for line in lines).encode()


def _grown(line: str) -> str:
    head, _, last = line.rpartition(" ")
    return f"{head} {100 + int(last[1:-1])}" if last.startswith("{") else line


def _begun(line: str) -> str:
    head, _, last = line.rpartition(" ")
    return f"{head} 100" if last.startswith("{") else line


def plan(**target: Any) -> TargetPlan:
    found = planned(policy(metrics=[], annotations=OBJECTIVE, homogeneousTarget=single(**target)))
    assert not found.problems
    (only,) = found.plans.values()
    return only.targets[0]


def sampled(target: TargetPlan, text: str) -> TargetOutcome:
    (place,) = {metric.page for metric in target.pod_metrics}
    wanted = {family for metric in target.pod_metrics for family in metric.families}
    before, now = (
        Reading(at_ms, scan(page(text, grown=grown), wanted))
        for at_ms, grown in ((0, False), (10_000, True))
    )
    pods = census(target, workload(pod("a"), pod("b", ready=False)).pods)
    return target_sample(target, pods, {("a", place): PodReading(now, before)}, {})


@pytest.mark.parametrize("engine", PAGES)
def test_every_engine_gives_the_same_names(engine: str) -> None:
    outcome = sampled(plan(), PAGES[engine])
    values = {item.name: (item.kind, item.value) for item in outcome.sample.metrics}
    assert values == {
        "kthena:num_requests_waiting": (MetricKind.GAUGE, 7.0),
        "kthena:num_requests_running": (MetricKind.GAUGE, 3.0),
        "kthena:request_success_total": (MetricKind.RATE, 2.0),
        "kthena:generation_tokens_total": (MetricKind.RATE, 60.0),
    }
    assert (outcome.sample.ready_pods, outcome.sample.unready_pods) == (1, 1)
    assert outcome.sample.problems == []


def test_what_an_engine_does_not_show_is_left_out_and_no_problem() -> None:
    llamacpp = "# TYPE llamacpp:requests_processing gauge\nllamacpp:requests_processing 2"
    outcome = sampled(plan(), llamacpp)
    assert [item.name for item in outcome.sample.metrics] == ["kthena:num_requests_running"]
    assert (outcome.sample.missing, outcome.sample.problems) == ([], [])


def test_the_page_is_that_of_the_target_or_of_each_pods_engine() -> None:
    assert list(OBJECTIVE_FAMILIES) == NAMES
    assert {metric.page for metric in plan().pod_metrics} == {Page(ENGINE_PORT, "/metrics")}
    told = plan(metricEndpoint={"port": 9000, "uri": "/m"})
    assert {metric.page for metric in told.pod_metrics} == {Page(9000, "/m")}


@pytest.mark.parametrize(
    ("fields", "port"),
    [
        ({}, 8100),
        ({"ports": [8000]}, 8000),
        ({"ports": [8000, 8100]}, 8100),
        ({"ports": [8000], "annotations": {"inferbus.dev/engine-port": "9001"}}, 9001),
        ({"annotations": {"inferbus.dev/engine-port": "no port"}}, 8100),
    ],
)
def test_where_an_engine_answers(fields: dict[str, Any], port: int) -> None:
    assert engine_port(pod("a", **fields)) == port


def test_metrics_that_are_named_count_and_the_objective_adds_none() -> None:
    found = planned(policy(annotations=OBJECTIVE, homogeneousTarget=single()))
    (only,) = found.plans.values()
    assert [metric.name for metric in only.targets[0].metrics] == ["load"]
    bare = planned(policy(metrics=[], homogeneousTarget=single()))
    assert bare.plans[serving()].targets[0].metrics == ()


def test_roles_that_can_scale_are_sampled_and_fixed_ones_are_not() -> None:
    fixed = {"minReplicas": 2, "maxReplicas": 2}
    target = {"targetRef": {"name": "m"}, "roles": {"decode": role(), "prefill": fixed}}
    found = planned(policy(metrics=[], annotations=OBJECTIVE, disaggregatedTarget=target))
    names = {
        part.key.role: [metric.name for metric in part.metrics]
        for one in found.plans.values()
        for part in one.targets
    }
    assert names == {"decode": NAMES, "prefill": []}


def test_only_with_an_objective_may_a_policy_be_without_metrics() -> None:
    admit(policy(metrics=[], annotations=OBJECTIVE, homogeneousTarget=single()).to_dict())
    with pytest.raises(ProblemsError, match="no metric to follow"):
        admit(policy(metrics=[], homogeneousTarget=single()).to_dict())
