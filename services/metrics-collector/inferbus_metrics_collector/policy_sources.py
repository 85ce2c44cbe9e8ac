"""Where each metric of a policy is read: on its pods' pages, or from a Prometheus server.

Invariant: a metric that says nothing about its source is read on the pods, port 8100 and /metrics
(ruling F3, which holds for both generations of the API).
"""

from collections.abc import Mapping
from dataclasses import dataclass

from inferbus_contracts.errors import ErrorCode, Problem, ProblemsError
from inferbus_contracts.events.metrics import MetricKind
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.resources.annotations import (
    AGGREGATION,
    Aggregation,
    Aggregations,
    parse_aggregations,
)
from inferbus_contracts.resources.metadata import LabelSelector
from inferbus_contracts.resources.metric_sources import (
    MetricEndpoint,
    MetricSource,
    PodSource,
    PolicyMetric,
    PrometheusSource,
)
from inferbus_contracts.resources.scaling_targets import RoleScaling, Target
from inferbus_metrics_collector.plans import ENGINE_PORT, Page, PodMetric, PrometheusMetric
from inferbus_metrics_collector.policy_access import request_path, server_url_problem
from inferbus_metrics_collector.policy_objective import OBJECTIVE_FAMILIES
from inferbus_metrics_collector.policy_selection import Selector, selector
from inferbus_shared.pages.names import families_of

_KINDS = {
    Aggregation.TOTAL: MetricKind.EXTERNAL_TOTAL,
    Aggregation.AVERAGE: MetricKind.EXTERNAL_AVERAGE,
    Aggregation.UTILISATION: MetricKind.EXTERNAL_UTILISATION,
}

_ENGINE_PAGE = Page(ENGINE_PORT, MetricEndpoint().uri)


def aggregations(owner: ObjectKey, annotations: Mapping[str, str]) -> Aggregations:
    """What the annotation says; raises `ProblemsError` when it can't be understood."""
    text = annotations.get(AGGREGATION)
    if text is None:
        return Aggregations()
    try:
        return parse_aggregations(text)
    except ValueError as error:
        raise ProblemsError(
            Problem(
                code=ErrorCode.VALUE_OUT_OF_RANGE,
                message=f"is no way to aggregate: {error}",
                object=str(owner),
                field=f"metadata.annotations[{AGGREGATION}]",
                value=text,
                remedy="use total, average or utilisation, e.g. average or gpu=utilisation",
            )
        ) from None


@dataclass(frozen=True, kw_only=True, slots=True)
class MetricReader:
    """Finds the sources of one target's metrics; raises `ProblemsError` for an unusable one."""

    owner: ObjectKey
    place: str
    """Path of the target in its object."""
    role: str
    """The role that the target is; empty for a whole workload."""
    aggregations: Aggregations

    def of_target(self, metric: PolicyMetric, target: Target) -> PodMetric | PrometheusMetric:
        """A metric of a whole workload, or of one by `subTargets`."""
        endpoint = target.endpoint
        source = target.metric_sources.get(metric.key)
        narrowed = endpoint.label_selector
        return self._of(metric, source, endpoint, target.additional_match_labels, narrowed)

    def of_objective(self, name: str, target: Target | None) -> PodMetric:
        """One of `OBJECTIVE_FAMILIES`, from the target's page, else from each pod's engine.

        Without a `target` it is a role's.
        """
        endpoint = target.metric_endpoint if target else None
        labels = target.additional_match_labels if target else {}
        return PodMetric(
            name=name,
            families=OBJECTIVE_FAMILIES[name],
            page=Page(endpoint.port, request_path(endpoint.uri)) if endpoint else _ENGINE_PAGE,
            selector=self._selector(labels, endpoint.label_selector if endpoint else None),
            is_optional=True,
        )

    def of_role(self, metric: PolicyMetric, scaling: RoleScaling) -> PodMetric | PrometheusMetric:
        """A metric of a role of a disaggregated target."""
        return self._of(metric, scaling.metric_sources.get(metric.key), MetricEndpoint(), {}, None)

    def _of(
        self,
        metric: PolicyMetric,
        source: MetricSource | None,
        endpoint: MetricEndpoint,
        labels: Mapping[str, str],
        narrowed: LabelSelector | None,
    ) -> PodMetric | PrometheusMetric:
        if source is not None and source.prometheus is not None:
            return self._prometheus(metric.key, source.prometheus)
        pod = source.pod if source is not None else None
        if pod is None:
            pod = PodSource(uri=endpoint.uri, port=endpoint.port, label_selector=narrowed)
        return PodMetric(
            name=metric.key,
            families=families_of(pod.name or metric.key),
            page=Page(pod.port, request_path(pod.uri)),
            selector=self._selector(labels, pod.label_selector),
        )

    def _prometheus(self, name: str, source: PrometheusSource) -> PrometheusMetric:
        wrong = server_url_problem(source.server_url)
        if wrong:
            raise ProblemsError(
                self._problem(
                    f"metricSources.{name}.prometheus.serverURL",
                    wrong,
                    source.server_url,
                    "give the address of the Prometheus server",
                )
            )
        return PrometheusMetric(
            name=name,
            server_url=source.server_url.rstrip("/"),
            query=source.query,
            kind=_KINDS[self.aggregations.of(name)],
        )

    def _selector(self, labels: Mapping[str, str], narrowed: LabelSelector | None) -> Selector:
        try:
            return selector(labels, narrowed, role=bool(self.role))
        except ValueError as error:
            raise ProblemsError(
                self._problem(
                    "labelSelector.matchExpressions", str(error), None, "correct the operator"
                )
            ) from None

    def _problem(self, field: str, message: str, value: str | None, remedy: str) -> Problem:
        return Problem(
            code=ErrorCode.VALUE_OUT_OF_RANGE,
            message=message,
            object=str(self.owner),
            field=f"{self.place}.{field}",
            value=value,
            remedy=remedy,
        )
