"""The environment of a container, as core/v1 defines it.

First the keys of `envFrom` in order, then `env` in order; a later entry replaces an earlier one of
the same name. A value may refer to what was defined before it. What comes from elsewhere
(`valueFrom`) is taken as it is.
"""

import math
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import NamedTuple

from inferbus_contracts.errors import ErrorCode, Problem, ProblemsError
from inferbus_contracts.resources.scalars import parse_quantity
from inferbus_node_agent.pod_parts import (
    EnvFromSource,
    EnvVar,
    FieldSelector,
    KeySelector,
    ResourceSelector,
)
from inferbus_node_agent.pods import Container, Pod
from inferbus_node_agent.policy_expansion import expand

_NAME = re.compile(r"[-._a-zA-Z][-._a-zA-Z0-9]*")
_KEYED_FIELD = re.compile(r"metadata\.(labels|annotations)\['([^']+)'\]")


class SourceKind(StrEnum):
    """Where configuration lies; the values are the kinds of the objects."""

    CONFIG_MAP = "ConfigMap"
    SECRET = "Secret"


class SourceName(NamedTuple):
    """A ConfigMap or Secret of the pod's namespace."""

    kind: SourceKind
    name: str


Sources = Mapping[SourceName, Mapping[str, bytes] | None]
"""The content of each source; None where there is no such object."""


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """What containers can ask about the node."""

    name: str
    host_address: str
    cpus: int
    memory_bytes: int


def sources_of_environment(container: Container) -> set[SourceName]:
    """What has to be looked up before `environment_of` can be called."""
    found: set[SourceName] = set()
    for source in container.env_from:
        found |= {name for name, _ in _whole_sources(source)}
    for variable in container.env:
        if variable.value_from is not None:
            found |= {name for name, _ in _keys(variable)}
    return found


def environment_of(
    pod: Pod, container: Container, address: str, node: NodeFacts, sources: Sources
) -> dict[str, str]:
    """The variables that the manifest defines.

    Raises `ProblemsError` (MISSING_REFERENCE, UNSUPPORTED) with one problem per variable that can't
    be had; none of them holds a value of a Secret.
    """
    resolver = _Resolver(pod, container, address, node, sources)
    for source in container.env_from:
        resolver.add_source(source)
    for variable in container.env:
        resolver.add_variable(variable)
    if resolver.problems:
        raise ProblemsError(*resolver.problems)
    return resolver.values


def _whole_sources(source: EnvFromSource) -> Iterator[tuple[SourceName, bool]]:
    if source.config_map_ref is not None:
        yield (
            SourceName(SourceKind.CONFIG_MAP, source.config_map_ref.name),
            source.config_map_ref.optional,
        )
    if source.secret_ref is not None:
        yield SourceName(SourceKind.SECRET, source.secret_ref.name), source.secret_ref.optional


def _keys(variable: EnvVar) -> Iterator[tuple[SourceName, KeySelector]]:
    source = variable.value_from
    if source is not None and source.config_map_key_ref is not None:
        key = source.config_map_key_ref
        yield SourceName(SourceKind.CONFIG_MAP, key.name), key
    if source is not None and source.secret_key_ref is not None:
        key = source.secret_key_ref
        yield SourceName(SourceKind.SECRET, key.name), key


class _Resolver:
    """Gathers variables and problems of one container."""

    def __init__(
        self, pod: Pod, container: Container, address: str, node: NodeFacts, sources: Sources
    ) -> None:
        self._pod = pod
        self._container = container
        self._address = address
        self._node = node
        self._sources = sources
        self.values: dict[str, str] = {}
        self.problems: list[Problem] = []

    def add_source(self, source: EnvFromSource) -> None:
        """All keys of a ConfigMap or Secret that can be names of variables."""
        for name, optional in _whole_sources(source):
            content = self._sources.get(name)
            if content is None:
                if not optional:
                    self._missing(name, "envFrom")
                continue
            for key in sorted(content):
                variable = f"{source.prefix}{key}"
                if _NAME.fullmatch(variable):
                    self._set(variable, os.fsdecode(content[key]))

    def add_variable(self, variable: EnvVar) -> None:
        """One entry of `env`."""
        source = variable.value_from
        if source is None:
            self._set(variable.name, expand(variable.value, self.values))
        elif source.field_ref is not None:
            self._add_field(variable, source.field_ref)
        elif source.resource_field_ref is not None:
            self._add_resource(variable, source.resource_field_ref)
        for name, key in _keys(variable):
            self._add_key(variable, name, key)

    def _set(self, name: str, value: str) -> None:
        self.values[name] = value

    def _add_key(self, variable: EnvVar, name: SourceName, key: KeySelector) -> None:
        content = self._sources.get(name)
        if content is not None and key.key in content:
            self._set(variable.name, os.fsdecode(content[key.key]))
        elif not key.optional:
            self._missing(name, f"env[{variable.name}]", "" if content is None else key.key)

    def _add_field(self, variable: EnvVar, selector: FieldSelector) -> None:
        metadata, path = self._pod.metadata, selector.field_path
        keyed = _KEYED_FIELD.fullmatch(path)
        if keyed:
            values = metadata.labels if keyed[1] == "labels" else metadata.annotations
            self._set(variable.name, values.get(keyed[2], ""))
            return
        fields = {
            "metadata.name": metadata.name,
            "metadata.namespace": metadata.namespace,
            "metadata.uid": metadata.uid,
            "spec.nodeName": self._node.name,
            "spec.serviceAccountName": self._pod.spec.service_account_name or "default",
            "status.podIP": self._address,
            "status.podIPs": self._address,
            "status.hostIP": self._node.host_address,
            "status.hostIPs": self._node.host_address,
        }
        if path in fields:
            self._set(variable.name, fields[path])
        else:
            self._unsupported(f"env[{variable.name}].valueFrom.fieldRef", path)

    def _add_resource(self, variable: EnvVar, selector: ResourceSelector) -> None:
        wanted = selector.container_name or self._container.name
        containers = (*self._pod.spec.containers, *self._pod.spec.init_containers)
        container = next((other for other in containers if other.name == wanted), None)
        kind, _, resource = selector.resource.partition(".")
        if container is None or kind not in ("limits", "requests"):
            self._unsupported(f"env[{variable.name}].valueFrom.resourceFieldRef", selector.resource)
            return
        try:
            value = _resource(container, kind, resource, selector.divisor, self._node)
        except (ValueError, ZeroDivisionError) as error:
            self._unsupported(f"env[{variable.name}].valueFrom.resourceFieldRef", str(error))
            return
        self._set(variable.name, str(value))

    def _missing(self, name: SourceName, field: str, key: str = "") -> None:
        what = f"{name.kind.value} {name.name!r} has no key {key!r}" if key else None
        self.problems.append(
            Problem(
                code=ErrorCode.MISSING_REFERENCE,
                message=what or f"there is no {name.kind.value} {name.name!r}",
                object=self._pod.key,
                field=f"spec.containers[{self._container.name}].{field}",
                remedy=f"apply the {name.kind.value}, or mark the reference optional",
            )
        )

    def _unsupported(self, field: str, value: str) -> None:
        self.problems.append(
            Problem(
                code=ErrorCode.UNSUPPORTED,
                message="this field of a pod can't be had",
                object=self._pod.key,
                field=f"spec.containers[{self._container.name}].{field}",
                value=value,
                remedy="use a field that the downward API of Kubernetes offers to variables",
            )
        )


def _resource(
    container: Container, kind: str, resource: str, divisor: int | float | str, node: NodeFacts
) -> int:
    """A limit or request in units of the divisor, rounded up; the node's own where none is set."""
    resources = container.resources
    written = resources.limits if kind == "limits" else resources.requests
    if resource in written:
        amount = parse_quantity(written[resource])
    elif kind == "limits" and resource in ("cpu", "memory"):
        amount = Fraction(node.cpus if resource == "cpu" else node.memory_bytes)
    else:
        amount = Fraction(0)
    unit = parse_quantity(divisor) or Fraction(1)
    return math.ceil(amount / unit)
