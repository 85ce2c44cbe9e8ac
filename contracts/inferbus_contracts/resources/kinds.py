"""The registry of kinds: what each is called, where it lives, which model reads it.

Invariant: a kind's token is unique and is what `ObjectKey.kind` holds. It is the kind's own name,
except for core/v1 Service, whose token is `CoreService` because llmaz has a Service too.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from inferbus_contracts.keys import NO_NAMESPACE, ObjectKey
from inferbus_contracts.resources.autoscaling import AutoscalingPolicy
from inferbus_contracts.resources.backend_runtime import BackendRuntime
from inferbus_contracts.resources.booster import ModelBooster
from inferbus_contracts.resources.external_provider import ExternalModelProvider
from inferbus_contracts.resources.inference import InferenceService, Playground
from inferbus_contracts.resources.metadata import PassThrough, Resource
from inferbus_contracts.resources.networking import ModelRoute, ModelServer
from inferbus_contracts.resources.open_model import OpenModel
from inferbus_contracts.resources.scaling_targets import AutoscalingPolicyBinding
from inferbus_contracts.resources.serving import ModelServing

DEFAULT_NAMESPACE = "default"

MODEL_BOOSTER = "ModelBooster"
MODEL_SERVING = "ModelServing"
AUTOSCALING_POLICY = "AutoscalingPolicy"
AUTOSCALING_POLICY_BINDING = "AutoscalingPolicyBinding"
MODEL_ROUTE = "ModelRoute"
MODEL_SERVER = "ModelServer"
EXTERNAL_MODEL_PROVIDER = "ExternalModelProvider"
OPEN_MODEL = "OpenModel"
BACKEND_RUNTIME = "BackendRuntime"
PLAYGROUND = "Playground"
INFERENCE_SERVICE = "Service"
CONFIG_MAP = "ConfigMap"
SECRET = "Secret"
POD = "Pod"
CORE_SERVICE = "CoreService"
CONTROLLER_REVISION = "ControllerRevision"
HORIZONTAL_POD_AUTOSCALER = "HorizontalPodAutoscaler"
LEADER_WORKER_SET = "LeaderWorkerSet"
GATEWAY = "Gateway"
HTTP_ROUTE = "HTTPRoute"
INFERENCE_POOL = "InferencePool"
INGRESS_KINDS = (GATEWAY, HTTP_ROUTE, INFERENCE_POOL)
"""Kinds of others that say how requests come in; read, never written but for their status."""

WORKLOAD_GROUP = "workload.serving.volcano.sh"
NETWORKING_GROUP = "networking.serving.volcano.sh"
LLMAZ_GROUP = "llmaz.io"
LLMAZ_INFERENCE_GROUP = "inference.llmaz.io"
GATEWAY_GROUP = "gateway.networking.k8s.io"
POOL_GROUP = "inference.networking.k8s.io"


@dataclass(frozen=True, kw_only=True)
class ScalePaths:
    """Where the scale subresource of a kind reads and writes."""

    spec: str = ".spec.replicas"
    status: str = ".status.replicas"
    selector: str


@dataclass(frozen=True, kw_only=True)
class Kind:
    """One kind of object."""

    kind: str
    group: str
    """Empty for core."""
    version: str
    plural: str
    model: type[Resource]
    token: str = ""
    """Unique among all kinds; the kind's own name unless that is taken."""
    short_names: tuple[str, ...] = ()
    namespaced: bool = True
    scale: ScalePaths | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "token", self.token or self.kind)

    @property
    def api_version(self) -> str:
        """`<group>/<version>`, or the version alone for core."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def supporting(self) -> bool:
        """Only identity is checked; the body passes through."""
        return self.model is PassThrough

    def key(self, name: str, namespace: str | None = None) -> ObjectKey:
        """The key of an object of this kind; without a namespace it is in `default`."""
        place = (namespace or DEFAULT_NAMESPACE) if self.namespaced else NO_NAMESPACE
        return ObjectKey(self.token, place, name)


def _kthena(
    model: type[Resource], group: str, short_name: str, scale: ScalePaths | None = None
) -> Kind:
    """Short names are those of Kthena's command line, where it has one."""
    return Kind(
        kind=model.__name__,
        group=group,
        version="v1alpha1",
        plural=_plural(model.__name__),
        short_names=(short_name,),
        model=model,
        scale=scale,
    )


def _plural(kind: str) -> str:
    word = kind.lower()
    changes = word.endswith("y") and word[-2] not in "aeiou"
    return f"{word[:-1]}ies" if changes else f"{word}s"


def _llmaz(
    kind: str,
    model: type[Resource],
    short_name: str,
    *,
    group: str = LLMAZ_INFERENCE_GROUP,
    namespaced: bool = False,
    scale: ScalePaths | None = None,
) -> Kind:
    return Kind(
        kind=kind,
        group=group,
        version="v1alpha1",
        plural=_plural(kind),
        short_names=(short_name,),
        namespaced=namespaced,
        model=model,
        scale=scale,
    )


def _supporting(kind: str, group: str, version: str, *short_names: str, token: str = "") -> Kind:
    return Kind(
        kind=kind,
        group=group,
        version=version,
        plural=_plural(kind),
        model=PassThrough,
        token=token,
        short_names=short_names,
    )


_LLMAZ_SCALE = ScalePaths(selector=".status.selector")

_ROWS = (
    _kthena(ModelBooster, WORKLOAD_GROUP, "mb"),
    _kthena(ModelServing, WORKLOAD_GROUP, "ms", ScalePaths(selector=".status.labelSelector")),
    _kthena(AutoscalingPolicy, WORKLOAD_GROUP, "asp"),
    _kthena(AutoscalingPolicyBinding, WORKLOAD_GROUP, "aspb"),
    _kthena(ModelRoute, NETWORKING_GROUP, "mroute"),
    _kthena(ModelServer, NETWORKING_GROUP, "mserver"),
    _kthena(ExternalModelProvider, NETWORKING_GROUP, "emp"),
    _llmaz(OPEN_MODEL, OpenModel, "om", group=LLMAZ_GROUP),
    _llmaz(BACKEND_RUNTIME, BackendRuntime, "br"),
    _llmaz(PLAYGROUND, Playground, "pl", namespaced=True, scale=_LLMAZ_SCALE),
    _llmaz(INFERENCE_SERVICE, InferenceService, "isvc", namespaced=True, scale=_LLMAZ_SCALE),
    _supporting(CONFIG_MAP, "", "v1", "cm"),
    _supporting(SECRET, "", "v1"),
    _supporting(POD, "", "v1", "po"),
    _supporting("Service", "", "v1", "svc", token=CORE_SERVICE),
    _supporting(CONTROLLER_REVISION, "apps", "v1"),
    _supporting(HORIZONTAL_POD_AUTOSCALER, "autoscaling", "v2", "hpa"),
    _supporting(LEADER_WORKER_SET, "leaderworkerset.x-k8s.io", "v1", "lws"),
    _supporting(GATEWAY, GATEWAY_GROUP, "v1", "gtw"),
    _supporting(HTTP_ROUTE, GATEWAY_GROUP, "v1"),
    _supporting(INFERENCE_POOL, POOL_GROUP, "v1", "infpool"),
)

KINDS: dict[str, Kind] = {row.token: row for row in _ROWS}
"""Every kind by token."""

_BY_DOCUMENT = {(row.api_version, row.kind): row for row in _ROWS}


def find_kind(api_version: str, kind: str) -> Kind | None:
    """The kind of a document; None when it isn't known."""
    return _BY_DOCUMENT.get((api_version, kind))


def kind_of(document: Mapping[str, Any]) -> Kind:
    """The kind of an admitted document; raises `KeyError` when it isn't known."""
    return _BY_DOCUMENT[document["apiVersion"], document["kind"]]


def key_of(document: Mapping[str, Any]) -> ObjectKey:
    """The key of an admitted document; raises `KeyError` when its kind isn't known."""
    metadata = document["metadata"]
    return kind_of(document).key(metadata["name"], metadata.get("namespace"))


def kind_by_word(word: str) -> Kind | None:
    """The kind people mean by a token, plural, short name or `plural.group`, whatever its case.

    Where two kinds share a word, the one that isn't a supporting kind is meant.
    """
    wanted = word.lower()
    for row in _ROWS:
        words = {row.token.lower(), row.plural, *row.short_names, f"{row.plural}.{row.group}"}
        if wanted in words:
            return row
    return None
