"""The parts of passed-through pods that expansion reads or adds to, as types.

Admission lets pods pass as they are, because Kubernetes judges them; a fault in a part that is
needed here is told with its field all the same. Invariant: what `check_shape` lets through can be
rendered, and what it doesn't know stays as it is.
"""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field

from inferbus_contracts.admission.schema import decode
from inferbus_contracts.resources.document import ResourcePart
from inferbus_contracts.resources.kinds import INFERENCE_SERVICE, MODEL_BOOSTER
from inferbus_contracts.resources.metadata import PassThrough
from inferbus_contracts.resources.scalars import Integer, Quantity

REQUIRED_NODES = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED_NODES = "preferredDuringSchedulingIgnoredDuringExecution"

_Mappings = list[dict[str, Any]]


class _Part(ResourcePart, extra="allow"):
    """A mapping of which only some fields matter."""


class _Named(_Part):
    name: str


class _Mount(_Part):
    mount_path: str


class _Port(_Part):
    container_port: Integer


class _Amounts(_Part):
    limits: dict[str, Quantity] = Field(default_factory=dict)
    requests: dict[str, Quantity] = Field(default_factory=dict)


class _Container(_Named):
    image: str = ""
    command: list[str] = Field(default_factory=list)
    args: list[str] = Field(default_factory=list)
    env: list[_Named] = Field(default_factory=list)
    ports: list[_Port] = Field(default_factory=list)
    volume_mounts: list[_Mount] = Field(default_factory=list)
    resources: _Amounts | None = None


class _NodeTerm(_Part):
    match_expressions: _Mappings = Field(default_factory=list)


class _NodeSelector(_Part):
    node_selector_terms: list[_NodeTerm] = Field(default_factory=list)


class _NodeAffinity(_Part):
    required: Annotated[_NodeSelector | None, Field(alias=REQUIRED_NODES)] = None
    preferred: Annotated[_Mappings, Field(alias=PREFERRED_NODES, default_factory=list)]


class _Affinity(_Part):
    node_affinity: _NodeAffinity | None = None


class _PodSpec(_Part):
    containers: list[_Container] = Field(min_length=1)
    init_containers: list[_Named] = Field(default_factory=list)
    volumes: list[_Named] = Field(default_factory=list)
    tolerations: _Mappings = Field(default_factory=list)
    affinity: _Affinity | None = None
    scheduler_name: str = ""


class _PodMetadata(_Part):
    labels: dict[str, str] = Field(default_factory=dict)
    annotations: dict[str, str] = Field(default_factory=dict)


class _PodTemplate(_Part):
    metadata: _PodMetadata | None = None
    spec: _PodSpec


class _WorkloadTemplate(_Part):
    leader_template: _PodTemplate | None = None
    worker_template: _PodTemplate


class _ServiceSpec(_Part):
    workload_template: _WorkloadTemplate


class _ServiceShape(PassThrough):
    spec: _ServiceSpec


class _Worker(_Part):
    resources: _Amounts | None = None


class _Backend(_Part):
    env: list[_Named] = Field(default_factory=list)
    workers: list[_Worker]


class _BoosterSpec(_Part):
    backends: list[_Backend] = Field(default_factory=list)
    backend: _Backend | None = None


class _BoosterShape(PassThrough):
    spec: _BoosterSpec


_SHAPES: Mapping[str, type[PassThrough]] = {
    MODEL_BOOSTER: _BoosterShape,
    INFERENCE_SERVICE: _ServiceShape,
}


def check_shape(kind: str, document: Mapping[str, Any]) -> None:
    """Raise `ProblemsError` for parts of an object's pods that can't be read.

    `kind` is the object's token; kinds that hold no pods are fine.
    """
    if kind in _SHAPES:
        decode(_SHAPES[kind], document)
