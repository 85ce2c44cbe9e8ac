"""Short objects for tests on a cluster, each with names of its own: some are not in a namespace."""

from pathlib import Path
from typing import Any

import yaml

Document = dict[str, Any]

EXAMPLES = Path(__file__).parents[2] / "deploy" / "examples"


def open_model(name: str, model_id: str = "facebook/opt-125m") -> Document:
    return {
        "apiVersion": "llmaz.io/v1alpha1",
        "kind": "OpenModel",
        "metadata": {"name": name},
        "spec": {"familyName": "opt", "source": {"modelHub": {"modelID": model_id}}},
    }


def playground(name: str, model: str, **spec: Any) -> Document:
    return {
        "apiVersion": "inference.llmaz.io/v1alpha1",
        "kind": "Playground",
        "metadata": {"name": name},
        "spec": {"replicas": 1, "modelClaim": {"modelName": model}, **spec},
    }


def policy(name: str) -> Document:
    return {
        "apiVersion": "workload.serving.volcano.sh/v1alpha1",
        "kind": "AutoscalingPolicy",
        "metadata": {"name": name},
        "spec": {"metrics": [{"metricName": "vllm:num_requests_running", "targetValue": 4}]},
    }


def binding(name: str, policy_name: str, target: str) -> Document:
    return {
        "apiVersion": "workload.serving.volcano.sh/v1alpha1",
        "kind": "AutoscalingPolicyBinding",
        "metadata": {"name": name},
        "spec": {
            "policyRef": {"name": policy_name},
            "homogeneousTarget": {
                "target": {"targetRef": {"kind": "ModelServing", "name": target}},
                "minReplicas": 1,
                "maxReplicas": 10,
            },
        },
    }


def booster(name: str) -> Document:
    worker = {
        "type": "server",
        "image": "vllm/vllm-openai:v0.9.0",
        "replicas": 1,
        "pods": 1,
        "resources": {"limits": {"nvidia.com/gpu": "1"}},
    }
    backend = {
        "name": "main",
        "type": "vLLM",
        "modelURI": "hf://facebook/opt-125m",
        "cacheURI": "hostpath:///cache",
        "minReplicas": 1,
        "maxReplicas": 1,
        "workers": [worker],
    }
    return {
        "apiVersion": "workload.serving.volcano.sh/v1alpha1",
        "kind": "ModelBooster",
        "metadata": {"name": name},
        "spec": {"name": name, "backends": [backend]},
    }


def examples() -> list[Document]:
    """Everything that the shipped examples of both platforms hold."""
    files = [EXAMPLES / name for name in ("kthena.yaml", "llmaz.yaml")]
    return [one for file in files for one in yaml.safe_load_all(file.read_text()) if one]
