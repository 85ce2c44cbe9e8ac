"""A workload of two roles, and the policy that scales them together."""

import copy
from collections.abc import Mapping
from typing import Any

from tests.support.platform import MODEL_PORT

Document = dict[str, Any]


def split_into_roles(workload: Document, replicas: Mapping[str, int]) -> list[Document]:
    """Give the workload these roles, each like the only one it had; the roles, to be changed."""
    template = workload["spec"]["template"]
    (only,) = template["roles"]
    template["roles"] = [
        {**copy.deepcopy(only), "name": name, "replicas": count} for name, count in replicas.items()
    ]
    return list(template["roles"])


def roles_policy(
    workload: Document, metric: Mapping[str, str], most: int, ratio: tuple[str, str], **spec: Any
) -> Document:
    """A policy of one metric for prefill and decode, 1 to `most` replicas and a ratio between."""
    name = workload["metadata"]["name"]
    scaling = {
        "minReplicas": 1,
        "maxReplicas": most,
        "metricSources": {metric["name"]: {"pod": {"port": MODEL_PORT}}},
    }
    target = {
        "targetRef": {"kind": "ModelServing", "name": name},
        "roles": {"prefill": scaling, "decode": scaling},
        "ratioConstraint": {
            "numeratorRole": "prefill",
            "denominatorRole": "decode",
            "minRatio": ratio[0],
            "maxRatio": ratio[1],
        },
    }
    return {
        "apiVersion": workload["apiVersion"],
        "kind": "AutoscalingPolicy",
        "metadata": {"name": name},
        "spec": {"metrics": [metric], "disaggregatedTarget": target, **spec},
    }
