"""Command lines that people start engines with."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from inferbus_contracts.errors import ErrorCode, ProblemsError
from inferbus_engine_simulator.policy_command_line import (
    NOTHING_KNOWN,
    Defaults,
    parse_command_line,
)
from inferbus_engine_simulator.policy_engine_flags import Adapter, EngineKind

EXAMPLES = Path(__file__).parents[4] / "shared" / "examples"

VLLM_MODULE = ["python", "-m", "vllm.entrypoints.openai.api_server"]
SGLANG_MODULE = ["python3", "-m", "sglang.launch_server"]
OLLAMA_SCRIPT = (
    "ollama serve & while true; do output=$(ollama list 2>&1); "
    "if ! echo $output | grep -q 'refused'; then break; fi; sleep 1; done; "
    "ollama run qwen2:0.5b; while true; do sleep 60; done"
)

# (argv, environment, what is expected of the options)
LINES: list[tuple[list[str], Mapping[str, str], dict[str, Any]]] = [
    (
        ["vllm", "serve", "Qwen/Qwen2.5-7B-Instruct"],
        {},
        {
            "engine": EngineKind.VLLM,
            "model": "Qwen/Qwen2.5-7B-Instruct",
            "served_model_names": ("Qwen/Qwen2.5-7B-Instruct",),
            "port": 8000,
            "block_size": 16,
            "prefix_caching": True,
            "metrics_enabled": True,
        },
    ),
    (
        [*VLLM_MODULE, "--model", "/models/18488ba9", "--served-model-name", "qwen", "chat"],
        {},
        {"model": "/models/18488ba9", "served_model_names": ("qwen", "chat")},
    ),
    (
        [
            *VLLM_MODULE,
            *("--model", "/cache/m", "--block-size", "128", "--enable-prefix-caching"),
            *("--max-model-len", "32768", "--max-num-batched-tokens", "65536"),
            *("--served-model-name", "Qwen2.5-0.5B-Instruct", "--kv-events-config"),
            '{"enable_kv_cache_events":true,"publisher":"zmq","endpoint":"tcp://*:5557"}',
            *("--enable-lora", "--lora-modules", "sql=/cache/a", "chat=/cache/b"),
        ],
        {},
        {
            "block_size": 128,
            "max_model_len": 32768,
            "max_num_batched_tokens": 65536,
            "lora_enabled": True,
            "adapters": (Adapter("sql", "/cache/a"), Adapter("chat", "/cache/b")),
        },
    ),
    (
        [
            "vllm",
            "serve",
            "m",
            "--lora-modules",
            '{"name": "a", "path": "/p", "base_model_name": "m"}',
        ],
        {},
        {"adapters": (Adapter("a", "/p", "m"),)},
    ),
    (
        ["vllm", "serve", "m", "--port=8080", "--host=0.0.0.0", "-tp", "4", "-pp", "2"],
        {},
        {
            "port": 8080,
            "host": "0.0.0.0",
            "tensor_parallel_size": 4,
            "pipeline_parallel_size": 2,
        },
    ),
    (
        ["vllm", "serve", "m", "--max_model_len", "4k", "--max_num_seqs", "8"],
        {},
        {"max_model_len": 4000, "max_num_seqs": 8},
    ),
    (["vllm", "serve", "m", "--max-model-len", "16K"], {}, {"max_model_len": 16384}),
    (["vllm", "serve", "m", "--max-model-len", "auto"], {}, {"max_model_len": None}),
    (["vllm", "serve", "m", "--no-enable-prefix-caching"], {}, {"prefix_caching": False}),
    (["vllm", "serve", "m", "--enable-prefix-caching", "false"], {}, {"prefix_caching": False}),
    (["vllm", "serve", "--enforce-eager", "org/m"], {}, {"model": "org/m"}),
    (["vllm", "serve", "m", "--headless"], {}, {"headless": True}),
    (
        [*VLLM_MODULE, "--model", "m", "--enforce-eager", "--maxModelLen", "12288"],
        {},
        {"max_model_len": None},
    ),
    (
        [
            *("/mnt/cache/deepseek-ai/DeepSeek-V2-Lite/", "--served-model-name"),
            *("deepseek-ai/DeepSeekV2", "--tensor-parallel-size", "2"),
            *("--gpu-memory-utilization", "0.8", "--trust-remote-code", "--enforce-eager"),
            *("--no-enable-prefix-caching", "--kv-transfer-config"),
            '{"kv_connector":"MooncakeConnectorV1","kv_role":"kv_consumer","kv_port":"20002"}',
        ],
        {},
        {
            "engine": EngineKind.VLLM,
            "model": "/mnt/cache/deepseek-ai/DeepSeek-V2-Lite/",
            "served_model_names": ("deepseek-ai/DeepSeekV2",),
            "gpu_memory_utilization": 0.8,
            "kv_role": "kv_consumer",
            "kv_connector": "MooncakeConnectorV1",
            "prefix_caching": False,
        },
    ),
    (["--model", "facebook/opt-125m", "--port", "9001"], {}, {"model": "facebook/opt-125m"}),
    (
        [
            *("bash", "-c"),
            "chmod u+x /v/multi-node-serving.sh && /v/multi-node-serving.sh leader "
            "--ray_cluster_size=2 --num-gpus=8 && python3 -m vllm.entrypoints.openai.api_server "
            "--model /cache/m --tensor-parallel-size 8 --distributed_executor_backend ray",
        ],
        {},
        {"engine": EngineKind.VLLM, "model": "/cache/m", "tensor_parallel_size": 8},
    ),
    (
        [
            *("bash", "-c"),
            "PIP_DISABLE_PIP_VERSION_CHECK=1 pip install -U nixl && exec vllm serve /m "
            '--kv-transfer-config \'{"kv_connector":"NixlConnector","kv_role":"kv_producer"}\'',
        ],
        {},
        {"kv_connector": "NixlConnector", "kv_role": "kv_producer"},
    ),
    (
        ["/bin/sh", "-lc", 'vllm serve "$MODEL" --port ${PORT:-8001} \\\n --max-num-seqs 4'],
        {"MODEL": "org/m"},
        {"model": "org/m", "port": 8001, "max_num_seqs": 4},
    ),
    (
        ["env", "CUDA_VISIBLE_DEVICES=0", "/usr/bin/python3.11", "-u", *VLLM_MODULE[1:]],
        {},
        {"engine": EngineKind.VLLM, "model": "Qwen/Qwen3-0.6B"},
    ),
    (
        [
            *SGLANG_MODULE,
            *("--model-path", "/m", "--served-model-name", "n", "--host", "0.0.0.0"),
            *("--port", "8080", "--enable-metrics"),
        ],
        {},
        {
            "engine": EngineKind.SGLANG,
            "served_model_names": ("n",),
            "port": 8080,
            "block_size": 1,
            "metrics_enabled": True,
        },
    ),
    (
        [*SGLANG_MODULE, "--model-path", "/m"],
        {},
        {"port": 30000, "metrics_enabled": False, "served_model_names": ("/m",)},
    ),
    (
        [
            *SGLANG_MODULE,
            *("--model-path", "/m", "--tp", "2", "--nnodes", "2", "--node-rank", "1"),
            *("--dist-init-addr", "leader:20000", "--trust-remote-code", "--port", "40000"),
        ],
        {},
        {"tensor_parallel_size": 2, "headless": True, "port": 40000},
    ),
    (
        [
            *SGLANG_MODULE,
            *("--model-path", "/m", "--context-length", "8192", "--disable-radix-cache"),
            *("--lora-paths", "a=/x", "/y", "--disaggregation-mode", "decode"),
        ],
        {},
        {
            "max_model_len": 8192,
            "prefix_caching": False,
            "lora_enabled": True,
            "adapters": (Adapter("a", "/x"), Adapter("/y", "/y")),
            "kv_role": "decode",
        },
    ),
    (["--model-path", "/m", "--tp-size", "2"], {}, {"engine": EngineKind.SGLANG}),
    (["sglang", "serve", "--model-path", "/m"], {}, {"engine": EngineKind.SGLANG}),
    (
        ["./llama-server", "-m", "/m/f.gguf", "--host", "0.0.0.0", "--port", "8080", "--metrics"],
        {},
        {
            "engine": EngineKind.LLAMACPP,
            "model": "/m/f.gguf",
            "port": 8080,
            "metrics_enabled": True,
        },
    ),
    (
        ["./llama-server", "-m", "/m/f.gguf", "-fa", "-md", "/m/d.gguf", "--draft-max", "16"],
        {},
        {"model": "/m/f.gguf", "metrics_enabled": False},
    ),
    (
        ["llama-server", "-hf", "org/m-GGUF", "-a", "x,y", "-c", "0", "-np", "8"],
        {},
        {"served_model_names": ("x", "y"), "max_model_len": None, "max_num_seqs": 8},
    ),
    (
        ["text-generation-launcher", "--model-id", "org/m", "--port", "8080", "--num-shard", "2"],
        {},
        {"engine": EngineKind.TGI, "port": 8080, "tensor_parallel_size": 2},
    ),
    (["--model-id", "org/m"], {"PORT": "80"}, {"engine": EngineKind.TGI, "port": 80}),
    (
        ["trtllm-serve", "/m", "--host", "0.0.0.0", "--port", "8080", "--max_seq_len", "4096"],
        {},
        {"engine": EngineKind.TENSORRT_LLM, "model": "/m", "max_model_len": 4096},
    ),
    (
        ["sh", "-c", OLLAMA_SCRIPT],
        {"OLLAMA_HOST": "0.0.0.0:8080"},
        {
            "engine": EngineKind.OLLAMA,
            "model": "qwen2:0.5b",
            "port": 8080,
            "host": "0.0.0.0",
        },
    ),
    (["ollama", "start"], {}, {"engine": EngineKind.OLLAMA}),
    (["ollama", "serve"], {}, {"engine": EngineKind.OLLAMA, "port": 11434}),
]


@pytest.mark.parametrize(("argv", "environment", "expected"), LINES, ids=lambda v: str(v)[:60])
def test_real_command_lines(
    argv: list[str], environment: Mapping[str, str], expected: dict[str, Any]
) -> None:
    options = parse_command_line(argv, environment)

    assert {name: getattr(options, name) for name in expected} == expected


# (argv, the flag or place to blame, the value as it is reported)
MISTAKES = [
    (["vllm", "serve", "m", "--port", "eighty"], "--port", "eighty"),
    (["vllm", "serve", "m", "--port", "0"], "--port", "0"),
    (["vllm", "serve", "m", "--max-model-len", "1.048576e+06"], "--max-model-len", "1.048576e+06"),
    (["vllm", "serve", "m", "--max-num-seqs", "0"], "--max-num-seqs", "0"),
    (["vllm", "serve", "m", "--gpu-memory-utilization", "90"], "--gpu-memory-utilization", "90"),
    (
        ["vllm", "serve", "m", "--kv-transfer-config", "kv_role:x"],
        "--kv-transfer-config",
        "kv_role:x",
    ),
    (["vllm", "serve", "m", "--lora-modules", "sql"], "--lora-modules", "sql"),
    (["vllm", "serve", "m", "--lora-modules", '{"name": "a"}'], "--lora-modules", '{"name": "a"}'),
    (["vllm", "serve", "m", "--served-model-name"], "--served-model-name", None),
    ([*SGLANG_MODULE, "--port", "1"], "command", None),
    ([*SGLANG_MODULE, "--model-path", "/m", "--node-rank", "$(X)"], "--node-rank", "$(X)"),
    (["sh", "-c", "echo 'x"], "command", "echo 'x"),
    (["sh", "-c", "chmod u+x s && s worker --ray_address=a"], "command", None),
    (["nginx", "-g", "daemon off;"], "command", None),
    ([], "command", None),
]


@pytest.mark.parametrize(("argv", "field", "value"), MISTAKES, ids=lambda v: str(v)[:60])
def test_a_mistake_is_told_by_flag_and_value(
    argv: list[str], field: str, value: str | None
) -> None:
    with pytest.raises(ProblemsError) as caught:
        parse_command_line(argv, {})

    (problem,) = caught.value.problems
    assert problem.code is ErrorCode.BAD_ARGUMENT
    assert problem.field == field
    assert value is None or problem.value == value
    assert problem.remedy


def test_every_mistake_of_a_line_is_told() -> None:
    with pytest.raises(ProblemsError) as caught:
        parse_command_line(["vllm", "serve", "m", "--port", "x", "--max-num-seqs", "y"], {})

    assert [problem.field for problem in caught.value.problems] == ["--port", "--max-num-seqs"]


def test_a_bad_variable_is_told_by_its_name() -> None:
    with pytest.raises(ProblemsError, match="OLLAMA_HOST"):
        parse_command_line(["ollama", "serve"], {"OLLAMA_HOST": "0.0.0.0:http"})


def test_unknown_flags_are_kept_and_ignored() -> None:
    options = parse_command_line(
        [*("vllm", "serve", "m", "--seed", "7", "--maxModelLen", "9", "--swap_space=4"), "--cute"],
        {},
    )

    ignored = [(flag.flag, flag.values, flag.hint) for flag in options.ignored]
    assert ignored == [
        ("--seed", ("7",), ""),
        ("--maxModelLen", ("9",), "--max-model-len"),
        ("--swap_space", ("4",), ""),
        ("--cute", (), ""),
    ]


def test_the_image_tells_the_engine_where_the_line_does_not() -> None:
    known = Defaults(EngineKind.SGLANG, 8080, "qwen")

    assert parse_command_line([], {}, known)[:3] == (EngineKind.SGLANG, "qwen", ("qwen",))
    assert parse_command_line(["bash", "/start.sh"], {}, known).port == 8080
    assert parse_command_line(["--tp", "2", "--port", "81"], {}, known).port == 81
    assert parse_command_line(["vllm", "serve", "m"], {}, known).engine is EngineKind.VLLM
    with pytest.raises(ProblemsError, match="no inference engine"):
        parse_command_line(["sh", "-c", "sleep 1"], {}, known)


def engine_containers() -> list[tuple[str, list[str]]]:
    """The containers of the examples that start an engine: file, command and args."""

    def walk(node: Any) -> list[list[str]]:
        if isinstance(node, list):
            return [found for item in node for found in walk(item)]
        if not isinstance(node, dict):
            return []
        words = [str(word) for word in [*(node.get("command") or []), *(node.get("args") or [])]]
        own = [words] if "image" in node and words and "--source" not in words else []
        own = own if "--engine" not in words else []
        return own + [found for item in node.values() for found in walk(item)]

    return [
        (path.name, words)
        for path in sorted(EXAMPLES.rglob("*.yaml"))
        for document in yaml.safe_load_all(path.read_text(encoding="utf-8-sig"))
        for words in walk(document)
    ]


def test_the_engines_of_the_platforms_examples_are_understood() -> None:
    if not EXAMPLES.is_dir():
        pytest.skip(f"the platforms' example manifests are not at {EXAMPLES}")
    containers = engine_containers()

    assert len(containers) >= 4
    for name, words in containers:
        expanded = [word.replace("$(LWS_WORKER_INDEX)", "1") for word in words]
        options = parse_command_line(expanded, {}, NOTHING_KNOWN)
        assert options.model.startswith("/"), (name, words)
