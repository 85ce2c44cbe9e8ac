"""Small objects for expansion tests, with what a test is about written over them."""

import copy
from typing import Any

Document = dict[str, Any]


def backend(**fields: Any) -> Document:
    """One vLLM backend."""
    return {
        "name": "main",
        "type": "vLLM",
        "modelURI": "hf://Qwen/Qwen2.5-0.5B-Instruct",
        "cacheURI": "hostpath:///models",
        "minReplicas": 1,
        "maxReplicas": 1,
        "workers": [worker()],
    } | fields


def worker(**fields: Any) -> Document:
    """One worker with an image."""
    return {"type": "server", "image": "vllm:x", "replicas": 1, "pods": 1} | fields


def booster(
    *backends: Document,
    name: str = "chat",
    client_name: str | None = None,
    annotations: Any = None,
    **spec: Any,
) -> Document:
    """A ModelBooster; `client_name` is its spec.name."""
    named = {"name": client_name} if client_name else {}
    return _document(
        "workload.serving.volcano.sh/v1alpha1",
        "ModelBooster",
        name,
        {"backends": list(backends or (backend(),)), **named, **spec},
        namespace="llm",
        annotations=annotations,
    )


def disaggregated(prefill: Document, decode: Document, **fields: Any) -> Document:
    """A backend with a prefill and a decode worker, whose configurations are given."""
    workers = [
        worker(type="prefill", config=prefill),
        worker(type="decode", config=decode),
    ]
    return backend(**{"name": "gpu", "type": "vLLMDisaggregated", "workers": workers} | fields)


def open_model(name: str = "opt", **spec: Any) -> Document:
    """A model on the Hugging Face hub."""
    source = {"modelHub": {"modelID": "facebook/opt-125m"}}
    body = {"familyName": "opt", "source": source, **spec}
    return _document("llmaz.io/v1alpha1", "OpenModel", name, body)


def uri_model(uri: str, name: str = "opt", **spec: Any) -> Document:
    """A model at a URI."""
    return open_model(name, source={"uri": uri}, **spec)


def flavor(name: str, gpus: int = 1, **fields: Any) -> Document:
    """A flavor that asks for NVIDIA's accelerators."""
    return {"name": name, "limits": {"nvidia.com/gpu": gpus}, **fields}


def runtime(name: str = "engine", **spec: Any) -> Document:
    """A BackendRuntime of one's own."""
    body = {
        "image": "registry/engine",
        "version": "v1",
        "command": ["engine"],
        "recommendedConfigs": [{"name": "default", "args": ["--model", "{{ .ModelPath }}"]}],
        **spec,
    }
    return _document("inference.llmaz.io/v1alpha1", "BackendRuntime", name, body)


def playground(
    name: str = "play", *, config: Document | None = None, annotations: Any = None, **spec: Any
) -> Document:
    """A Playground of the model `opt`; `config` is its backendRuntimeConfig."""
    body: Document = {"modelClaim": {"modelName": "opt"}, **spec}
    if "modelClaims" in spec:
        del body["modelClaim"]
    if config is not None:
        body["backendRuntimeConfig"] = config
    return _document(
        "inference.llmaz.io/v1alpha1", "Playground", name, body, annotations=annotations
    )


def service(
    name: str = "svc",
    *,
    runner: Document | None = None,
    pod: Document | None = None,
    template: Document | None = None,
    annotations: Any = None,
    **spec: Any,
) -> Document:
    """An inference Service; `runner` is written over its container, `pod` over the pod's spec."""
    container = {"name": "model-runner", "image": "vllm/vllm-openai:v1", **(runner or {})}
    worker_template = {"spec": {"containers": [container], **(pod or {})}}
    body = {
        "modelClaims": {"models": [{"name": "opt"}]},
        "workloadTemplate": {"workerTemplate": worker_template, **(template or {})},
        **spec,
    }
    return _document("inference.llmaz.io/v1alpha1", "Service", name, body, annotations=annotations)


def config_map(namespace: str, name: str, **data: str) -> Document:
    """A ConfigMap."""
    return _document("v1", "ConfigMap", name, {}, namespace=namespace) | {"data": data}


def _document(
    api_version: str,
    kind: str,
    name: str,
    spec: Document,
    *,
    namespace: str = "default",
    annotations: Any = None,
) -> Document:
    metadata: Document = {"name": name}
    if kind not in ("OpenModel", "BackendRuntime"):
        metadata["namespace"] = namespace
    if annotations:
        metadata["annotations"] = dict(annotations)
    document = {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec}
    return copy.deepcopy(document)
