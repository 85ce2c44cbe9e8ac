"""The six engines of llmaz as BackendRuntimes (llmaz spec 6).

Differences from the reference: vLLM's drain hook asks the port that vLLM serves on (B1); ollama
serves only when its model is there (B2); a load may take an hour (B3); llama.cpp serves under the
model's name (B4) and comes from its present registry (B6).

Invariant: every engine serves on 8080.
"""

from collections.abc import Mapping
from typing import Any

from inferbus_contracts.resources.kinds import BACKEND_RUNTIME, KINDS
from inferbus_spec_watcher.builtin.drain import (
    LLAMACPP_GAUGES,
    TGI_GAUGES,
    VLLM_GAUGES,
    drain_hook,
)

PORT = 8080
STARTUP_PERIOD_SECONDS = 10
STARTUP_FAILURES = 360
"""With the period: an hour."""

_LABELS = {
    "app.kubernetes.io/name": "backendruntime",
    "app.kubernetes.io/part-of": "llmaz",
    "app.kubernetes.io/created-by": "llmaz",
}
_ADDRESS = ["--host", "0.0.0.0", "--port", str(PORT)]
_MODEL_PATH = "{{ .ModelPath }}"
_DRAFT_MODEL_PATH = "{{ .DraftModelPath }}"
_MODEL_NAME = "{{ .ModelName }}"


def _get(path: str, **numbers: int) -> dict[str, Any]:
    return {"httpGet": {"path": path, "port": PORT}, **numbers}


def _startup(probe: dict[str, Any]) -> dict[str, Any]:
    return {**probe, "periodSeconds": STARTUP_PERIOD_SECONDS, "failureThreshold": STARTUP_FAILURES}


def _probes(readiness_path: str = "/health") -> dict[str, Any]:
    return {
        "startupProbe": _startup(_get("/health")),
        "livenessProbe": _get(
            "/health", initialDelaySeconds=15, periodSeconds=10, failureThreshold=3
        ),
        "readinessProbe": _get(
            readiness_path, initialDelaySeconds=5, periodSeconds=5, failureThreshold=3
        ),
    }


def _amounts(cpu: str, memory: str) -> dict[str, str]:
    return {"cpu": cpu, "memory": memory}


def _config(name: str, args: list[str], cpu: str, memory: str, **more: Any) -> dict[str, Any]:
    amounts = _amounts(cpu, memory)
    return {
        "name": name,
        "args": args,
        "resources": {"requests": amounts, "limits": amounts},
        **more,
    }


def _runtime(
    name: str, image: str, version: str, configs: list[dict[str, Any]], **spec: Any
) -> dict[str, Any]:
    return {
        "apiVersion": KINDS[BACKEND_RUNTIME].api_version,
        "kind": BACKEND_RUNTIME,
        "metadata": {"name": name, "labels": _LABELS},
        "spec": {"image": image, "version": version, "recommendedConfigs": configs, **spec},
    }


_VLLM_MODEL = ["--model", _MODEL_PATH, "--served-model-name", _MODEL_NAME]
_VLLM = _runtime(
    "vllm",
    "vllm/vllm-openai",
    "v0.7.3",
    [
        _config("default", [*_VLLM_MODEL, *_ADDRESS], "4", "8Gi", sharedMemorySize="2Gi"),
        {
            "name": "speculative-decoding",
            "args": [
                *_VLLM_MODEL,
                *("--speculative_model", _DRAFT_MODEL_PATH),
                *_ADDRESS,
                *("--num_speculative_tokens", "5", "-tp", "1"),
            ],
            "resources": {"requests": _amounts("4", "8Gi"), "limits": _amounts("8", "16Gi")},
            "sharedMemorySize": "2Gi",
        },
    ],
    command=["python3", "-m", "vllm.entrypoints.openai.api_server"],
    lifecycle=drain_hook(VLLM_GAUGES, PORT),
    **_probes(),
)

_SGLANG = _runtime(
    "sglang",
    "lmsysorg/sglang",
    "v0.4.5-cu121",
    [
        _config(
            "default",
            ["--model-path", _MODEL_PATH, "--served-model-name", _MODEL_NAME, *_ADDRESS],
            "4",
            "8Gi",
            sharedMemorySize="2Gi",
        )
    ],
    command=["python3", "-m", "sglang.launch_server"],
    **_probes("/health_generate"),
)

_LLAMACPP_MODEL = ["-m", _MODEL_PATH]
_LLAMACPP_REST = ["--metrics", "--alias", _MODEL_NAME]
_LLAMACPP = _runtime(
    "llamacpp",
    "ghcr.io/ggml-org/llama.cpp",
    "server",
    [
        _config("default", [*_LLAMACPP_MODEL, *_ADDRESS, *_LLAMACPP_REST], "2", "4Gi"),
        {
            "name": "speculative-decoding",
            "args": [
                *_LLAMACPP_MODEL,
                *("-md", _DRAFT_MODEL_PATH),
                *_ADDRESS,
                *("--draft-max", "16", "--draft-min", "5"),
                *_LLAMACPP_REST,
            ],
        },
    ],
    command=["./llama-server"],
    lifecycle=drain_hook(LLAMACPP_GAUGES, PORT),
    **_probes(),
)

_TGI = _runtime(
    "tgi",
    "ghcr.io/huggingface/text-generation-inference",
    "2.3.1",
    [_config("default", ["--model-id", _MODEL_PATH, "--port", str(PORT)], "4", "8Gi")],
    lifecycle=drain_hook(TGI_GAUGES, PORT),
    **_probes(),
)

_TENSORRT_LLM = _runtime(
    "tensorrt-llm",
    "nvcr.io/nvidia/tritonserver",
    "25.03-trtllm-python-py3",
    [_config("default", [_MODEL_PATH, *_ADDRESS], "4", "16Gi")],
    command=["trtllm-serve"],
    **_probes(),
)

_OLLAMA_SCRIPT = f"""set -e
export OLLAMA_HOST=127.0.0.1:11434
ollama serve & server=$!
until ollama list >/dev/null 2>&1; do sleep 1; done
ollama pull '{_MODEL_NAME}'
kill $server; wait $server || true
export OLLAMA_HOST=0.0.0.0:{PORT}
exec ollama serve"""
"""Pulls where nobody can connect, so that an open port means that the model is there."""

_OLLAMA = _runtime(
    "ollama",
    "ollama/ollama",
    "latest",
    [_config("default", [_OLLAMA_SCRIPT], "2", "4Gi")],
    command=["sh", "-c"],
    envs=[{"name": "OLLAMA_HOST", "value": f"0.0.0.0:{PORT}"}],
    startupProbe=_startup({"tcpSocket": {"port": PORT}}),
    readinessProbe={"tcpSocket": {"port": PORT}, "periodSeconds": 5},
)

BUILT_IN_RUNTIMES: Mapping[str, Mapping[str, Any]] = {
    manifest["metadata"]["name"]: manifest
    for manifest in (_VLLM, _SGLANG, _LLAMACPP, _TGI, _TENSORRT_LLM, _OLLAMA)
}
"""Manifests by name."""
