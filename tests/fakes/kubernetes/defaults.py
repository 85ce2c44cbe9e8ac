"""What the server fills in by itself: defaults of built-in types, and of a CRD's structural schema.

Only those defaults of built-in types that a controller meets when it compares what it sent with
what is there. Custom resources are defaulted and pruned wholly as their schema says.
"""

import copy
from collections.abc import Callable, Mapping
from typing import Any

Document = dict[str, Any]

_CONTAINER = {
    "resources": {},
    "terminationMessagePath": "/dev/termination-log",
    "terminationMessagePolicy": "File",
}
_POD = {
    "restartPolicy": "Always",
    "terminationGracePeriodSeconds": 30,
    "dnsPolicy": "ClusterFirst",
    "securityContext": {},
    "schedulerName": "default-scheduler",
    "enableServiceLinks": True,
}
_PROBE = {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}


def _fill(target: Document, values: Mapping[str, Any]) -> None:
    for name, value in values.items():
        if name not in target:
            target[name] = copy.copy(value)


def _pod_spec(spec: Document) -> None:
    _fill(spec, _POD)
    for container in (*spec.get("initContainers", ()), *spec.get("containers", ())):
        _fill(container, _CONTAINER)
        if "imagePullPolicy" not in container:
            container["imagePullPolicy"] = _pull_policy(container.get("image", ""))
        for port in container.get("ports", ()):
            _fill(port, {"protocol": "TCP"})
        for variable in container.get("env", ()):
            if reference := variable.get("valueFrom", {}).get("fieldRef"):
                _fill(reference, {"apiVersion": "v1"})
        for probe in ("livenessProbe", "readinessProbe", "startupProbe"):
            if probe in container:
                _probe(container[probe])


def _probe(probe: Document) -> None:
    _fill(probe, _PROBE)
    if "httpGet" in probe:
        _fill(probe["httpGet"], {"path": "/", "scheme": "HTTP"})


def _pull_policy(image: str) -> str:
    _, colon, tag = image.rpartition("/")[2].partition(":")
    return "Always" if not colon or tag == "latest" else "IfNotPresent"


def _pod(document: Document) -> None:
    _pod_spec(document.setdefault("spec", {}))


def _service(document: Document) -> None:
    spec = document.setdefault("spec", {})
    _fill(
        spec, {"type": "ClusterIP", "sessionAffinity": "None", "internalTrafficPolicy": "Cluster"}
    )
    for port in spec.get("ports", ()):
        _fill(port, {"protocol": "TCP", "targetPort": port.get("port")})
    if "clusterIP" in spec:
        _fill(spec, {"clusterIPs": [spec["clusterIP"]]})
    _fill(spec, {"ipFamilies": ["IPv4"], "ipFamilyPolicy": "SingleStack"})


def _workload(document: Document) -> None:
    spec = document.setdefault("spec", {})
    _fill(spec, {"replicas": 1})
    _pod_spec(spec.setdefault("template", {}).setdefault("spec", {}))


def _deployment(document: Document) -> None:
    _workload(document)
    rolling = {"maxUnavailable": "25%", "maxSurge": "25%"}
    strategy = {"type": "RollingUpdate", "rollingUpdate": rolling}
    more = {"strategy": strategy, "revisionHistoryLimit": 10, "progressDeadlineSeconds": 600}
    _fill(document["spec"], more)


_BUILT_IN: Mapping[str, Callable[[Document], None]] = {
    "Pod": _pod,
    "Service": _service,
    "Deployment": _deployment,
    "ReplicaSet": _workload,
    "StatefulSet": _workload,
}


def fill_built_in(kind: str, document: Document) -> None:
    """Fill in the defaults of a built-in type, in place."""
    if fill := _BUILT_IN.get(kind):
        fill(document)


def structured(document: Document, schema: Mapping[str, Any]) -> Document:
    """A custom resource without unknown fields and stray nulls, with its schema's defaults."""
    known = {name: document[name] for name in ("apiVersion", "kind", "metadata")}
    rest = {name: value for name, value in document.items() if name not in known}
    if not schema:
        return document
    return {**known, **_structured(rest, schema)}


def _structured(value: Any, schema: Mapping[str, Any]) -> Any:
    if isinstance(value, list) and "items" in schema:
        return [_structured(item, schema["items"]) for item in value]
    if not isinstance(value, dict):
        return value
    properties: Mapping[str, Any] = schema.get("properties", {})
    more = schema.get("additionalProperties")
    open_ended = more is True or schema.get("x-kubernetes-preserve-unknown-fields", False)
    embedded = schema.get("x-kubernetes-embedded-resource", False)
    result: Document = {}
    for name, part in value.items():
        inner = properties.get(name, more if isinstance(more, dict) else None)
        if inner is not None:
            if part is not None or inner.get("nullable"):
                result[name] = _structured(part, inner)
        elif open_ended or (embedded and name in ("apiVersion", "kind", "metadata")):
            result[name] = part
    for name, inner in properties.items():
        if name not in result and "default" in inner:
            result[name] = _structured(copy.deepcopy(inner["default"]), inner)
    return result
