"""Status of a Playground and of an inference Service (llmaz spec 4.1, 9.4).

Replicas and selector come from the workload; `Progressing` turns False when there is nothing left
to wait for (the reference leaves it True for ever).
"""

from collections.abc import Sequence

from inferbus_contracts.conditions import condition
from inferbus_contracts.events.route import ConditionFact
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.resources.kinds import (
    INFERENCE_SERVICE,
    LEADER_WORKER_SET,
    MODEL_SERVING,
    PLAYGROUND,
)
from inferbus_shared.objects.picture import StoredObject
from inferbus_spec_watcher.expansion.conditions import OCCASIONAL, PROGRESSING
from inferbus_spec_watcher.status.part import StatusPart
from inferbus_spec_watcher.status.view import View
from inferbus_spec_watcher.status.workloads import AVAILABLE, count, is_available

_CHILDREN = {
    PLAYGROUND: (INFERENCE_SERVICE,),
    INFERENCE_SERVICE: (LEADER_WORKER_SET, MODEL_SERVING),
}
_SELECTOR = {
    INFERENCE_SERVICE: "selector",
    LEADER_WORKER_SET: "hpaPodSelector",
    MODEL_SERVING: "labelSelector",
}
"""Where a child's status holds the selector of its pods."""


def inference_status(key: ObjectKey, stored: StoredObject, view: View) -> StatusPart | None:
    """None until the object was expanded."""
    verdict = view.verdict_on(key, stored)
    if verdict is None:
        return None
    found = {
        one: child
        for one in view.children(stored.uid)
        if one.kind in _CHILDREN[key.kind] and (child := view.get(one)) is not None
    }
    children = list(found.values())
    told = {one.type for one in verdict.conditions}
    conditions = (
        *(one for one in _progress(key.kind, stored, children) if one.type not in told),
        *verdict.conditions,
    )
    selectors = [
        str((child.object.get("status") or {}).get(_SELECTOR[one.kind]) or "")
        for one, child in found.items()
    ]
    fields = {
        "replicas": sum(count(child, "replicas") for child in children),
        "selector": next(filter(None, selectors), ""),
    }
    return StatusPart(conditions, fields, verdict.generation, OCCASIONAL)


def _progress(
    kind: str, stored: StoredObject, children: Sequence[StoredObject]
) -> list[ConditionFact]:
    previous = {
        one["type"]: one for one in (stored.object.get("status") or {}).get("conditions") or ()
    }
    if children and all(is_available(child) for child in children):
        ready = f"{kind}Ready"
        return [condition(AVAILABLE, True, ready), condition(PROGRESSING, False, ready)]
    if AVAILABLE in previous:
        return [
            condition(AVAILABLE, False, f"{kind}NotReady"),
            condition(PROGRESSING, True, f"{kind}InProgress"),
        ]
    reason = "Pending" if kind == PLAYGROUND else f"{kind}InProgress"
    return [condition(PROGRESSING, True, reason)]
