"""The pods of an inference Service as a LeaderWorkerSet has them.

Invariant: what the Service's author wrote into the templates stays; models, accelerators, nodes and
labels are added to leader and workers alike, since both hold parts of the model (llmaz spec 2.4 to
2.6, 2.8).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from inferbus_contracts.resources.inference import InferenceService, WorkloadTemplate
from inferbus_spec_watcher.expansion.flavors import Placement, placed, tolerating
from inferbus_spec_watcher.expansion.manifests import present
from inferbus_spec_watcher.expansion.model_loader import Loading, with_models
from inferbus_spec_watcher.expansion.model_sources import ClaimedModel

FAMILY_LABEL = "llmaz.io/model-family-name"
MODEL_LABEL = "llmaz.io/model-name"
FLAVORS_ANNOTATION = "llmaz.io/inference-service-flavors"

STARTUP_POLICY = "LeaderCreated"
"""Leaders of several hosts get ready only after their workers came (defect LZ_D3)."""


@dataclass(frozen=True, kw_only=True)
class PodChanges:
    """What is added to the templates of a Service."""

    main: ClaimedModel
    flavors: Sequence[str]
    """The claimed names."""
    loading: Loading
    placement: Placement
    tolerations: Sequence[Mapping[str, Any]]
    scheduler: str

    def template(
        self, template: Mapping[str, Any], annotations: Mapping[str, str] | None = None
    ) -> dict[str, Any]:
        """A copy of a pod template with everything added."""
        metadata = template.get("metadata") or {}
        labels = {
            FAMILY_LABEL: self.main.model.spec.family_name,
            MODEL_LABEL: self.main.model.metadata.name,
        }
        flavors = {FLAVORS_ANNOTATION: ",".join(self.flavors)} if self.flavors else {}
        added = {**(metadata.get("annotations") or {}), **(annotations or {}), **flavors}
        return {
            "metadata": {
                **metadata,
                **present(labels={**(metadata.get("labels") or {}), **labels}, annotations=added),
            },
            "spec": self._spec(template.get("spec") or {}),
        }

    def _spec(self, pod_spec: Mapping[str, Any]) -> dict[str, Any]:
        spec = placed(with_models(pod_spec, self.loading), self.placement)
        spec = tolerating(spec, self.tolerations)
        if self.scheduler and not spec.get("schedulerName"):
            spec["schedulerName"] = self.scheduler
        return spec


def leader_of(template: WorkloadTemplate) -> Mapping[str, Any]:
    """The pod template of those that answer: pods of a single host lead themselves."""
    return template.leader_template or template.worker_template


def leader_worker_spec(
    service: InferenceService, changes: PodChanges, leader_annotations: Mapping[str, str]
) -> dict[str, Any]:
    """`spec` of the LeaderWorkerSet; restart and sub-group policies are handed on (T60)."""
    template = service.spec.workload_template
    several = template.leader_template is not None
    worker = changes.template(template.worker_template, {} if several else leader_annotations)
    groups = present(
        leaderTemplate=changes.template(template.leader_template, leader_annotations)
        if template.leader_template is not None
        else None,
        workerTemplate=worker,
        size=template.size,
        restartPolicy=template.restart_policy.value,
        subGroupPolicy=template.sub_group_policy,
    )
    return {
        "replicas": service.spec.replicas,
        "startupPolicy": STARTUP_POLICY,
        "rolloutStrategy": service.spec.rollout_strategy.to_dict(),
        "leaderWorkerTemplate": groups,
    }
