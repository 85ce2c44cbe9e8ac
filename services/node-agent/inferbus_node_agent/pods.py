"""A Kubernetes Pod, as far as a node has to act on it.

Invariant: a `Pod` that was parsed is complete, so that nothing below needs to doubt it.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, NamedTuple

from pydantic import Field, ValidationError, field_validator, model_validator

from inferbus_contracts.envelope import parse_time
from inferbus_contracts.errors import ErrorCode, Problem, ProblemsError, shorten
from inferbus_node_agent.pod_parts import (
    PATH_SAFE,
    ContainerPort,
    EnvFromSource,
    EnvVar,
    Handler,
    PodPart,
    Probe,
    Volume,
    VolumeMount,
    path_safe,
)


class RestartPolicy(StrEnum):
    """What happens to a container that ended."""

    ALWAYS = "Always"
    ON_FAILURE = "OnFailure"
    NEVER = "Never"


class Lifecycle(PodPart):
    """Hooks; only preStop is acted on."""

    pre_stop: Handler | None = None


class Resources(PodPart):
    """Quantities as they were written."""

    limits: dict[str, int | float | str] = Field(default_factory=dict)
    requests: dict[str, int | float | str] = Field(default_factory=dict)


class Container(PodPart):
    """core/v1 Container."""

    name: str
    image: str = ""
    command: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    working_dir: str = ""
    env: tuple[EnvVar, ...] = ()
    env_from: tuple[EnvFromSource, ...] = ()
    ports: tuple[ContainerPort, ...] = ()
    resources: Resources = Resources()
    volume_mounts: tuple[VolumeMount, ...] = ()
    liveness_probe: Probe | None = None
    readiness_probe: Probe | None = None
    startup_probe: Probe | None = None
    lifecycle: Lifecycle = Lifecycle()

    @field_validator("name")
    @classmethod
    def _is_path_safe(cls, value: str) -> str:
        return path_safe(value)


class PodSpec(PodPart):
    """core/v1 PodSpec."""

    init_containers: tuple[Container, ...] = ()
    containers: tuple[Container, ...] = Field(min_length=1)
    volumes: tuple[Volume, ...] = ()
    restart_policy: RestartPolicy = RestartPolicy.ALWAYS
    termination_grace_period_seconds: int = Field(default=30, ge=0)
    service_account_name: str = ""
    node_name: str = ""

    @model_validator(mode="after")
    def _names_are_unique(self) -> "PodSpec":
        names = [container.name for container in (*self.init_containers, *self.containers)]
        repeated = sorted({name for name in names if names.count(name) > 1})
        if repeated:
            raise ValueError(f"two containers are called {repeated[0]!r}")
        return self


class PodMetadata(PodPart):
    """What identifies a pod."""

    name: str
    namespace: str = "default"
    uid: str
    labels: dict[str, str] = Field(default_factory=dict)
    annotations: dict[str, str] = Field(default_factory=dict)
    creation_timestamp: str = ""
    deletion_timestamp: str = ""
    deletion_grace_period_seconds: int | None = Field(default=None, ge=0)

    @field_validator("uid")
    @classmethod
    def _is_path_safe(cls, value: str) -> str:
        return path_safe(value)

    @field_validator("creation_timestamp")
    @classmethod
    def _is_a_time(cls, value: str) -> str:
        if value:
            parse_time(value)
        return value


class Pod(PodPart):
    """core/v1 Pod."""

    metadata: PodMetadata
    spec: PodSpec

    @property
    def uid(self) -> str:
        """The pod's identity: a pod of the same name with another uid is another pod."""
        return self.metadata.uid

    @property
    def key(self) -> str:
        """`Pod/<namespace>/<name>`."""
        return f"Pod/{self.metadata.namespace}/{self.metadata.name}"

    @property
    def deleting(self) -> bool:
        """Whether somebody asked for its end."""
        return bool(self.metadata.deletion_timestamp)


class PodIdentity(NamedTuple):
    """What can be said of a pod object that is not well-formed otherwise."""

    key: str
    uid: str


def parse_pod(document: Mapping[str, Any]) -> Pod:
    """The pod in a Pod object; raises `ProblemsError` with one problem per field that is wrong."""
    try:
        return Pod.model_validate(document)
    except ValidationError as error:
        place = identify_pod(document)
        raise ProblemsError(
            *(
                Problem(
                    code=ErrorCode.RULE_BROKEN,
                    message=detail["msg"],
                    object=place.key if place else None,
                    field=_path(detail["loc"]),
                    value=shorten(detail["input"]),
                    remedy="correct the pod template of the workload",
                )
                for detail in error.errors()
            )
        ) from None


def identify_pod(document: Mapping[str, Any]) -> PodIdentity | None:
    """Key and uid of a Pod object, however broken the rest is; None when those are missing too."""
    metadata = document.get("metadata")
    if not isinstance(metadata, Mapping):
        return None
    name, uid = metadata.get("name"), metadata.get("uid")
    if not isinstance(name, str) or not isinstance(uid, str) or not PATH_SAFE.fullmatch(uid):
        return None
    return PodIdentity(f"Pod/{metadata.get('namespace') or 'default'}/{name}", uid)


def _path(location: tuple[int | str, ...]) -> str:
    text = ""
    for part in location:
        text += f"[{part}]" if isinstance(part, int) else f".{part}"
    return text.removeprefix(".")
