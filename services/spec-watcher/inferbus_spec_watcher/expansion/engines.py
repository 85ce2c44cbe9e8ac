"""Which engine a container runs, on which port, and what it calls its model.

An inference Service says none of this in fields of its own, so it is read from the runtime's name
and from the command line. Invariant: what is read is what the engine itself would read; where it
can't be told, nothing is guessed.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from inferbus_contracts.resources.backend_runtime import BackendRuntime
from inferbus_contracts.resources.networking import InferenceEngine
from inferbus_spec_watcher.expansion.engine_flags import is_port, value_after

DEFAULT_PORT = 8080
"""The port behind which every llmaz Service answers (llmaz spec 7)."""

_BY_RUNTIME = {
    "vllm": InferenceEngine.VLLM,
    "sglang": InferenceEngine.SGLANG,
    "llamacpp": InferenceEngine.LLAMA_CPP,
    "tgi": InferenceEngine.TGI,
    "tensorrt-llm": InferenceEngine.TENSORRT_LLM,
    "ollama": InferenceEngine.OLLAMA,
    "mindie": InferenceEngine.MINDIE,
}
_BY_WORDS: tuple[tuple[re.Pattern[str], InferenceEngine], ...] = (
    (re.compile(r"vllm"), InferenceEngine.VLLM),
    (re.compile(r"sglang"), InferenceEngine.SGLANG),
    (re.compile(r"llama[._-]?cpp|llama-server"), InferenceEngine.LLAMA_CPP),
    (re.compile(r"text-generation"), InferenceEngine.TGI),
    (re.compile(r"trtllm|tensorrt"), InferenceEngine.TENSORRT_LLM),
    (re.compile(r"ollama"), InferenceEngine.OLLAMA),
    (re.compile(r"mindie"), InferenceEngine.MINDIE),
)
_NAME_FLAGS: Mapping[InferenceEngine, tuple[str, ...]] = {
    InferenceEngine.VLLM: ("--served-model-name", "--served_model_name"),
    InferenceEngine.SGLANG: ("--served-model-name",),
    InferenceEngine.LLAMA_CPP: ("--alias", "-a"),
}
_MODEL_FLAGS: Mapping[InferenceEngine, tuple[str, ...]] = {
    InferenceEngine.VLLM: ("--model",),
    InferenceEngine.SGLANG: ("--model-path", "--model"),
    InferenceEngine.LLAMA_CPP: ("--model", "-m"),
    InferenceEngine.TGI: ("--model-id",),
}
"""What an engine calls its model when no name is given: what it was told to open."""

_PORT_FLAGS = ("--port", "-p")


def engine_of_runtime(runtime: BackendRuntime) -> InferenceEngine | None:
    """The engine of a BackendRuntime: by its name, else by image and command."""
    known = _BY_RUNTIME.get(runtime.metadata.name)
    return known or _by_words(runtime.spec.image, runtime.spec.command)


def engine_of_container(container: Mapping[str, Any]) -> InferenceEngine:
    """The engine of a container; whatever can't be recognised speaks the OpenAI API."""
    found = _by_words(str(container.get("image") or ""), container.get("command") or ())
    return found or InferenceEngine.OPENAI


def served_model(container: Mapping[str, Any], engine: InferenceEngine) -> str | None:
    """The name under which a container's engine serves; None when its command line doesn't tell."""
    words = _words(container)
    name = value_after(words, _NAME_FLAGS.get(engine, ()))
    return name or value_after(words, _MODEL_FLAGS.get(engine, ()))


def serving_port(container: Mapping[str, Any]) -> int:
    """The port a container serves on: by its command line, else the first it declares, else the
    one that all llmaz runtimes have."""
    written = value_after(_words(container), _PORT_FLAGS) or ""
    if is_port(written):
        return int(written)
    ports = [port.get("containerPort") for port in container.get("ports") or ()]
    return next((port for port in ports if isinstance(port, int)), DEFAULT_PORT)


def _words(container: Mapping[str, Any]) -> Sequence[str]:
    return [*(container.get("command") or ()), *(container.get("args") or ())]


def _by_words(image: str, command: Sequence[str]) -> InferenceEngine | None:
    text = " ".join((image, *command)).lower()
    return next((engine for pattern, engine in _BY_WORDS if pattern.search(text)), None)
