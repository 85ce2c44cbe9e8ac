"""Which label names the newest revision: ours, or one that already stands for the same content.

An installation over a running fleet finds pods and snapshots whose labels another program computed.
Where their content is what the spec says, that label goes on standing for it, and nothing rolls
(defect MS_D1).

Invariant: adopting never claims more than it compared: a pod is taken as equal only if every field
that would be rendered for it is there with the same value.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from inferbus_workload_reconciler.observed import ObservedPod
from inferbus_workload_reconciler.policy_resources import same_quantity
from inferbus_workload_reconciler.policy_revisions import (
    RevisionHistory,
    revision_hash,
    same_content,
)
from inferbus_workload_reconciler.workload import PodTemplate, Slot, WorkloadSpec


def target_revision(
    workload: WorkloadSpec, history: RevisionHistory, pods: Iterable[tuple[Slot, ObservedPod]]
) -> str:
    """The label of the newest revision.

    In this order: the newest snapshot of equal content; the label of running pods of equal content
    when there are no snapshots at all (a fleet from before snapshots existed); a new hash.
    """
    templates = [role.template for role in workload.roles]
    equal = [one for one in history.snapshots.values() if same_content(one.roles, templates)]
    if equal:
        return max(equal, key=lambda one: (one.number, one.label)).label
    own = revision_hash(templates)
    return own if history.snapshots else _label_of_equal_pods(workload, pods) or own


def _label_of_equal_pods(
    workload: WorkloadSpec, pods: Iterable[tuple[Slot, ObservedPod]]
) -> str | None:
    """The one label under which all pods have the newest content, if there is one."""
    labels = set()
    for slot, pod in pods:
        template = _template_for(workload, slot)
        if template is None or not _is_built_from(workload, slot, pod, template):
            return None
        labels.add(pod.labels.get(workload.convention.revision_label, ""))
    return labels.pop() or None if len(labels) == 1 else None


def _is_built_from(
    workload: WorkloadSpec, slot: Slot, pod: ObservedPod, template: PodTemplate
) -> bool:
    return (
        _contains(pod.spec, _without_injected(workload, slot, template.spec))
        and _contains(pod.labels, template.labels)
        and _contains(pod.annotations, template.annotations)
    )


def _without_injected(
    workload: WorkloadSpec, slot: Slot, spec: Mapping[str, Any]
) -> dict[str, Any]:
    """The template's spec without variables of a user that ours take the place of."""
    injected = workload.convention.environment(workload.namespace, workload.name, slot, 1)
    ours = {variable["name"] for variable in injected.variables}
    own = dict(spec)
    for part in ("initContainers", "containers"):
        if own.get(part):
            own[part] = [{**one, "env": _others(one, ours)} for one in own[part]]
    return own


def _others(container: Mapping[str, Any], ours: Collection[str]) -> list[Any] | None:
    """The container's variables beside ours; None without any, as any number may be added."""
    return [one for one in container.get("env") or () if one.get("name") not in ours] or None


def _template_for(workload: WorkloadSpec, slot: Slot) -> PodTemplate | None:
    role = workload.role(slot.role)
    if role is None or slot.worker_index >= role.template.size:
        return None
    return role.template.pod_template(slot.worker_index)


def _contains(actual: Any, wanted: Any) -> bool:
    """Whether everything wanted is there; a server may have filled in more."""
    if wanted is None or wanted == {}:
        return True
    if wanted in ("", []) or wanted is False:
        return not actual
    if isinstance(wanted, Mapping):
        return isinstance(actual, Mapping) and all(
            _contains(actual.get(key), value) for key, value in wanted.items()
        )
    if isinstance(wanted, list | tuple):
        return isinstance(actual, list | tuple) and _contains_items(actual, wanted)
    return bool(actual == wanted) or same_quantity(actual, wanted)


def _contains_items(actual: Sequence[Any], wanted: Sequence[Any]) -> bool:
    """Entries may have been added between objects, as environment, mounts and tolerations are."""
    if not all(isinstance(item, Mapping) for item in (*actual, *wanted)):
        return list(actual) == list(wanted)
    rest = iter(actual)
    return all(any(_contains(item, one) for item in rest) for one in wanted)
