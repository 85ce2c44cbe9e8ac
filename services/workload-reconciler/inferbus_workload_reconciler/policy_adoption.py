"""Which label names the newest revision: ours, or one that already stands for the same content.

An installation over a running fleet finds pods and snapshots whose labels another program computed.
Where their content is what the spec says, that label goes on standing for it, and nothing rolls
(defect MS_D1).

Invariant: adopting never claims more than it compared: a pod is taken as equal only if every field
that would be rendered for it is there with the same value.
"""

from collections.abc import Iterable, Mapping
from decimal import Decimal, InvalidOperation
from typing import Any, Final

from inferbus_workload_reconciler.observed import ObservedPod
from inferbus_workload_reconciler.policy_revisions import (
    RevisionHistory,
    revision_hash,
    same_content,
)
from inferbus_workload_reconciler.workload import PodTemplate, Slot, WorkloadSpec

_SUFFIXES: Final = {
    "n": Decimal("1e-9"),
    "u": Decimal("1e-6"),
    "m": Decimal("1e-3"),
    "": Decimal(1),
    "k": Decimal(10**3),
    "M": Decimal(10**6),
    "G": Decimal(10**9),
    "T": Decimal(10**12),
    "Ki": Decimal(2**10),
    "Mi": Decimal(2**20),
    "Gi": Decimal(2**30),
    "Ti": Decimal(2**40),
}


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
        if template is None or not _contains(pod.spec, template.spec):
            return None
        labels.add(pod.labels.get(workload.convention.revision_label, ""))
    return labels.pop() or None if len(labels) == 1 else None


def _template_for(workload: WorkloadSpec, slot: Slot) -> PodTemplate | None:
    role = workload.role(slot.role)
    if role is None or slot.worker_index >= role.template.size:
        return None
    return role.template.pod_template(slot.worker_index)


def _contains(actual: Any, wanted: Any) -> bool:
    """Whether everything wanted is there; a server may have filled in more."""
    if isinstance(wanted, Mapping):
        return isinstance(actual, Mapping) and all(
            value is None or _contains(actual.get(key), value) for key, value in wanted.items()
        )
    if isinstance(wanted, list | tuple):
        return isinstance(actual, list | tuple) and _contains_items(actual, wanted)
    return bool(actual == wanted) or _same_quantity(actual, wanted)


def _contains_items(actual: Iterable[Any], wanted: Iterable[Any]) -> bool:
    """Named entries match by name, as injected ones may stand between; other lists whole."""
    actual, wanted = list(actual), list(wanted)
    if all(isinstance(item, Mapping) and "name" in item for item in (*actual, *wanted)):
        by_name = {item["name"]: item for item in actual}
        return all(_contains(by_name.get(item["name"]), item) for item in wanted)
    return len(actual) == len(wanted) and all(
        _contains(one, other) for one, other in zip(actual, wanted, strict=True)
    )


def _same_quantity(actual: Any, wanted: Any) -> bool:
    """A server stores `1000m` as `1`."""
    values = [_quantity(value) for value in (actual, wanted)]
    return None not in values and values[0] == values[1]


def _quantity(value: Any) -> Decimal | None:
    text = str(value)
    number = text.rstrip("KMGTinumk")
    factor = _SUFFIXES.get(text[len(number) :])
    try:
        return None if factor is None else Decimal(number) * factor
    except InvalidOperation:
        return None
