"""The parts of a Kubernetes Pod that a node has to act on, below its containers.

Field names, defaults and meanings are those of core/v1; whatever isn't listed here passes by
unread.
"""

import re
from collections.abc import Mapping
from typing import Any

from pydantic import ConfigDict, Field, field_validator, model_validator

from inferbus_contracts.base import Document

PATH_SAFE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,252}")
"""Names that become names of files."""


def path_safe(value: str) -> str:
    """`value`, which becomes the name of a file; raises `ValueError` when it can't be one."""
    if not PATH_SAFE.fullmatch(value):
        raise ValueError("must be letters, digits, '-', '_', '.', the first a letter or digit")
    return value


class PodPart(Document):
    """A part of a pod; null is the same as absent, as in Kubernetes."""

    model_config = ConfigDict(extra="ignore")

    @model_validator(mode="before")
    @classmethod
    def _without_nulls(cls, value: Any) -> Any:
        if isinstance(value, Mapping):
            return {name: part for name, part in value.items() if part is not None}
        return value


class HttpHeader(PodPart):
    """A header of an HTTP probe or hook."""

    name: str
    value: str = ""


class HttpGetAction(PodPart):
    """A GET request."""

    port: int | str
    path: str = "/"
    host: str = ""
    scheme: str = "HTTP"
    http_headers: tuple[HttpHeader, ...] = ()


class TcpSocketAction(PodPart):
    """A connection."""

    port: int | str
    host: str = ""


class ExecAction(PodPart):
    """A command in the container."""

    command: tuple[str, ...] = ()


class GrpcAction(PodPart):
    """A gRPC health check."""

    port: int


class SleepAction(PodPart):
    """A pause."""

    seconds: int = Field(ge=0)


class Handler(PodPart):
    """What a probe or a hook does: one of the fields is set."""

    exec: ExecAction | None = None
    http_get: HttpGetAction | None = None
    tcp_socket: TcpSocketAction | None = None
    grpc: GrpcAction | None = None
    sleep: SleepAction | None = None


class Probe(Handler):
    """core/v1 Probe with its defaults."""

    initial_delay_seconds: int = Field(default=0, ge=0)
    period_seconds: int = Field(default=10, ge=1)
    timeout_seconds: int = Field(default=1, ge=1)
    success_threshold: int = Field(default=1, ge=1)
    failure_threshold: int = Field(default=3, ge=1)
    termination_grace_period_seconds: int | None = Field(default=None, ge=1)

    @model_validator(mode="before")
    @classmethod
    def _zero_is_the_default(cls, value: Any) -> Any:
        if isinstance(value, Mapping):
            return {name: part for name, part in value.items() if part != 0}
        return value


class KeySelector(PodPart):
    """One key of a ConfigMap or Secret."""

    name: str = ""
    key: str
    optional: bool = False


class FieldSelector(PodPart):
    """A field of the pod."""

    field_path: str


class ResourceSelector(PodPart):
    """A limit or request of a container."""

    resource: str
    container_name: str = ""
    divisor: int | float | str = 0


class EnvSource(PodPart):
    """Where a variable's value comes from."""

    field_ref: FieldSelector | None = None
    resource_field_ref: ResourceSelector | None = None
    config_map_key_ref: KeySelector | None = None
    secret_key_ref: KeySelector | None = None


class EnvVar(PodPart):
    """One variable."""

    name: str
    value: str = ""
    value_from: EnvSource | None = None


class SourceReference(PodPart):
    """A whole ConfigMap or Secret."""

    name: str = ""
    optional: bool = False


class EnvFromSource(PodPart):
    """Variables from all keys of a ConfigMap or Secret."""

    prefix: str = ""
    config_map_ref: SourceReference | None = None
    secret_ref: SourceReference | None = None


class ContainerPort(PodPart):
    """A declared port."""

    container_port: int = Field(ge=1, le=65535)
    name: str = ""
    protocol: str = "TCP"


class VolumeMount(PodPart):
    """Where a volume appears in a container."""

    name: str
    mount_path: str
    sub_path: str = ""


class KeyToPath(PodPart):
    """One key of a ConfigMap or Secret as a file."""

    key: str
    path: str


class ConfigMapVolume(PodPart):
    """Files from a ConfigMap."""

    name: str = ""
    items: tuple[KeyToPath, ...] = ()
    optional: bool = False


class SecretVolume(PodPart):
    """Files from a Secret."""

    secret_name: str = ""
    items: tuple[KeyToPath, ...] = ()
    optional: bool = False


class HostPathVolume(PodPart):
    """A directory of the machine."""

    path: str


class ClaimVolume(PodPart):
    """A PersistentVolumeClaim."""

    claim_name: str


class Volume(PodPart):
    """core/v1 Volume; a source that isn't listed is an empty directory."""

    name: str
    host_path: HostPathVolume | None = None
    persistent_volume_claim: ClaimVolume | None = None
    config_map: ConfigMapVolume | None = None
    secret: SecretVolume | None = None

    @field_validator("name")
    @classmethod
    def _is_path_safe(cls, value: str) -> str:
        return path_safe(value)
