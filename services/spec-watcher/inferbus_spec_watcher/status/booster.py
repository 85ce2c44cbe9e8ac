"""Status of a ModelBooster (modelbooster spec 1.4, 3.3; ruling F5).

`Failed` turns False once the children can be made (defect: it never did), `Active` changes only
with its workloads.
"""

from collections.abc import Mapping

from inferbus_contracts.admission.backends import backends_of
from inferbus_contracts.conditions import condition
from inferbus_contracts.errors import ProblemsError
from inferbus_contracts.events.route import ConditionFact
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.resources.booster import ModelBooster
from inferbus_contracts.resources.kinds import MODEL_SERVING
from inferbus_shared.objects.picture import StoredObject
from inferbus_spec_watcher.expansion.backend_plan import BackendPlan
from inferbus_spec_watcher.expansion.conditions import OCCASIONAL
from inferbus_spec_watcher.expansion.context import typed
from inferbus_spec_watcher.status.part import StatusPart
from inferbus_spec_watcher.status.view import View
from inferbus_spec_watcher.status.workloads import count, is_available

INITIALIZED = "Initialized"
ACTIVE = "Active"


def booster_status(key: ObjectKey, stored: StoredObject, view: View) -> StatusPart | None:
    """None until the booster was expanded."""
    verdict = view.verdict_on(key, stored)
    if verdict is None:
        return None
    servings = {
        name: view.get(ObjectKey(MODEL_SERVING, key.namespace, workload))
        for name, workload in _workloads(stored).items()
    }
    statuses = [
        {"name": name, "replicas": count(serving, "availableReplicas")}
        for name, serving in servings.items()
    ]
    return StatusPart(
        (condition(INITIALIZED, True, "ModelCreating"), _active(servings), *verdict.conditions),
        {"backendStatuses": statuses},
        verdict.generation,
        OCCASIONAL,
    )


def _workloads(stored: StoredObject) -> dict[str, str]:
    """By backend, the name of its ModelServing; empty for a booster that an older release let in
    and this one can't read."""
    try:
        booster = typed(ModelBooster, stored.object)
    except ProblemsError:
        return {}
    return {
        backend.name: BackendPlan(booster=booster, uid=stored.uid, backend=backend, path=path).name
        for path, backend in backends_of(booster)
    }


def _active(servings: Mapping[str, StoredObject | None]) -> ConditionFact:
    starting = sorted(name for name, serving in servings.items() if not is_available(serving))
    if servings and not starting:
        return condition(ACTIVE, True, "ModelAvailable")
    return condition(ACTIVE, False, "ModelProcessing", f"not ready: {', '.join(starting)}")
