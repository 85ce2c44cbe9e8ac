"""The columns of each kind."""

from collections.abc import Iterable, Mapping
from typing import Any

from inferbus_cli.documents import at, condition
from inferbus_cli.units import age
from inferbus_cli.views import Column, Row, field
from inferbus_contracts.events.scaling import Limiter
from inferbus_contracts.resources.annotations import SECRET_KEYS
from inferbus_contracts.resources.kinds import (
    AUTOSCALING_POLICY,
    AUTOSCALING_POLICY_BINDING,
    BACKEND_RUNTIME,
    CONFIG_MAP,
    CONTROLLER_REVISION,
    CORE_SERVICE,
    EXTERNAL_MODEL_PROVIDER,
    GATEWAY,
    HORIZONTAL_POD_AUTOSCALER,
    HTTP_ROUTE,
    INFERENCE_POOL,
    INFERENCE_SERVICE,
    LEADER_WORKER_SET,
    MODEL_BOOSTER,
    MODEL_ROUTE,
    MODEL_SERVER,
    MODEL_SERVING,
    OPEN_MODEL,
    PLAYGROUND,
    POD,
    SECRET,
)


def columns_of(token: str) -> tuple[Column, ...]:
    """The columns of a kind between NAME and AGE."""
    return _COLUMNS[token]


def _mappings(value: Any) -> Iterable[Mapping[str, Any]]:
    return [item for item in value or () if isinstance(item, Mapping)]


def _holds(type_: str) -> Column:
    def value(row: Row) -> str:
        if row.resolved is not None:
            known = {one.type: one.status.value for one in row.resolved.conditions}
            return known.get(type_, "")
        found = condition(row.object, type_)
        return str(found["status"]) if found else ""

    return Column(type_.upper(), value)


def _reason(row: Row) -> str:
    """Why a route isn't ready, or what is doubtful about it."""
    for one in row.resolved.conditions if row.resolved else ():
        if one.status.value != "True" and one.type != "Conflicted" and one.message:
            return f"{one.reason}: {one.message}"
    return ""


def _status(*types: str) -> Column:
    """The first of these conditions that holds; without one, whether it was accepted."""

    def value(row: Row) -> str:
        for type_ in types:
            found = condition(row.object, type_)
            if found and found.get("status") == "True":
                return type_
        return _accepted(row)

    return Column("STATUS", value)


def _available(row: Row) -> str:
    """The reason of the Available condition, as upstream's own column shows it."""
    found = condition(row.object, "Available") or condition(row.object, "Progressing")
    return str(found.get("reason", "")) if found else _accepted(row)


def _accepted(row: Row) -> str:
    """Of what nothing more is known yet: whether it was accepted, or why not."""
    found = condition(row.object, "Accepted")
    return str(found.get("reason", "Accepted")) if found else "Pending"


def _roles(row: Row) -> str:
    roles = _mappings(at(row.object, "spec.template.roles"))
    return ",".join(f"{role.get('name')}×{role.get('replicas', 1)}" for role in roles)


def _pod_ready(row: Row) -> str:
    statuses = list(_mappings(at(row.object, "status.containerStatuses")))
    wanted = len(at(row.object, "spec.containers") or ())
    return f"{sum(bool(one.get('ready')) for one in statuses)}/{wanted}"


def _pod_status(row: Row) -> str:
    if at(row.object, "metadata.deletionTimestamp"):
        return "Terminating"
    for one in _mappings(at(row.object, "status.containerStatuses")):
        for state in ("waiting", "terminated"):
            reason = at(one, f"state.{state}.reason")
            if reason:
                return str(reason)
    return row.text("status.reason") or row.text("status.phase") or "Pending"


def _pod_restarts(row: Row) -> str:
    statuses = _mappings(at(row.object, "status.containerStatuses"))
    return str(sum(int(one.get("restartCount", 0)) for one in statuses))


def _route_model(row: Row) -> str:
    adapters = at(row.object, "spec.loraAdapters") or ()
    return row.text("spec.modelName") or ",".join(map(str, adapters))


def _endpoints(row: Row) -> str:
    known = row.resolved
    return f"{known.ready_endpoints}/{known.endpoints}" if known else ""


def _servers(row: Row) -> str:
    names = [
        str(target.get("modelServerName") or target.get("externalModelProviderName"))
        for rule in _mappings(at(row.object, "spec.rules"))
        for target in _mappings(rule.get("targetModels"))
    ]
    return ",".join(dict.fromkeys(names))


def _scaled(title: str, name: str, *, wide: bool = False) -> Column:
    def value(row: Row) -> str:
        found = getattr(row.scaling, name, None)
        return "" if found is None or found is Limiter.NONE else str(found)

    return Column(title, value, wide)


def _target(row: Row) -> str:
    if row.scaling is None:
        return ""
    key = row.scaling.target
    return f"{key.kind}/{key.name}/{key.role}" if key.role else f"{key.kind}/{key.name}"


def _last(row: Row) -> str:
    decided_ms = row.scaling.decided_ms if row.scaling else None
    return "" if decided_ms is None else age(row.now_ms - decided_ms)


def _metrics(row: Row) -> str:
    spec = at(row.object, "spec.metrics")
    return ",".join(
        f"{one.get('metricName') or one.get('name')}={one.get('targetValue')}"
        for one in _mappings(spec)
    )


def _backends(row: Row) -> str:
    listed = _mappings(at(row.object, "spec.backends"))
    single = at(row.object, "spec.backend")
    names = [one.get("name") for one in (*listed, *([single] if single else []))]
    return ",".join(map(str, names))


def _running(row: Row) -> str:
    statuses = list(_mappings(at(row.object, "status.backendStatuses")))
    return str(sum(int(one.get("replicas", 0)) for one in statuses)) if statuses else ""


def _claimed(row: Row) -> str:
    models = [one.get("name") for one in _mappings(at(row.object, "spec.modelClaims.models"))]
    return row.text("spec.modelClaim.modelName") or ",".join(map(str, models))


def _source(row: Row) -> str:
    hub = at(row.object, "spec.source.modelHub")
    if hub:
        return f"{hub.get('name', 'Huggingface')}:{hub.get('modelID', '')}"
    return row.text("spec.source.uri")


def _flavors(row: Row) -> str:
    flavors = _mappings(at(row.object, "spec.inferenceConfig.flavors"))
    return ",".join(str(one.get("name")) for one in flavors)


def _data_keys(row: Row) -> str:
    return str(len(at(row.object, "data") or {}) + len(at(row.object, "binaryData") or {}))


def _secret_keys(row: Row) -> str:
    annotations = at(row.object, "metadata.annotations") or {}
    return str(len([key for key in str(annotations.get(SECRET_KEYS, "")).split(",") if key]))


def _ports(row: Row) -> str:
    return ",".join(str(one.get("port")) for one in _mappings(at(row.object, "spec.ports")))


def _hpa_target(row: Row) -> str:
    return f"{row.text('spec.scaleTargetRef.kind')}/{row.text('spec.scaleTargetRef.name')}"


_SCALING = (
    Column("TARGET", _target),
    _scaled("MIN", "min_replicas"),
    _scaled("MAX", "max_replicas"),
    _scaled("CURRENT", "current"),
    _scaled("DESIRED", "desired"),
    Column("LAST", _last),
    _scaled("LIMITER", "binding", wide=True),
    _scaled("MODE", "mode", wide=True),
)

_COLUMNS: dict[str, tuple[Column, ...]] = {
    MODEL_SERVING: (
        field("DESIRED", "spec.replicas"),
        field("READY", "status.availableReplicas"),
        field("UPDATED", "status.updatedReplicas"),
        field("REVISION", "status.updateRevision"),
        Column("ROLES", _roles, wide=True),
        field("GROUPS", "status.replicas", wide=True),
        field("SELECTOR", "status.labelSelector", wide=True),
    ),
    POD: (
        Column("READY", _pod_ready),
        Column("STATUS", _pod_status),
        Column("RESTARTS", _pod_restarts),
        field("IP", "status.podIP"),
        field("NODE", "spec.nodeName", wide=True),
        field("REASON", "status.message", wide=True),
    ),
    MODEL_ROUTE: (
        Column("MODEL", _route_model),
        Column("ENDPOINTS", _endpoints),
        _holds("Accepted"),
        Column("SERVERS", _servers, wide=True),
        Column("REASON", _reason, wide=True),
    ),
    MODEL_SERVER: (
        field("MODEL", "spec.model"),
        field("ENGINE", "spec.inferenceEngine"),
        field("PORT", "spec.workloadPort.port"),
        Column("ENDPOINTS", _endpoints),
        _holds("Ready"),
        Column("REASON", _reason, wide=True),
    ),
    AUTOSCALING_POLICY: (*_SCALING, Column("METRICS", _metrics, wide=True)),
    AUTOSCALING_POLICY_BINDING: (*_SCALING, field("POLICY", "spec.policyRef.name", wide=True)),
    EXTERNAL_MODEL_PROVIDER: (_holds("Ready"),),
    GATEWAY: (field("CLASS", "spec.gatewayClassName"), _holds("Accepted")),
    HTTP_ROUTE: (_holds("Accepted"),),
    INFERENCE_POOL: (Column("ENDPOINTS", _endpoints), _holds("Ready")),
    MODEL_BOOSTER: (
        _status("Failed", "Active", "Initialized"),
        Column("BACKENDS", _backends),
        Column("REPLICAS", _running),
    ),
    PLAYGROUND: (
        Column("MODEL", _claimed),
        field("DESIRED", "spec.replicas"),
        field("REPLICAS", "status.replicas"),
        Column("STATUS", _available),
    ),
    INFERENCE_SERVICE: (
        Column("MODEL", _claimed),
        field("DESIRED", "spec.replicas"),
        field("REPLICAS", "status.replicas"),
        Column("STATUS", _available),
    ),
    OPEN_MODEL: (
        field("FAMILY", "spec.familyName"),
        Column("SOURCE", _source),
        Column("FLAVORS", _flavors, wide=True),
    ),
    BACKEND_RUNTIME: (field("IMAGE", "spec.image"), field("VERSION", "spec.version")),
    LEADER_WORKER_SET: (
        field("DESIRED", "spec.replicas"),
        field("READY", "status.readyReplicas"),
        field("SIZE", "spec.leaderWorkerTemplate.size"),
    ),
    HORIZONTAL_POD_AUTOSCALER: (
        Column("TARGET", _hpa_target),
        field("MIN", "spec.minReplicas"),
        field("MAX", "spec.maxReplicas"),
        field("CURRENT", "status.currentReplicas"),
    ),
    CORE_SERVICE: (field("IP", "spec.clusterIP"), Column("PORTS", _ports)),
    CONFIG_MAP: (Column("KEYS", _data_keys),),
    SECRET: (Column("KEYS", _secret_keys), field("TYPE", "type")),
    CONTROLLER_REVISION: (field("REVISION", "revision"),),
}
