"""Light checks of pod specs that pass through: that there are containers, and images one can pull.

Everything else in a pod spec is for Kubernetes, or the node agent, to judge.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from inferbus_contracts.admission.paths import child
from inferbus_contracts.admission.repeated import repeated_names
from inferbus_contracts.admission.rule import Finding
from inferbus_contracts.errors import ErrorCode


def containers_of(pod_spec: Mapping[str, Any] | None) -> list[dict[str, Any]]:
    """The containers of a pod spec that are mappings; init containers aren't among them."""
    listed = (pod_spec or {}).get("containers")
    items = listed if isinstance(listed, list) else []
    return [item for item in items if isinstance(item, dict)]


def containers_well_formed(pod_spec: Mapping[str, Any] | None, path: str) -> Iterator[Finding]:
    """`containers`, where given, is a list of mappings with names that differ."""
    listed = (pod_spec or {}).get("containers", [])
    field = child(path, "containers")
    if not isinstance(listed, list):
        yield Finding(
            code=ErrorCode.WRONG_TYPE,
            field=field,
            message="should be a list of containers",
            value=listed,
            remedy="write each container as an item that begins with '- name:'",
        )
        return
    names = [item.get("name") if isinstance(item, dict) else None for item in listed]
    named = [(f"{field}[{index}].name", name) for index, name in enumerate(names)]
    for place, name in named:
        if not isinstance(name, str) or not name:
            yield Finding(
                code=ErrorCode.MISSING_FIELD,
                field=place,
                message="a container needs a name",
                remedy="add name, a string",
            )
    told = [(place, name) for place, name in named if isinstance(name, str) and name]
    yield from repeated_names(told, "container of the pod")


def has_containers(pod_spec: Mapping[str, Any] | None, path: str) -> Iterator[Finding]:
    """A pod without containers can't run."""
    if not containers_of(pod_spec):
        yield Finding(
            code=ErrorCode.MISSING_FIELD,
            field=child(path, "containers"),
            message="the pod has no container",
            remedy="add at least one container with name and image",
        )


def image_pullable(image: Any, field: str) -> Iterator[Finding]:
    """An image's name holds no white space; absent or empty is for others to judge."""
    if isinstance(image, str) and image and any(letter.isspace() for letter in image):
        yield Finding(
            code=ErrorCode.VALUE_OUT_OF_RANGE,
            field=field,
            message="no image can have white space in its name",
            value=image,
            remedy="write registry/repository:tag",
        )


def images_pullable(pod_spec: Mapping[str, Any] | None, path: str) -> Iterator[Finding]:
    """The images of a pod's containers."""
    for index, container in enumerate(containers_of(pod_spec)):
        yield from image_pullable(container.get("image"), f"{path}.containers[{index}].image")
