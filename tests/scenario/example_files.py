"""The manifests that users of the two platforms already have, and what becomes of each here.

Files of one batch are applied together. Batches are not: `opt-125m` stands in two files of llmaz,
`qwen2-0--5b` in three and `qwen2-0--5b-gguf` in two.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support.platform import model_manifests

FOLDER = Path(__file__).parents[3] / "shared" / "examples"
"""Beside the checkout; not everybody has it."""


@dataclass(frozen=True)
class Batch:
    """Files that are applied together."""

    files: tuple[str, ...]
    serves: tuple[str, ...] = ()
    """Names of models that clients can ask for."""
    children: tuple[str, ...] = ()
    """Keys of what the platform makes of them."""
    pods: int = 0
    beside: tuple[Mapping[str, Any], ...] = field(default=())
    """What the files expect to be there already."""

    @property
    def name(self) -> str:
        """The first file."""
        return self.files[0]


def _playground(file: str, name: str, model: str, *more: str) -> Batch:
    service, workload = f"Service/default/{name}", f"LeaderWorkerSet/default/{name}"
    front = (f"CoreService/default/{name}-lb", *_routing("default", name, name))
    return Batch((file,), (model,), (service, workload, *front, *more), pods=1)


def _routing(namespace: str, server: str, route: str) -> tuple[str, str]:
    return f"ModelServer/{namespace}/{server}", f"ModelRoute/{namespace}/{route}"


def _workload(size: str, *versions: str) -> list[dict[str, Any]]:
    """What the files of ModelServers select: on Kubernetes a Deployment that is applied before."""
    app, model = f"deepseek-r1-{size.lower().replace('.', '-')}", f"DeepSeek-R1-Distill-Qwen-{size}"
    served = f"deepseek-ai/{model}"
    adapters = ["--enable-lora", "--lora-modules", "lora-A=/a", "lora-B=/b"]
    workloads = []
    for version in versions:
        serving, _, _ = model_manifests(
            f"{app}-{version}", engine_arguments=(f"{served}-{version}", served, *adapters)
        )
        template = serving["spec"]["template"]["roles"][0]["entryTemplate"]
        template["metadata"]["labels"] = {"app": app, "version": version}
        workloads.append(serving)
    return workloads


_BOOSTER = "deepseek-r1-distill-llama-8b"
_BACKEND = f"{_BOOSTER}-dee-7fae2a34"

BATCHES = (
    Batch(("kthena/sample.yaml",), pods=8),
    Batch(
        (
            "kthena/prefill-decode-disaggregation.yaml",
            "kthena/ModelServer-prefill-decode-disaggregation.yaml",
            "kthena/ModelRoute-prefill-decode-disaggregation.yaml",
        ),
        ("deepseek-ai/DeepSeekV2",),
        pods=2,
    ),
    Batch(
        (
            "kthena/ModelRouteSimple.yaml",
            "kthena/ModelRouteLora.yaml",
            "kthena/ModelRouteMultiModels.yaml",
            "kthena/ModelRouteSubset.yaml",
            "kthena/ModelRouteWithRateLimit.yaml",
            "kthena/ModelServer-ds1.5b.yaml",
            "kthena/ModelServer-ds1.5b-Canary.yaml",
            "kthena/ModelServer-ds7b.yaml",
        ),
        (
            "deepseek-simple",
            "lora-A",
            "lora-B",
            "deepseek-multi-models",
            "deepseek-subset",
            "deepseek-r1-with-rate-limit",
        ),
        pods=3,
        beside=(*_workload("1.5B", "v1", "v2"), *_workload("7B", "v1")),
    ),
    Batch(
        ("kthena/Qwen2.5-0.5B-Instruct.yaml",),
        ("demo",),
        ("ModelServing/default/demo-backend1", *_routing("default", "demo-backend1", "demo")),
        pods=1,
    ),
    Batch(
        ("kthena/Deepseek-R1-Distill-llama-8B.yaml",),
        (_BOOSTER, "lora-sql"),
        (
            f"ModelServing/default/{_BACKEND}",
            *_routing("default", _BACKEND, _BOOSTER),
            f"AutoscalingPolicy/default/{_BOOSTER}",
            f"AutoscalingPolicyBinding/default/{_BOOSTER}",
        ),
        pods=1,
    ),
    _playground("llmaz/huggingface.yaml", "opt-125m", "opt-125m"),
    _playground("llmaz/modelscope.yaml", "opt-125m", "opt-125m"),
    _playground("llmaz/sglang.yaml", "qwen2-0--5b", "qwen2-0--5b"),
    _playground("llmaz/ollama.yaml", "qwen2-0--5b", "qwen2-0--5b"),
    _playground("llmaz/llamacpp.yaml", "qwen2-0--5b", "qwen2-0--5b-gguf"),
    _playground("llmaz/objstore-oss.yaml", "qwen2-7b", "qwen2-7b"),
    _playground(
        "llmaz/speculative-decoding-llamacpp.yaml", "llamacpp-speculator", "llama2-7b-q8-gguf"
    ),
    _playground(
        "llmaz/hpa.yaml",
        "qwen2-0--5b-hpa",
        "qwen2-0--5b-gguf",
        "HorizontalPodAutoscaler/default/qwen2-0--5b-hpa",
    ),
    Batch(
        ("llmaz/multi-nodes-service.yaml",),
        ("llama3-405b-instruct",),
        (
            "LeaderWorkerSet/default/llama3-405b-instruct",
            "CoreService/default/llama3-405b-instruct-lb",
            *_routing("default", "llama3-405b-instruct", "llama3-405b-instruct"),
        ),
        pods=4,
    ),
)

_CACHE = "a cache of models that outlives pods"
LEFT_TO_SHORT_KINDS: Mapping[str, tuple[str, ...]] = {
    "kthena/Deepseek-R1-Distill-llama-8B.yaml": (
        "adapters that change without new pods",
        "`scaleToZeroGracePeriod`",
    ),
    "llmaz/hpa.yaml": (_CACHE, "evaluating the HorizontalPodAutoscaler without a cluster"),
    "llmaz/huggingface.yaml": (_CACHE,),
    "llmaz/llamacpp.yaml": (_CACHE,),
    "llmaz/modelscope.yaml": (_CACHE,),
    "llmaz/objstore-oss.yaml": (_CACHE, "OSS by Inferbus' own loader"),
    "llmaz/ollama.yaml": (_CACHE,),
    "llmaz/sglang.yaml": (_CACHE,),
    "llmaz/speculative-decoding-llamacpp.yaml": (_CACHE,),
}
"""What each file says, or its users expect, that isn't done yet; the README tells the same."""
