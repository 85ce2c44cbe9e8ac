"""Inference Service: a LeaderWorkerSet with the models in its pods, and the ways to reach it.

Invariant: only leaders are reached, by the core Service and by the ModelServer alike, and on the
port that the engine listens on (llmaz spec 2.4; ruling "routing").
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from inferbus_contracts.artifacts import Scheme
from inferbus_contracts.errors import ErrorCode, Problem
from inferbus_contracts.resources.annotations import (
    CREATED_AT,
    ENGINE,
    MODEL_NAME,
    OWNED_BY,
    TOLERATIONS,
    parse_tolerations,
)
from inferbus_contracts.resources.inference import MODEL_RUNNER, InferenceService
from inferbus_contracts.resources.kinds import (
    CORE_SERVICE,
    KINDS,
    LEADER_WORKER_SET,
    MODEL_ROUTE,
    MODEL_SERVER,
    MODEL_SERVING,
)
from inferbus_contracts.resources.names import LABEL_LENGTH, is_dns1035_label
from inferbus_contracts.resources.networking import InferenceEngine
from inferbus_spec_watcher.expansion.claims import claimed_models, skips_loader
from inferbus_spec_watcher.expansion.conditions import BlockedError, Doubt, Obstacle
from inferbus_spec_watcher.expansion.configuration import loader_image, scheduler_name
from inferbus_spec_watcher.expansion.context import Context
from inferbus_spec_watcher.expansion.engines import (
    DEFAULT_PORT,
    engine_of_container,
    served_model,
    serving_port,
)
from inferbus_spec_watcher.expansion.flavors import placement
from inferbus_spec_watcher.expansion.leader_worker import PodChanges, leader_of, leader_worker_spec
from inferbus_spec_watcher.expansion.manifests import derived_name, manifest, present
from inferbus_spec_watcher.expansion.model_loader import UNLOADED_BY_REFERENCE, Loading
from inferbus_spec_watcher.expansion.model_sources import ClaimedModel
from inferbus_spec_watcher.expansion.native_groups import ANNOTATIONS, serving_spec
from inferbus_spec_watcher.expansion.pod_annotations import pod_annotations
from inferbus_spec_watcher.expansion.routing import RETRY

ACTIVATOR_MODEL = "activator.llmaz.io/model-name"
_LWS = "leaderworkerset.sigs.k8s.io"
_ORDINAL_DIGITS = 4


@dataclass(frozen=True, kw_only=True)
class Front:
    """How the leaders of a Service are reached."""

    main: ClaimedModel
    engine: InferenceEngine
    port: int
    served_model: str | None
    workload: str
    """Name of the LeaderWorkerSet, or of the ModelServing that stands in for one."""

    @property
    def public_name(self) -> str:
        """The name of the model where its Service gives none."""
        return self.main.model.metadata.name

    @property
    def leaders(self) -> dict[str, str]:
        """Labels of the pods that answer."""
        return {f"{_LWS}/name": self.workload, f"{_LWS}/worker-index": "0"}


def service_children(service: InferenceService, context: Context) -> list[dict[str, Any]]:
    """The children of an inference Service; raises `BlockedError` while something is missing."""
    claims = service.spec.model_claims
    models = claimed_models(claims, context)
    front = _front(service, models[0], context)
    changes = PodChanges(
        main=models[0],
        flavors=claims.inference_flavors,
        loading=_loading(models, context),
        placement=placement(models[0].model, claims.inference_flavors, context),
        tolerations=parse_tolerations(context.annotations.get(TOLERATIONS, "[]")),
        scheduler=scheduler_name(context),
    )
    annotations = pod_annotations(front.port, front.served_model or front.public_name)
    spec = leader_worker_spec(service, changes, annotations)
    return [
        _workload(front.workload, spec, context),
        *_core_service(front, context),
        *_routing(front, context),
    ]


def _front(service: InferenceService, main: ClaimedModel, context: Context) -> Front:
    template = service.spec.workload_template
    container = _runner(leader_of(template))
    named = context.annotations.get(ENGINE, "")
    known = named in set(InferenceEngine)
    engine = InferenceEngine(named) if known else engine_of_container(container)
    pulled = main.scheme is Scheme.OLLAMA
    return Front(
        main=main,
        engine=engine,
        port=serving_port(container),
        served_model=main.name if pulled else served_model(container, engine),
        workload=_workload_name(context.key.name, template.size),
    )


def _workload(name: str, spec: dict[str, Any], context: Context) -> dict[str, Any]:
    """The object that runs the groups: of the kind that somebody runs here."""
    kind = _kind_of_groups(name, context)
    if kind == LEADER_WORKER_SET:
        return manifest(context, kind, name, spec)
    return manifest(context, kind, name, serving_spec(spec), annotations=ANNOTATIONS)


def _kind_of_groups(name: str, context: Context) -> str:
    """The kind that the groups have, or get: to change it would start every pod anew."""
    namespace = context.key.namespace
    if context.settings.keeps_groups:
        if context.owns(KINDS[LEADER_WORKER_SET].key(name, namespace)):
            _warn_where_nobody_runs_them(name, context)
            return LEADER_WORKER_SET
        if context.owns(KINDS[MODEL_SERVING].key(name, namespace)):
            return MODEL_SERVING
    if context.settings.groups is None:
        problem = Problem(
            code=ErrorCode.RULE_BROKEN,
            message="it isn't known yet whether a controller of LeaderWorkerSets is there",
            object=str(context.key),
            remedy="nothing to do unless it stays so: the spec-watcher's readiness says why",
        )
        raise BlockedError(Obstacle.GROUPS_UNKNOWN, problem)
    return context.settings.groups


def _warn_where_nobody_runs_them(name: str, context: Context) -> None:
    if context.settings.groups == MODEL_SERVING:
        context.doubt(
            Doubt.GROUPS_UNATTENDED,
            "spec.workloadTemplate",
            f"nothing shows that the controller of LeaderWorkerSet {name} still runs",
            "start it again, or delete the LeaderWorkerSet: the platform then runs the groups",
        )


def _workload_name(name: str, size: int) -> str:
    """The Service's own, unless pods `<name>-<group>-<index>` would get names that are too long."""
    worker = f"-{size - 1}" if size > 1 else ""
    return derived_name(name, LABEL_LENGTH - _ORDINAL_DIGITS - 1 - len(worker))


def _runner(template: Mapping[str, Any]) -> Mapping[str, Any]:
    containers: Sequence[Mapping[str, Any]] = (template.get("spec") or {}).get("containers") or ()
    named = [one for one in containers if one.get("name") == MODEL_RUNNER]
    return next(iter([*named, *containers]), {})


def _loading(models: Sequence[ClaimedModel], context: Context) -> Loading:
    loading = Loading(
        models=models,
        skips_loader=skips_loader(context),
        image=loader_image(context),
        takes_arguments=context.settings.loader_takes_arguments,
    )
    for one in () if loading.takes_arguments else loading.loaded:
        _warn_of_unfit_loader(one, context)
    return loading


def _warn_of_unfit_loader(one: ClaimedModel, context: Context) -> None:
    """llmaz's loader knows no S3 and GCS, and takes a folder with a dot for a file (LZ_S3, S4)."""
    dotted = one.hub is None and one.file is None and "." in one.folder
    if one.scheme in UNLOADED_BY_REFERENCE or dotted:
        context.doubt(
            Doubt.LOADER_UNFIT,
            f"OpenModel/{one.model.metadata.name}: spec.source.uri",
            "llmaz's model loader can't load this; a loader that takes arguments can",
            "use Inferbus' own loader, or the annotation llmaz.io/skip-model-loader",
            value=one.uri,
        )


def _core_service(front: Front, context: Context) -> list[dict[str, Any]]:
    """`P-lb`, always on 8080, whatever the engine's port; none where it couldn't be called so."""
    name = f"{context.key.name}-lb"
    if not is_dns1035_label(name):
        return []
    spec = {
        "type": "ClusterIP",
        "selector": front.leaders,
        "ports": [
            {"name": "http", "protocol": "TCP", "port": DEFAULT_PORT, "targetPort": front.port}
        ],
    }
    annotations = {ACTIVATOR_MODEL: front.public_name}
    return [manifest(context, CORE_SERVICE, name, spec, annotations=annotations)]


def _routing(front: Front, context: Context) -> list[dict[str, Any]]:
    name = context.key.name
    server = present(
        model=front.served_model,
        inferenceEngine=front.engine.value,
        workloadSelector={"matchLabels": front.leaders},
        workloadPort={"port": front.port},
        trafficPolicy={"retry": RETRY},
    )
    route = {
        "modelName": context.annotations.get(MODEL_NAME, front.public_name),
        "rules": [{"name": "default", "targetModels": [{"modelServerName": name}]}],
    }
    model = front.main.model.spec
    told = present(**{OWNED_BY: model.owned_by or None, CREATED_AT: model.created_at})
    return [
        manifest(context, MODEL_SERVER, name, server),
        manifest(context, MODEL_ROUTE, name, route, annotations=told),
    ]
