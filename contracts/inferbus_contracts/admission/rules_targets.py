"""Rules about single targets and mixes, wherever they stand (autoscaling spec 1.3, 1.4, 1.6).

Every check takes the path of what it checks, because policies and bindings hold the same parts.
"""

from collections.abc import Iterator, Mapping, Sequence

from inferbus_contracts.admission.paths import child
from inferbus_contracts.admission.rule import Finding
from inferbus_contracts.errors import ErrorCode
from inferbus_contracts.resources.kinds import LEADER_WORKER_SET, find_kind
from inferbus_contracts.resources.metadata import ObjectReference
from inferbus_contracts.resources.metric_sources import MetricSource, PolicyMetric
from inferbus_contracts.resources.scaling_targets import (
    HeterogeneousTarget,
    HomogeneousTarget,
    RoleScaling,
    Target,
)

SCALED_KIND = "ModelServing"
SCALED_GROUP = "workload.serving.volcano.sh"
ROLE_KIND = "Role"


def reference_named(reference: ObjectReference, path: str) -> Iterator[Finding]:
    """A reference without a name refers to nothing."""
    if not reference.name:
        yield Finding(
            code=ErrorCode.MISSING_FIELD,
            field=child(path, "name"),
            message="the reference names nothing",
            remedy="add the name of the ModelServing to scale",
        )


def reference_is_serving(reference: ObjectReference, path: str) -> Iterator[Finding]:
    """Upstream scales ModelServings alone.

    A LeaderWorkerSet named with its own group is no slip: it is what llmaz' models run as, and this
    platform scales it like a ModelServing.
    """
    known = find_kind(reference.api_version or "", reference.kind or "")
    if known is not None and known.token == LEADER_WORKER_SET:
        return
    if reference.kind not in (None, "", SCALED_KIND):
        yield Finding(
            field=child(path, "kind"),
            message=f"Kthena scales {SCALED_KIND} only",
            value=reference.kind,
            remedy=f"refer to a {SCALED_KIND} if the document should work there too",
        )
    group = (reference.api_version or "").rpartition("/")[0]
    if (
        reference.api_version
        and reference.kind in (None, "", SCALED_KIND)
        and group != SCALED_GROUP
    ):
        yield Finding(
            field=child(path, "apiVersion"),
            message=f"{SCALED_KIND} belongs to the group {SCALED_GROUP}",
            value=reference.api_version,
            remedy=f"write {SCALED_GROUP}/v1alpha1, or leave it out",
        )


def sub_target_is_role(scaled: HomogeneousTarget, path: str) -> Iterator[Finding]:
    """Only a role can be scaled inside a workload."""
    part = scaled.target.sub_targets
    if part is None:
        return
    if part.kind not in (None, "", ROLE_KIND):
        yield Finding(
            field=f"{path}.target.subTargets.kind",
            message=f"only a {ROLE_KIND} can be scaled inside a workload",
            value=part.kind,
            remedy=f"write {ROLE_KIND}",
        )
    if not part.name:
        yield Finding(
            code=ErrorCode.MISSING_FIELD,
            field=f"{path}.target.subTargets.name",
            message="the part to scale has no name",
            remedy="add the name of the role",
        )


def bounds_ordered(target: HomogeneousTarget | RoleScaling, path: str) -> Iterator[Finding]:
    """minReplicas should not exceed maxReplicas."""
    if target.min_replicas > target.max_replicas:
        yield Finding(
            field=child(path, "minReplicas"),
            message=f"is above maxReplicas ({target.max_replicas})",
            value=target.min_replicas,
            remedy="make minReplicas at most maxReplicas",
        )


def sources_well_formed(sources: Mapping[str, MetricSource], path: str) -> Iterator[Finding]:
    """One place to read a metric from, and one that can be read."""
    for name, source in sources.items():
        place = child(f"{path}.metricSources", name)
        if (source.pod is None) == (source.prometheus is None):
            yield Finding(
                field=place,
                message="should name exactly one of pod and prometheus",
                remedy="keep the one that has the metric",
            )
        server = source.prometheus.server_url if source.prometheus else "http://"
        if not server.startswith(("http://", "https://")):
            yield Finding(
                code=ErrorCode.VALUE_OUT_OF_RANGE,
                field=f"{place}.prometheus.serverURL",
                message="is not the address of an HTTP server",
                value=server,
                remedy="begin it with http:// or https://",
            )


def target_sources_well_formed(scaled: HomogeneousTarget, path: str) -> Iterator[Finding]:
    """Every source of one target can be read."""
    return sources_well_formed(scaled.target.metric_sources, f"{path}.target")


def page_paths_rooted(scaled: HomogeneousTarget, path: str) -> Iterator[Finding]:
    """The path of a page begins with a slash."""
    target = scaled.target
    pages = {f"{path}.target.metricEndpoint.uri": target.endpoint.uri} | {
        f"{child(f'{path}.target.metricSources', name)}.pod.uri": source.pod.uri
        for name, source in target.metric_sources.items()
        if source.pod is not None
    }
    for field, uri in pages.items():
        if not uri.startswith("/"):
            yield Finding(
                field=field,
                message="doesn't begin with /; it is read as if it did",
                value=uri,
                remedy="begin the path with /",
            )


def source_keys_known(
    target: Target, metrics: Sequence[PolicyMetric], path: str
) -> Iterator[Finding]:
    """Metrics and their sources should match."""
    names = {metric.key for metric in metrics}
    for name in target.metric_sources:
        if name not in names:
            yield Finding(
                field=child(f"{path}.metricSources", name),
                message="the policy has no metric of this name",
                remedy=f"use one of {', '.join(sorted(names))}, or remove it",
            )
    for name in sorted(names - set(target.metric_sources) if target.metric_sources else ()):
        yield Finding(
            field=f"{path}.metricSources",
            message=f"says nothing about the metric {name!r}, read on port 8100 of the pods",
            remedy=f"add an entry {name!r}",
        )


def targets_distinct(mix: HeterogeneousTarget, path: str) -> Iterator[Finding]:
    """One workload can't have two numbers of replicas (defect D18)."""
    seen: set[tuple[str | None, ...]] = set()
    for index, param in enumerate(mix.params):
        reference, part = param.target.target_ref, param.target.sub_targets
        identity = (reference.namespace, reference.name, part.name if part else None)
        if identity in seen:
            yield Finding(
                code=ErrorCode.DUPLICATE_NAME,
                field=f"{path}.params[{index}].target.targetRef.name",
                message="the same workload is already in the mix",
                value=reference.name,
                remedy="keep one entry for each workload",
            )
        seen.add(identity)
