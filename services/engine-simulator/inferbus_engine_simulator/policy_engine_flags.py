"""The flags of each engine that change how it serves, and its defaults.

Names, values and defaults are the engines' own (vLLM 0.13, SGLang 0.5, llama.cpp's server, TGI 3,
trtllm-serve 1.0, Ollama). A field means the same for every engine; see `ServerOptions`.

Invariant: a field has one converter per engine, and every engine has a port.
"""

import json
from enum import StrEnum
from typing import NamedTuple

from inferbus_engine_simulator.policy_flags import (
    Arity,
    Flag,
    fraction,
    integer,
    json_object,
    port,
    token_count,
)


class EngineKind(StrEnum):
    """The engines whose command lines are understood."""

    VLLM = "vllm"
    SGLANG = "sglang"
    LLAMACPP = "llamacpp"
    TGI = "tgi"
    TENSORRT_LLM = "tensorrt-llm"
    OLLAMA = "ollama"
    MINDIE = "mindie"
    OPENAI = "openai"
    """Anything else that speaks the API."""


class Adapter(NamedTuple):
    """A LoRA adapter: the name that requests use, and where its weights are."""

    name: str
    path: str
    base_model: str = ""


def adapter(word: str) -> Adapter:
    """`name=path`, or vLLM's JSON object with `name` and `path`."""
    if word.startswith("{"):
        try:
            value = json.loads(word)
            return Adapter(value["name"], value["path"], value.get("base_model_name") or "")
        except (json.JSONDecodeError, KeyError, TypeError):
            raise ValueError('name=path, or JSON such as {"name": "a", "path": "/a"}') from None
    name, equals, path = word.partition("=")
    if not equals or not name or not path:
        raise ValueError('name=path, or JSON such as {"name": "a", "path": "/a"}')
    return Adapter(name, path)


def adapter_or_path(word: str) -> Adapter:
    """SGLang's form: like `adapter`, or a path alone, which is its own name."""
    return adapter(word) if "=" in word or word.startswith("{") else Adapter(word, word)


_AT_LEAST_1 = integer(1)

VLLM_FLAGS: tuple[Flag, ...] = (
    Flag("model", ("--model",)),
    Flag("served_model_names", ("--served-model-name",), arity=Arity.MANY),
    Flag("host", ("--host",)),
    Flag("port", ("--port",), port),
    Flag("max_model_len", ("--max-model-len",), token_count),
    Flag("max_num_seqs", ("--max-num-seqs",), _AT_LEAST_1),
    Flag("max_num_batched_tokens", ("--max-num-batched-tokens",), token_count),
    Flag("block_size", ("--block-size",), _AT_LEAST_1),
    Flag("gpu_memory_utilization", ("--gpu-memory-utilization",), fraction),
    Flag("tensor_parallel_size", ("--tensor-parallel-size", "-tp"), _AT_LEAST_1),
    Flag("pipeline_parallel_size", ("--pipeline-parallel-size", "-pp"), _AT_LEAST_1),
    Flag("prefix_caching", ("--enable-prefix-caching",), arity=Arity.NONE),
    Flag("prefix_caching", ("--no-enable-prefix-caching",), arity=Arity.NONE, constant=False),
    Flag("lora_enabled", ("--enable-lora",), arity=Arity.NONE),
    Flag("adapters", ("--lora-modules",), adapter, Arity.MANY),
    Flag("max_loras", ("--max-loras",), _AT_LEAST_1),
    Flag("kv_transfer", ("--kv-transfer-config",), json_object),
    Flag("quantization", ("--quantization", "-q")),
    Flag("headless", ("--headless",), arity=Arity.NONE),
)

VLLM_SWITCHES = frozenset(
    {
        "--trust-remote-code",
        "--enforce-eager",
        "--enable-chunked-prefill",
        "--no-enable-chunked-prefill",
        "--enable-auto-tool-choice",
        "--enable-expert-parallel",
        "--enable-reasoning",
        "--enable-sleep-mode",
        "--enable-request-id-headers",
        "--disable-log-requests",
        "--disable-log-stats",
        "--disable-custom-all-reduce",
        "--disable-uvicorn-access-log",
        "--skip-tokenizer-init",
        "--async-scheduling",
    }
)

SGLANG_FLAGS: tuple[Flag, ...] = (
    Flag("model", ("--model-path", "--model")),
    Flag("served_model_names", ("--served-model-name",), arity=Arity.MANY),
    Flag("host", ("--host",)),
    Flag("port", ("--port",), port),
    Flag("max_model_len", ("--context-length",), _AT_LEAST_1),
    Flag("max_num_seqs", ("--max-running-requests",), _AT_LEAST_1),
    Flag("max_num_batched_tokens", ("--chunked-prefill-size",), token_count),
    Flag("block_size", ("--page-size",), _AT_LEAST_1),
    Flag("gpu_memory_utilization", ("--mem-fraction-static",), fraction),
    Flag("tensor_parallel_size", ("--tensor-parallel-size", "--tp-size", "--tp"), _AT_LEAST_1),
    Flag("pipeline_parallel_size", ("--pipeline-parallel-size", "--pp-size", "--pp"), _AT_LEAST_1),
    Flag("prefix_caching", ("--disable-radix-cache",), arity=Arity.NONE, constant=False),
    Flag("lora_enabled", ("--enable-lora",), arity=Arity.NONE),
    Flag("adapters", ("--lora-paths",), adapter_or_path, Arity.MANY),
    Flag("max_loras", ("--max-loras-per-batch",), _AT_LEAST_1),
    Flag("kv_role", ("--disaggregation-mode",)),
    Flag("bootstrap_port", ("--disaggregation-bootstrap-port",), port),
    Flag("quantization", ("--quantization",)),
    Flag("metrics_enabled", ("--enable-metrics",), arity=Arity.NONE),
    Flag("node_rank", ("--node-rank",), integer(0)),
)

SGLANG_SWITCHES = frozenset(
    {
        "--trust-remote-code",
        "--skip-tokenizer-init",
        "--is-embedding",
        "--disable-cuda-graph",
        "--enable-dp-attention",
        "--enable-torch-compile",
        "--enable-cache-report",
        "--enable-mixed-chunk",
        "--log-requests",
    }
)

LLAMACPP_FLAGS: tuple[Flag, ...] = (
    Flag("model", ("-m", "--model")),
    Flag("model", ("-hf", "-hfr", "--hf-repo")),
    Flag("served_model_names", ("-a", "--alias"), arity=Arity.MANY),
    Flag("host", ("--host",)),
    Flag("port", ("--port",), port),
    Flag("max_model_len", ("-c", "--ctx-size"), integer(0)),
    Flag("max_num_seqs", ("-np", "--parallel"), _AT_LEAST_1),
    Flag("max_num_batched_tokens", ("-b", "--batch-size"), _AT_LEAST_1),
    Flag("metrics_enabled", ("--metrics",), arity=Arity.NONE),
)

LLAMACPP_SWITCHES = frozenset({"-fa", "--flash-attn", "--jinja", "-cb", "--cont-batching"})

TGI_FLAGS: tuple[Flag, ...] = (
    Flag("model", ("--model-id",)),
    Flag("host", ("--hostname",)),
    Flag("port", ("-p", "--port"), port),
    Flag("max_model_len", ("--max-total-tokens",), _AT_LEAST_1),
    Flag("max_num_seqs", ("--max-concurrent-requests",), _AT_LEAST_1),
    Flag("max_num_batched_tokens", ("--max-batch-prefill-tokens",), _AT_LEAST_1),
    Flag("gpu_memory_utilization", ("--cuda-memory-fraction",), fraction),
    Flag("tensor_parallel_size", ("--num-shard",), _AT_LEAST_1),
    Flag("quantization", ("--quantize",)),
)

TENSORRT_LLM_FLAGS: tuple[Flag, ...] = (
    Flag("host", ("--host",)),
    Flag("port", ("--port",), port),
    Flag("max_model_len", ("--max-seq-len",), _AT_LEAST_1),
    Flag("max_num_seqs", ("--max-batch-size",), _AT_LEAST_1),
    Flag("max_num_batched_tokens", ("--max-num-tokens",), _AT_LEAST_1),
    Flag("tensor_parallel_size", ("--tp-size",), _AT_LEAST_1),
    Flag("pipeline_parallel_size", ("--pp-size",), _AT_LEAST_1),
    Flag("gpu_memory_utilization", ("--kv-cache-free-gpu-memory-fraction",), fraction),
)


class Dialect(NamedTuple):
    """How one engine is started."""

    flags: tuple[Flag, ...]
    port: int
    """Where it listens by default."""
    block_size_tokens: int
    switches: frozenset[str] = frozenset()
    default_model: str = ""
    """What it serves when no model is named; empty: a model must be named."""
    metrics_enabled: bool = True
    """Whether it has a metrics page without being asked for one."""


DIALECTS: dict[EngineKind, Dialect] = {
    EngineKind.VLLM: Dialect(VLLM_FLAGS, 8000, 16, VLLM_SWITCHES, "Qwen/Qwen3-0.6B"),
    EngineKind.SGLANG: Dialect(SGLANG_FLAGS, 30000, 1, SGLANG_SWITCHES, metrics_enabled=False),
    EngineKind.LLAMACPP: Dialect(
        LLAMACPP_FLAGS, 8080, 32, LLAMACPP_SWITCHES, "default", metrics_enabled=False
    ),
    EngineKind.TGI: Dialect(TGI_FLAGS, 3000, 16, default_model="bigscience/bloom-560m"),
    EngineKind.TENSORRT_LLM: Dialect(TENSORRT_LLM_FLAGS, 8000, 32, metrics_enabled=False),
    EngineKind.OLLAMA: Dialect((), 11434, 32, default_model="default", metrics_enabled=False),
    EngineKind.MINDIE: Dialect((), 1025, 128, default_model="default", metrics_enabled=False),
    EngineKind.OPENAI: Dialect((), 8000, 16, default_model="default", metrics_enabled=False),
}
