"""ModelBooster: for each backend a ModelServing and a ModelServer, one route, and its policies.

Invariant: the order of children is that of modelbooster spec 3.2, whatever the order of fields.
"""

from typing import Any

from inferbus_contracts.admission.backends import backends_of
from inferbus_contracts.resources.booster import ModelBooster
from inferbus_contracts.resources.kinds import MODEL_SERVING
from inferbus_spec_watcher.expansion.backend_environment import sidecar_of
from inferbus_spec_watcher.expansion.backend_plan import BackendPlan
from inferbus_spec_watcher.expansion.backend_pods import Images
from inferbus_spec_watcher.expansion.backend_roles import RoleBuilder
from inferbus_spec_watcher.expansion.backend_routing import model_route, model_server
from inferbus_spec_watcher.expansion.backend_scaling import scaling_objects
from inferbus_spec_watcher.expansion.booster_child import booster_child
from inferbus_spec_watcher.expansion.configuration import downloader_image, runtime_image
from inferbus_spec_watcher.expansion.context import Context
from inferbus_spec_watcher.expansion.manifests import present

RESTART_GRACE_SECONDS = 60


def booster_children(booster: ModelBooster, context: Context) -> list[dict[str, Any]]:
    """The children of a booster; everything it needs is in it."""
    plans = [
        BackendPlan(booster=booster, uid=context.uid, backend=backend, path=path)
        for path, backend in backends_of(booster)
    ]
    return [
        *(_model_serving(plan, context) for plan in plans),
        *(model_server(plan, context) for plan in plans),
        model_route(booster, plans, context),
        *scaling_objects(booster, plans, context),
    ]


def _model_serving(plan: BackendPlan, context: Context) -> dict[str, Any]:
    """No gang, so that a worker's replicas stay changeable; no spreading, which never had an effect
    (modelbooster spec 2.9, 3.5, 7.6)."""
    builder = RoleBuilder(
        plan=plan,
        images=Images(downloader=downloader_image(context), runtime=runtime_image(context)),
        sidecar=sidecar_of(plan, context),
        startup_seconds=context.settings.engine_startup_seconds,
    )
    spec = {
        "replicas": _first_replicas(plan),
        **present(schedulerName=plan.backend.scheduler_name or None),
        "template": {
            "restartGracePeriodSeconds": RESTART_GRACE_SECONDS,
            "roles": builder.roles(),
        },
    }
    return booster_child(context, MODEL_SERVING, plan.name, spec, plan.pod_labels)


def _first_replicas(plan: BackendPlan) -> int:
    """Where a backend begins: `replicas`, held within the bounds, else the least."""
    least, most = plan.backend.bounds
    wanted = plan.backend.replicas
    return least if wanted is None else min(max(wanted, least), most)
