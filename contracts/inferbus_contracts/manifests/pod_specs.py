"""Pod specs inside of other objects: they pass through, but for what nobody could run.

A definition that held the whole of core/v1's PodSpec would age with Kubernetes (ADR 0027).
"""

from typing import Any

from inferbus_contracts.manifests.refinement import Schema, merged_by
from inferbus_contracts.manifests.structural import PRESERVE

MAX_CONTAINERS = 256
"""More than any pod holds; CEL rules need a bound."""


def pod_spec(**containers: Any) -> Schema:
    """A pod spec that passes through; of it only the names and images of containers are checked.

    `containers` are further demands on the list, e.g. `minItems`.
    """
    container = {
        "type": "object",
        PRESERVE: True,
        "required": ["name"],
        "properties": {
            "name": {"type": "string", "minLength": 1, "description": "Name within the pod."},
            "image": {
                "type": "string",
                "pattern": r"^\S*$",
                "description": "Image to run, without white space.",
            },
        },
    }
    listed = {
        "type": "array",
        "description": "Containers of the pod; everything in them is passed on as it is.",
        "items": container,
        "maxItems": MAX_CONTAINERS,
        **merged_by("name"),
        **containers,
    }
    return {
        "type": "object",
        "description": "Spec of the pods, as core/v1 has it; passed on as it is.",
        PRESERVE: True,
        "properties": {"containers": listed},
    }
