"""Policies and bindings of every version become the right plans; the rest becomes problems."""

import random
from typing import Any

import pytest
from collector_builders import (
    binding,
    mix,
    planned,
    policy,
    role,
    serving,
    single,
)

from inferbus_contracts.errors import ErrorCode
from inferbus_contracts.events.metrics import MetricKind
from inferbus_contracts.keys import ObjectKey
from inferbus_metrics_collector.core import wanted_families
from inferbus_metrics_collector.plans import Page, PodMetric, PrometheusMetric, TargetPlan
from inferbus_metrics_collector.policy_selection import Selector
from inferbus_metrics_collector.policy_targets import NamespaceGrants, Planned
from inferbus_shared.pages.names import COMMON_NAMES, families_of

POLICY = ObjectKey("AutoscalingPolicy", "default", "p")
BINDING = ObjectKey("AutoscalingPolicyBinding", "default", "b")


def only_target(found: Planned) -> TargetPlan:
    assert not found.problems
    (plan,) = found.plans.values()
    (target,) = plan.targets
    return target


def only_metric(found: Planned) -> PodMetric:
    (metric,) = only_target(found).metrics
    assert isinstance(metric, PodMetric)
    return metric


@pytest.mark.parametrize("field", ["scalingConfiguration", "homogeneousTarget"])
def test_a_binding_applies_a_policy_under_both_spellings(field: str) -> None:
    old = policy(metrics=[{"metricName": "vllm:num_requests_waiting", "targetValue": 1}])
    target: dict[str, Any] = {field: single()}
    found = planned(old, binding("b", **target))
    (plan,) = found.plans.values()
    assert (plan.key, plan.policy) == (serving(), BINDING)
    assert plan.identity == "uid-b:1/uid-p:1"
    assert only_metric(found).families == ("vllm:num_requests_waiting",)


def test_f3_a_metric_without_a_place_is_read_on_port_8100() -> None:
    assert only_metric(planned(policy(), binding(scalingConfiguration=single()))).page == Page(
        8100, "/metrics"
    )
    assert only_metric(planned(policy(homogeneousTarget=single()))).page == Page(8100, "/metrics")


def test_an_endpoint_of_v01_and_its_labels_are_used() -> None:
    target = single(
        metricEndpoint={"port": 8000, "uri": "stats"}, additionalMatchLabels={"tier": "a"}
    )
    metric = only_metric(planned(policy(), binding(scalingConfiguration=target)))
    assert metric.page == Page(8000, "/stats")
    assert metric.selector.matches({"tier": "a"})
    assert not metric.selector.matches({})


def test_a_policy_of_v10_names_family_page_and_selector() -> None:
    source = {
        "name": "vllm:num_requests_running",
        "uri": "/m",
        "port": 9,
        "labelSelector": {
            "matchExpressions": [{"key": "gpu", "operator": "In", "values": ["a", "b"]}]
        },
    }
    found = planned(policy(homogeneousTarget=single(metricSources={"load": {"pod": source}})))
    metric = only_metric(found)
    assert (metric.name, metric.families) == ("load", ("vllm:num_requests_running",))
    assert metric.page == Page(9, "/m")
    assert metric.selector.matches({"gpu": "b"})
    assert not metric.selector.matches({"gpu": "c"})


def test_two_metrics_on_two_pages_stay_two() -> None:
    metrics = [{"name": name, "targetValue": 1} for name in ("a", "b")]
    sources = {"a": {"pod": {"port": 1}}, "b": {"pod": {"port": 2}}}
    target = only_target(
        planned(policy(metrics=metrics, homogeneousTarget=single(metricSources=sources)))
    )
    assert [metric.page.port for metric in target.pod_metrics] == [1, 2]


def prometheus(**fields: str) -> dict[str, object]:
    source = {"serverURL": "http://prom:9090/", "query": "sum(x)"} | fields
    return single(metricSources={"load": {"prometheus": source}})


@pytest.mark.parametrize(
    ("annotation", "kind"),
    [
        (None, MetricKind.EXTERNAL_TOTAL),
        ("total", MetricKind.EXTERNAL_TOTAL),
        ("average", MetricKind.EXTERNAL_AVERAGE),
        ("other=average,load=utilisation", MetricKind.EXTERNAL_UTILISATION),
        ("load=utilization", MetricKind.EXTERNAL_UTILISATION),
        ("other=average", MetricKind.EXTERNAL_TOTAL),
        ("average, load=total", MetricKind.EXTERNAL_TOTAL),
    ],
)
def test_as_d03_totals_averages_and_utilisations_are_told_apart(
    annotation: str | None, kind: MetricKind
) -> None:
    annotations = {} if annotation is None else {"inferbus.dev/aggregation": annotation}
    target = only_target(planned(policy(annotations=annotations, homogeneousTarget=prometheus())))
    expected = PrometheusMetric(
        name="load", server_url="http://prom:9090", query="sum(x)", kind=kind
    )
    assert target.metrics == (expected,)


def test_a_mix_is_one_sample_keyed_by_whoever_names_it() -> None:
    for found, key in (
        (planned(policy(heterogeneousTarget=mix("x", "y"))), POLICY),
        (planned(policy(), binding(optimizerConfiguration=mix("x", "y"))), BINDING),
    ):
        plan = found.plans[key]
        assert plan.policy == key
        assert [target.key for target in plan.targets] == [serving("x"), serving("y")]


def test_as_d18_a_workload_is_in_a_mix_once() -> None:
    plan = planned(policy(heterogeneousTarget=mix("x", "x"))).plans[POLICY]
    assert [target.key for target in plan.targets] == [serving("x")]


def test_roles_are_one_sample_with_their_own_metrics_each() -> None:
    roles = {
        "prefill": role(metrics=[{"name": "queue", "targetValue": 1}]),
        "decode": role(metricSources={"load": {"pod": {"port": 9}}}),
    }
    reference = {"kind": "ModelServing", "name": "m"}
    found = planned(policy(disaggregatedTarget={"targetRef": reference, "roles": roles}))
    (plan,) = found.plans.values()
    assert plan.key == plan.policy == POLICY
    metrics = {
        target.key.role: [(metric.name, metric.page.port) for metric in target.pod_metrics]
        for target in plan.targets
    }
    assert metrics == {"prefill": [("queue", 8100)], "decode": [("load", 9)]}


def test_a_role_alone_is_a_sample_of_its_own_though_it_has_nothing_to_decide() -> None:
    reference = {"kind": "ModelServing", "name": "m"}
    fixed = {"prefill": {"minReplicas": 2, "maxReplicas": 2}}
    found = planned(policy(disaggregatedTarget={"targetRef": reference, "roles": fixed}))
    assert found.plans[serving(role="prefill")].targets[0].metrics == ()


def test_a_role_named_by_sub_targets_is_the_target() -> None:
    target = single(subTargets={"kind": "Role", "name": "decode"})
    found = planned(policy(), binding(homogeneousTarget=target))
    assert list(found.plans) == [serving(role="decode")]


def test_the_labels_that_make_a_pod_stand_for_its_target_cannot_be_overridden() -> None:
    labels = {
        "modelserving.volcano.sh/name": "other",
        "modelserving.volcano.sh/entry": "false",
        "modelserving.volcano.sh/role": "prefill",
    }
    whole = only_metric(
        planned(policy(), binding(scalingConfiguration=single(additionalMatchLabels=labels)))
    )
    assert whole.selector.labels == {("modelserving.volcano.sh/role", "prefill")}
    part = single(subTargets={"name": "decode"}, additionalMatchLabels=labels)
    assert only_metric(planned(policy(), binding(homogeneousTarget=part))).selector == Selector()


def test_of_two_policies_on_one_target_the_older_wins_and_the_other_is_told() -> None:
    old = policy("zz", created="2025-01-01T00:00:00Z", homogeneousTarget=single())
    young = policy("aa", created="2026-01-01T00:00:00Z", homogeneousTarget=single())
    nameless = policy("a0", created=None, homogeneousTarget=single())
    objects = [old, young, nameless]
    for _ in range(6):
        random.Random(0).shuffle(objects)
        found = planned(*objects)
        assert [plan.policy.name for plan in found.plans.values()] == ["zz"]
        assert {key.name for key in found.problems} == {"aa", "a0"}
        assert {p.code for items in found.problems.values() for p in items} == {ErrorCode.CONFLICT}


def test_policies_of_one_age_are_told_apart_by_name() -> None:
    found = planned(
        policy("b", homogeneousTarget=single()), policy("a", homogeneousTarget=single())
    )
    assert [plan.policy.name for plan in found.plans.values()] == ["a"]


def test_a_mix_that_shares_a_workload_with_an_older_policy_loses_as_a_whole() -> None:
    old = policy("old", created="2025-01-01T00:00:00Z", homogeneousTarget=single("x"))
    found = planned(old, policy("young", heterogeneousTarget=mix("x", "y")))
    assert list(found.plans) == [serving("x")]


@pytest.mark.parametrize(
    ("target", "code", "field"),
    [
        (single(ref={"name": None}), ErrorCode.MISSING_FIELD, "spec.target.targetRef.name"),
        (
            single(ref={"namespace": "other"}),
            ErrorCode.PERMISSION_DENIED,
            "spec.target.targetRef.namespace",
        ),
        (
            prometheus(serverURL="http://169.254.169.254/"),
            ErrorCode.VALUE_OUT_OF_RANGE,
            "spec.target.metricSources.load.prometheus.serverURL",
        ),
        (
            single(
                metricSources={
                    "load": {
                        "pod": {
                            "labelSelector": {
                                "matchExpressions": [{"key": "a", "operator": "Near"}]
                            }
                        }
                    }
                }
            ),
            ErrorCode.VALUE_OUT_OF_RANGE,
            "spec.target.labelSelector.matchExpressions",
        ),
    ],
)
def test_what_cannot_be_planned_is_a_problem_that_says_where(
    target: dict[str, object], code: ErrorCode, field: str
) -> None:
    found = planned(policy(homogeneousTarget=target))
    assert found.plans == {}
    (problem,) = found.problems[POLICY]
    assert (problem.code, problem.field, problem.object) == (code, field, str(POLICY))
    assert problem.remedy


def test_a_misspelt_aggregation_is_a_problem() -> None:
    annotations = {"inferbus.dev/aggregation": "load=mean"}
    found = planned(policy(annotations=annotations, homogeneousTarget=prometheus()))
    (problem,) = found.problems[POLICY]
    assert problem.value == "load=mean"


def test_a_binding_without_its_policy_is_a_problem_and_no_plan() -> None:
    found = planned(binding(scalingConfiguration=single()))
    assert found.plans == {}
    (problem,) = found.problems[BINDING]
    assert problem.code is ErrorCode.MISSING_REFERENCE
    assert problem.value == "p"


def test_as_d25_another_namespace_needs_a_grant() -> None:
    wanted = policy(homogeneousTarget=single(ref={"namespace": "other"}))
    for pair, allowed in (
        (("default", "other"), True),
        (("*", "other"), True),
        (("default", "*"), True),
        (("other", "default"), False),
    ):
        found = planned(wanted, grants=NamespaceGrants(pairs=frozenset({pair})))
        assert bool(found.plans) is allowed
    assert [key.namespace for key in found.problems] == ["default"]


def test_a_binding_stays_in_its_own_namespace_whatever_its_reference_says() -> None:
    found = planned(policy(), binding(scalingConfiguration=single(ref={"namespace": "other"})))
    assert list(found.plans) == [serving()]


def test_kinds_of_targets() -> None:
    assert list(planned(policy(homogeneousTarget=single(ref={"kind": None}))).plans) == [serving()]
    llmaz = single(ref={"kind": "Playground", "apiVersion": "inference.llmaz.io/v1alpha1"})
    assert list(planned(policy(homogeneousTarget=llmaz)).plans) == [
        ObjectKey("Playground", "default", "m")
    ]


def test_plans_of_one_page_share_what_they_look_for() -> None:
    named = policy(
        "q",
        metrics=[{"name": "kthena:num_requests_waiting", "targetValue": 1}],
        disaggregatedTarget={
            "targetRef": {"name": "m"},
            "roles": {"a": role(), "b": role()},
        },
    )
    found = planned(policy(homogeneousTarget=single()), named)
    wanted = wanted_families(found.plans.values())
    assert list(wanted) == [(serving(), Page(8100, "/metrics"))]
    assert {"load", "kthena:num_requests_waiting", "vllm:num_requests_waiting"} <= wanted[
        serving(), Page(8100, "/metrics")
    ]


def test_a_common_name_asks_for_every_engines_own() -> None:
    assert families_of("kthena:num_requests_waiting") == (
        "kthena:num_requests_waiting",
        "vllm:num_requests_waiting",
        "sglang:num_queue_reqs",
        "tgi_queue_size",
        "llamacpp:requests_deferred",
        "trtllm_num_requests_waiting",
    )
    assert families_of("vllm:gpu_cache_usage_perc") == (
        "vllm:gpu_cache_usage_perc",
        "vllm:kv_cache_usage_perc",
    )
    assert families_of("my_own") == ("my_own",)


def test_no_family_answers_for_two_common_names() -> None:
    answers = [family for name in COMMON_NAMES for family in families_of(name)]
    assert len(answers) == len(set(answers))
