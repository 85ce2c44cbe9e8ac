"""Status of a ModelBooster (modelbooster spec 1.4, 3.3; ruling F5).

`Failed` turns False once the children can be made (defect: it never did), `Active` changes only
with its workloads.
"""

from inferbus_contracts.admission.backends import backends_of
from inferbus_contracts.conditions import condition
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
    verdict = view.verdict(key)
    if verdict is None:
        return None
    booster = typed(ModelBooster, stored.object)
    workloads = {
        backend.name: BackendPlan(booster=booster, uid=stored.uid, backend=backend, path=path).name
        for path, backend in backends_of(booster)
    }
    servings = {
        name: view.get(ObjectKey(MODEL_SERVING, key.namespace, workload))
        for name, workload in workloads.items()
    }
    starting = sorted(name for name, serving in servings.items() if not is_available(serving))
    return StatusPart(
        (
            condition(INITIALIZED, True, "ModelCreating"),
            condition(ACTIVE, False, "ModelProcessing", f"not ready: {', '.join(starting)}")
            if starting
            else condition(ACTIVE, True, "ModelAvailable"),
            *verdict.conditions,
        ),
        {
            "backendStatuses": [
                {"name": name, "replicas": count(serving, "availableReplicas")}
                for name, serving in servings.items()
            ]
        },
        verdict.generation,
        OCCASIONAL,
    )
