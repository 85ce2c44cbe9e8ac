"""From the command line of an engine to what it will serve.

The line may be the engine's own (`vllm serve M`, `python3 -m sglang.launch_server …`), wrapped in
a shell, or only the arguments, as in a container whose image has the engine as its entry point;
then the arguments themselves, or a hint, tell which engine it is.

Invariant: the same words and environment always give the same options; nothing is read beside them.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any, NamedTuple

from inferbus_contracts.errors import ErrorCode, Problem, ProblemsError
from inferbus_engine_simulator.policy_engine_flags import DIALECTS, Adapter, EngineKind
from inferbus_engine_simulator.policy_flags import IgnoredFlag, is_flag, parse_flags, port
from inferbus_engine_simulator.policy_shell import assignments, simple_commands

_PYTHON = re.compile(r"python(\d+(\.\d+)?)?")

_MODULES: dict[str, EngineKind] = {
    "vllm.entrypoints.openai.api_server": EngineKind.VLLM,
    "vllm.entrypoints.api_server": EngineKind.VLLM,
    "sglang.launch_server": EngineKind.SGLANG,
    "llama_cpp.server": EngineKind.LLAMACPP,
}

_PROGRAMS: dict[str, tuple[EngineKind, tuple[str, ...]]] = {
    "vllm": (EngineKind.VLLM, ("serve",)),
    "sglang": (EngineKind.SGLANG, ("serve",)),
    "llama-server": (EngineKind.LLAMACPP, ()),
    "text-generation-launcher": (EngineKind.TGI, ()),
    "trtllm-serve": (EngineKind.TENSORRT_LLM, ()),
    "ollama": (EngineKind.OLLAMA, ("serve", "start")),
    "mindieservice_daemon": (EngineKind.MINDIE, ()),
}
"""Program name to engine, and the subcommands that serve."""

_TELLING_FLAGS: tuple[tuple[str, EngineKind], ...] = (
    ("--model-id", EngineKind.TGI),
    ("--model-path", EngineKind.SGLANG),
    ("--hf-repo", EngineKind.LLAMACPP),
    ("-hf", EngineKind.LLAMACPP),
    ("-m", EngineKind.LLAMACPP),
    ("--ctx-size", EngineKind.LLAMACPP),
)


class Defaults(NamedTuple):
    """What is known of a container beside its command line; the line wins over all of it."""

    engine: EngineKind | None = None
    """The engine of the container's image."""
    port: int | None = None
    """The port that the container declares."""
    model: str = ""
    """What the platform calls the model."""


NOTHING_KNOWN = Defaults()


class ServerOptions(NamedTuple):
    """What an engine was asked to be. None: the engine decides (see `policy_sizing`)."""

    engine: EngineKind
    model: str
    """Path or hub id of the weights."""
    served_model_names: tuple[str, ...]
    """What requests may call the model; the first one is used in answers and metrics."""
    host: str
    """Empty when the line doesn't say."""
    port: int
    block_size: int
    """Tokens per KV block."""
    max_model_len: int | None = None
    max_num_seqs: int | None = None
    max_num_batched_tokens: int | None = None
    gpu_memory_utilization: float = 0.9
    tensor_parallel_size: int = 1
    pipeline_parallel_size: int = 1
    prefix_caching: bool = True
    lora_enabled: bool = False
    max_loras: int = 1
    adapters: tuple[Adapter, ...] = ()
    kv_role: str = ""
    """`kv_producer`, `kv_consumer`, `kv_both` (vLLM), `prefill`, `decode` (SGLang), or empty."""
    kv_connector: str = ""
    bootstrap_port: int = 8998
    """Where prefill and decode meet (SGLang)."""
    quantization: str = ""
    metrics_enabled: bool = True
    headless: bool = False
    """A follower of a multi-node engine: it computes, but serves no API."""
    ignored: tuple[IgnoredFlag, ...] = ()

    @property
    def meets_in_rooms(self) -> bool:
        """Whether it computes one half of each request, together with another engine (SGLang)."""
        return self.engine is EngineKind.SGLANG and self.kv_role in ("prefill", "decode")

    @property
    def hands_over(self) -> bool:
        """Whether it tells in its answers where its KV blocks are (vLLM)."""
        told = self.kv_connector.startswith(("Nixl", "Mooncake"))
        return told and self.kv_role in ("kv_producer", "kv_both")

    @property
    def takes_over(self) -> bool:
        """Whether it takes the KV blocks that a request says are elsewhere (vLLM)."""
        return self.kv_role in ("kv_consumer", "kv_both")


def parse_command_line(
    argv: Sequence[str], environment: Mapping[str, str], defaults: Defaults = NOTHING_KNOWN
) -> ServerOptions:
    """The options of an engine's command line.

    Raises `ProblemsError` when neither the line nor `defaults` names an engine, when a shell script
    starts none, or when a known flag has a value it can't have.
    """
    commands, in_shell = simple_commands(argv, environment)
    located = next((found for words in commands if (found := _locate(words))), None)
    if located is None:
        arguments = _only_arguments(commands[0])
        if in_shell or not (arguments or defaults.engine):
            raise ProblemsError(_no_engine(argv))
        located = (
            defaults.engine or _guess(commands[0]),
            commands[0] if arguments else [],
        )
    engine, words = located
    if engine is EngineKind.OLLAMA:
        words = _ollama_model(commands)
    return _options(engine, words, assignments(argv, environment), defaults)


def _locate(words: Sequence[str]) -> tuple[EngineKind, list[str]] | None:
    """The engine that a simple command starts, and the words after its name."""
    if not words:
        return None
    program = PurePosixPath(words[0]).name
    if _PYTHON.fullmatch(program):
        for index, word in enumerate(words[1:-1], start=1):
            if word == "-m":
                engine = _MODULES.get(words[index + 1])
                return (engine, list(words[index + 2 :])) if engine else None
        return None
    if program in _PROGRAMS:
        engine, subcommands = _PROGRAMS[program]
        if not subcommands:
            return engine, list(words[1:])
        if words[1:] and words[1] in subcommands:
            return engine, list(words[2:])
    return None


def _only_arguments(words: Sequence[str]) -> bool:
    """Whether the words can be the arguments of an image's entry point."""
    return bool(words) and (
        is_flag(words[0]) or ("/" in words[0] and any(is_flag(word) for word in words[1:2]))
    )


def _guess(words: Sequence[str]) -> EngineKind:
    written = {word.partition("=")[0] for word in words}
    return next((kind for flag, kind in _TELLING_FLAGS if flag in written), EngineKind.VLLM)


def _ollama_model(commands: Sequence[Sequence[str]]) -> list[str]:
    """The model that a script runs or pulls after it has started the server."""
    for words in commands:
        for program, verb, model in zip(words, words[1:], words[2:], strict=False):
            if PurePosixPath(program).name == "ollama" and verb in ("run", "pull"):
                return [model]
    return []


def _options(
    engine: EngineKind,
    words: Sequence[str],
    environment: Mapping[str, str],
    defaults: Defaults,
) -> ServerOptions:
    dialect = DIALECTS[engine]
    parsed = parse_flags(words, dialect.flags, dialect.switches)
    values = {name: value for name, value in parsed.values.items() if value is not None}
    model = values.pop("model", None) or _positional(parsed.positionals)
    model = model or defaults.model or dialect.default_model
    if not model:
        raise ProblemsError(_no_model(engine))
    transfer = values.pop("kv_transfer", {})
    adapters = tuple(values.pop("adapters", ()))
    rank = values.pop("node_rank", 0)
    host, default_port = _address(engine, environment, defaults.port or dialect.port)
    return ServerOptions(
        engine=engine,
        model=model,
        served_model_names=_served(engine, values, model),
        host=values.pop("host", host),
        port=values.pop("port", default_port),
        block_size=values.pop("block_size", dialect.block_size_tokens),
        adapters=adapters,
        lora_enabled=values.pop("lora_enabled", bool(adapters) and engine is EngineKind.SGLANG),
        kv_role=values.pop("kv_role", "") or str(transfer.get("kv_role", "")),
        kv_connector=str(transfer.get("kv_connector", "")),
        metrics_enabled=values.pop("metrics_enabled", dialect.metrics_enabled),
        headless=values.pop("headless", False) or rank > 0,
        max_model_len=values.pop("max_model_len", None) or None,
        ignored=tuple(parsed.ignored),
        **values,
    )


def _served(engine: EngineKind, values: dict[str, Any], model: str) -> tuple[str, ...]:
    names = values.pop("served_model_names", [])
    if engine is EngineKind.LLAMACPP:
        names = [part for name in names for part in name.split(",") if part]
    return tuple(names) or (model,)


def _positional(positionals: Sequence[str]) -> str:
    words = [word for word in positionals if word != "serve"]
    return words[0] if words else ""


def _address(engine: EngineKind, environment: Mapping[str, str], default: int) -> tuple[str, int]:
    """Host and port from the variables that an engine reads, or the default port."""
    if engine is EngineKind.OLLAMA:
        address = environment.get("OLLAMA_HOST", "").removeprefix("http://")
        host, _, number = address.partition(":")
        return host, _port_variable("OLLAMA_HOST", number, default)
    if engine is EngineKind.TGI:
        return "", _port_variable("PORT", environment.get("PORT", ""), default)
    return "", default


def _port_variable(name: str, value: str, default: int) -> int:
    if not value:
        return default
    try:
        return port(value)
    except ValueError as error:
        raise ProblemsError(
            Problem(
                code=ErrorCode.BAD_ARGUMENT,
                message=f"the variable needs {error}",
                field=name,
                value=value,
                remedy="correct the container's env",
            )
        ) from None


def _no_engine(argv: Sequence[str]) -> Problem:
    return Problem(
        code=ErrorCode.BAD_ARGUMENT,
        message="no inference engine is started by this command line",
        field="command",
        value=" ".join(argv),
        remedy=(
            "start vLLM, SGLang, llama.cpp, TGI, TensorRT-LLM or Ollama, or set "
            "INFERBUS_ENGINE_SIMULATOR_ENGINE to the engine of the container's image"
        ),
    )


def _no_model(engine: EngineKind) -> Problem:
    where = "as the first argument" if engine is EngineKind.TENSORRT_LLM else "with --model-path"
    return Problem(
        code=ErrorCode.BAD_ARGUMENT,
        message=f"{engine.value} was started without a model",
        field="command",
        remedy=f"name the model {where}",
    )
