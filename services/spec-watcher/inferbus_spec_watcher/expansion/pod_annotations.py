"""What a pod says about its engine to whoever runs it without knowing the manifest.

Invariant: port and name are those that the ModelServer selecting the pod has.
"""

from inferbus_contracts.resources.annotations import ENGINE_PORT, MODEL_NAME


def pod_annotations(port: int, model: str) -> dict[str, str]:
    """Annotations of a pod that answers; `model` is the name its engine knows the model by."""
    return {ENGINE_PORT: str(port), MODEL_NAME: model}
