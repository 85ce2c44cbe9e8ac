"""Lists of environment variables: core/v1 EnvVar, by name.

Invariant: no name occurs twice in a result (Kubernetes refuses that), and the order depends on the
inputs' order alone (defect LZ_D1: a changed order rolls all pods).
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Variable = Mapping[str, Any]


def without_repeats(*lists: Iterable[Variable]) -> list[dict[str, Any]]:
    """All lists, one after the other; of variables of one name the first stays."""
    kept: dict[str, dict[str, Any]] = {}
    for variables in lists:
        for variable in variables:
            kept.setdefault(str(variable.get("name")), dict(variable))
    return list(kept.values())


def overridden(base: Sequence[Variable], overrides: Sequence[Variable]) -> list[dict[str, Any]]:
    """`base` with the variables of `overrides` in their place, new ones behind it in their order.

    (llmaz spec 2.3, stable.)
    """
    kept = {str(variable.get("name")): dict(variable) for variable in base}
    kept.update({str(variable.get("name")): dict(variable) for variable in overrides})
    return list(kept.values())


def literal(name: str, value: str) -> dict[str, Any]:
    """A variable with a value."""
    return {"name": name, "value": value}


def from_field(name: str, path: str) -> dict[str, Any]:
    """A variable that takes a field of its pod."""
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}


def from_secret(name: str, secret: str, key: str) -> dict[str, Any]:
    """A variable that takes a key of a Secret, where there is one."""
    return _from_key("secretKeyRef", name, secret, key)


def from_config_map(name: str, config_map: str, key: str) -> dict[str, Any]:
    """A variable that takes a key of a ConfigMap, where there is one."""
    return _from_key("configMapKeyRef", name, config_map, key)


def _from_key(kind: str, name: str, source: str, key: str) -> dict[str, Any]:
    return {"name": name, "valueFrom": {kind: {"name": source, "key": key, "optional": True}}}
