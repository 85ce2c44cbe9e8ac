"""Refinements of policies, bindings and what they scale (autoscaling spec 1.2 to 1.6).

CEL of Kubernetes 1.27 knows no quantities. That one is above zero is said by its form; two are
compared where both are plain decimals, and whether a ratio can be reached is left to admission.
"""

from collections.abc import Mapping

from pydantic import BaseModel

from inferbus_contracts.manifests.forms import NOT_NEGATIVE, POSITIVE
from inferbus_contracts.manifests.refinement import CelRule, Refinement, Schema
from inferbus_contracts.resources import autoscaling, metadata, metric_sources, scaling_targets

MAX_METRICS = 32
"""Metrics of one policy; the rule that names differ compares each with each."""
_MAX_TARGETS = 100
"""Workloads of one mix, for the same reason."""
_MAX_SOURCES = 100
"""Places where the metrics of one role are read."""
_NAME_LENGTH = 253
"""Characters of the name of an object, a role or a metric."""

NAMED: Schema = {"minLength": 1, "maxLength": _NAME_LENGTH}
ABOVE_ZERO: Schema = {"minimum": 1, "pattern": POSITIVE}


def _key(metric: str) -> str:
    """The name of a metric, whichever field gives it."""
    return (
        f"(has({metric}.metricName) && {metric}.metricName != '' ? {metric}.metricName : "
        f"has({metric}.name) ? {metric}.name : '')"
    )


METRICS: Schema = {
    "maxItems": MAX_METRICS,
    "x-kubernetes-validations": [
        CelRule(
            f"self.all(a, self.exists_one(b, {_key('a')} == {_key('b')}))",
            "each metric needs a name of its own",
        ).as_validation()
    ],
}


def _number(quantity: str) -> str:
    """A quantity as a double; -1 for one whose form CEL can't read, e.g. with a suffix."""
    plain = "'^[0-9]{1,15}([.][0-9]{1,15})?$'"
    return f"(type({quantity}) == int || {quantity}.matches({plain}) ? double({quantity}) : -1.0)"


_GIVEN_TARGETS = """
[has(self.homogeneousTarget), has(self.heterogeneousTarget), has(self.disaggregatedTarget)]
"""
_GIVEN_CONFIGURATIONS = """
[has(self.scalingConfiguration), has(self.optimizerConfiguration),
has(self.homogeneousTarget), has(self.heterogeneousTarget)]
"""
_ROLES = "self.disaggregatedTarget.roles"
_HAS_METRICS = f"has({_ROLES}[name].metrics) || (has(self.metrics) && size(self.metrics) > 0)"
_FIXED = f"{_ROLES}[name].minReplicas == {_ROLES}[name].maxReplicas"


def _each_moving_role(demand: str) -> str:
    return f"!has(self.disaggregatedTarget) || {_ROLES}.all(name, {_FIXED} || ({demand}))"


_POLICY_RULES = (
    CelRule(
        f"{_GIVEN_TARGETS}.filter(given, given).size() <= 1",
        "only one of homogeneousTarget, heterogeneousTarget and disaggregatedTarget may be set",
    ),
    CelRule(
        _each_moving_role(_HAS_METRICS),
        "disaggregatedTarget.roles: a role whose bounds differ needs metrics, here or in the role",
    ),
    CelRule(
        _each_moving_role(
            f"has({_ROLES}[name].metricSources) && size({_ROLES}[name].metricSources) > 0"
        ),
        "disaggregatedTarget.roles: a role whose bounds differ needs metricSources",
    ),
    CelRule(
        _each_moving_role(
            f"!has({_ROLES}[name].metricSources) || !({_HAS_METRICS})"
            f" || {_ROLES}[name].metricSources.all(source, has({_ROLES}[name].metrics)"
            f" ? {_ROLES}[name].metrics.exists(metric, {_key('metric')} == source)"
            f" : self.metrics.exists(metric, {_key('metric')} == source))"
        ),
        "disaggregatedTarget.roles: metricSources are by the names of the role's metrics",
    ),
)

_SAME_TARGET = """
a.target.targetRef.name == b.target.targetRef.name
&& (has(a.target.targetRef.__namespace__) ? a.target.targetRef.__namespace__ : '')
== (has(b.target.targetRef.__namespace__) ? b.target.targetRef.__namespace__ : '')
&& (has(a.target.subTargets) ? a.target.subTargets.name : '')
== (has(b.target.subTargets) ? b.target.subTargets.name : '')
"""

REFINEMENTS: Mapping[type[BaseModel], Refinement] = {
    metadata.LabelSelector: Refinement(atomic=True),
    metadata.ObjectReference: Refinement(
        fields={"name": NAMED, "namespace": {"maxLength": 63}}, required=("name",), atomic=True
    ),
    metadata.LocalReference: Refinement(fields={"name": NAMED}, required=("name",), atomic=True),
    metric_sources.PolicyMetric: Refinement(
        fields={
            "metricName": {"maxLength": _NAME_LENGTH},
            "name": {"maxLength": _NAME_LENGTH},
            "targetValue": ABOVE_ZERO,
        },
        rules=(
            CelRule(
                "(has(self.metricName) && self.metricName != '')"
                " || (has(self.name) && self.name != '')",
                "metricName (or name, its later spelling) is missing",
            ),
        ),
    ),
    metric_sources.PrometheusSource: Refinement(fields={"serverURL": {"pattern": "^https?://"}}),
    metric_sources.MetricSource: Refinement(
        rules=(CelRule("has(self.pod) != has(self.prometheus)", "set one of pod and prometheus"),)
    ),
    scaling_targets.SubTarget: Refinement(
        fields={"kind": {"enum": ["", "Role"]}, "name": NAMED}, required=("name",)
    ),
    scaling_targets.HeterogeneousTarget: Refinement(
        fields={
            "params": {
                "maxItems": _MAX_TARGETS,
                "x-kubernetes-validations": [
                    CelRule(
                        f"self.all(a, self.exists_one(b, {_SAME_TARGET}))",
                        "each workload may be in the mix once",
                    ).as_validation()
                ],
            }
        }
    ),
    scaling_targets.RoleScaling: Refinement(
        fields={"metrics": METRICS, "metricSources": {"maxProperties": _MAX_SOURCES}},
        rules=(
            CelRule(
                "self.minReplicas <= self.maxReplicas", "minReplicas must not exceed maxReplicas"
            ),
        ),
    ),
    scaling_targets.RatioConstraint: Refinement(
        fields={
            "numeratorRole": {"maxLength": _NAME_LENGTH},
            "denominatorRole": {"maxLength": _NAME_LENGTH},
            "minRatio": {"minimum": 0, "pattern": NOT_NEGATIVE},
            "maxRatio": ABOVE_ZERO,
        },
        rules=(
            CelRule(
                "self.numeratorRole != self.denominatorRole",
                "numeratorRole and denominatorRole must differ",
            ),
            CelRule(
                f"[{_number('self.minRatio')}].all(least, [{_number('self.maxRatio')}].all(most,"
                " least < 0.0 || most < 0.0 || least <= most))",
                "minRatio must not exceed maxRatio",
            ),
        ),
    ),
    scaling_targets.DisaggregatedTarget: Refinement(
        rules=(
            CelRule("!('' in self.roles)", "roles: a role has no name"),
            CelRule(
                "!has(self.ratioConstraint) || (self.ratioConstraint.numeratorRole in self.roles"
                " && self.ratioConstraint.denominatorRole in self.roles)",
                "ratioConstraint: both roles must be among roles",
            ),
            CelRule(
                "!has(self.ratioConstraint)"
                " || !(self.ratioConstraint.numeratorRole in self.roles)"
                " || !(self.ratioConstraint.denominatorRole in self.roles)"
                " || (self.roles[self.ratioConstraint.numeratorRole].minReplicas == 0)"
                " == (self.roles[self.ratioConstraint.denominatorRole].minReplicas == 0)",
                "ratioConstraint: either both roles may go to zero or none",
            ),
        ),
    ),
    autoscaling.PolicyBody: Refinement(
        fields={"metrics": {**METRICS, "minItems": 1}}, required=("metrics",)
    ),
    autoscaling.AutoscalingPolicySpec: Refinement(fields={"metrics": METRICS}, rules=_POLICY_RULES),
    scaling_targets.AutoscalingPolicyBindingSpec: Refinement(
        rules=(
            CelRule(
                f"{_GIVEN_CONFIGURATIONS}.filter(given, given).size() == 1",
                "set one of scalingConfiguration and optimizerConfiguration",
            ),
        )
    ),
}
