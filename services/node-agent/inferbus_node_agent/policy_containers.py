"""Which program a container of a pod becomes on this machine.

Simulated, an engine is the engine simulator, the reference platform's runtime sidecar is the engine
agent, and everything else is a small responder on the ports it declares. Real, a container is its
own command; only the sidecar is still the engine agent, because its image's entry point is not on
this machine, and a downloader is never run, because the model downloader does its work once for the
whole node.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import PurePosixPath

from inferbus_contracts.errors import ErrorCode, Problem, ProblemsError
from inferbus_contracts.resources.annotations import ENGINE_PORT, MODEL_NAME
from inferbus_node_agent.pods import Container, Pod

SIMULATOR = "inferbus_engine_simulator.main:main"
ENGINE_AGENT = "inferbus_engine_agent.main:main"
RESPONDER = "inferbus_engine_simulator.responder:main"
PAUSE = "inferbus_node_agent.pause:main"
"""Entry points by name: services never import one another."""

_ENGINES: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("vllm", re.compile(r"vllm")),
    ("sglang", re.compile(r"sglang")),
    ("llamacpp", re.compile(r"llama[._-]?cpp|llama-server")),
    ("tgi", re.compile(r"text-generation|(?<![a-z])tgi(?![a-z])")),
    ("tensorrt-llm", re.compile(r"trtllm|tensorrt")),
    ("ollama", re.compile(r"ollama")),
    ("mindie", re.compile(r"mindie")),
)
"""Engine, by the names the simulator gives them, and how images and commands call it."""
_SERVERS = re.compile(
    r"vllm serve|vllm\.entrypoints|sglang serve|sglang\.launch_server|llama-server"
    r"|llama_cpp\.server|text-generation-launcher|trtllm-serve|ollama (serve|run|start)"
    r"|mindieservice_daemon"
)
"""What in a shell script starts a server; a follower of a multi-node engine has none of it."""
_IMAGE_ENTRY_POINTS: Mapping[str, tuple[str, ...]] = {
    "vllm": ("python3", "-m", "vllm.entrypoints.openai.api_server"),
    "llamacpp": ("llama-server",),
    "tgi": ("text-generation-launcher",),
    "ollama": ("ollama",),
}
"""What the engines' own images run when a container gives arguments only."""
_DEFAULT_PORTS: Mapping[str, int] = {
    "vllm": 8000,
    "sglang": 30000,
    "llamacpp": 8080,
    "tgi": 80,
    "tensorrt-llm": 8000,
    "ollama": 11434,
    "mindie": 1025,
}
_SHELLS = frozenset({"sh", "bash", "ash", "dash", "zsh"})
_DOWNLOADER_IMAGES = frozenset({"downloader", "model-loader"})
_DOWNLOADER_NAME = re.compile(r".*-(model|lora)-downloader(-\d+)?|model-loader(-\d+)?")
_PORT_FLAG = re.compile(r"(?:^|\s)--?port[=\s]+(\d{1,5})(?=\s|$)")
_LOCAL_HOST = re.compile(r"(?<![\w.])(?:localhost|127\.0\.0\.1|0\.0\.0\.0)(?![\w.])")


class EngineMode(StrEnum):
    """What stands for the engines."""

    SIMULATED = "simulated"
    REAL = "real"


@dataclass(frozen=True, slots=True)
class ForkedProgram:
    """A function in a forked process."""

    entry_point: str
    argv: tuple[str, ...]
    defaults: Mapping[str, str] = field(default_factory=dict)
    """Variables that the container's own environment overrides."""


@dataclass(frozen=True, slots=True)
class ExecutedProgram:
    """The container's own command."""

    argv: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ModelDownload:
    """Wait until the model downloader has put the artifact into place."""

    source: str
    destination: str


@dataclass(frozen=True, slots=True)
class NothingToRun:
    """An init container whose work isn't needed; it counts as completed."""


Program = ForkedProgram | ExecutedProgram | ModelDownload | NothingToRun


def engine_kind(container: Container) -> str:
    """The engine that the container's image or command names; empty when it names none."""
    text = f"{container.image} {_command_text(container)}".lower()
    return next((kind for kind, pattern in _ENGINES if pattern.search(text)), "")


def engine_container(pod: Pod) -> Container:
    """The container that serves the model: the first that names an engine, else the one with the
    ModelServer's port, else the first (RULINGS, process substrate)."""
    candidates = [other for other in pod.spec.containers if not is_runtime(other)]
    for container in candidates:
        if engine_kind(container):
            return container
    wanted = pod.metadata.annotations.get(ENGINE_PORT, "")
    for container in candidates:
        if wanted and wanted in {str(number) for number in _known_ports(container)}:
            return container
    return (candidates or pod.spec.containers)[0]


def is_runtime(container: Container) -> bool:
    """Whether it is the reference platform's runtime sidecar."""
    return container.name == "runtime" or _image_name(container) == "runtime"


def is_downloader(container: Container) -> bool:
    """Whether it is one of the reference platforms' downloaders."""
    named = _DOWNLOADER_NAME.fullmatch(container.name)
    return bool(named) or _image_name(container) in _DOWNLOADER_IMAGES


def serves(container: Container) -> bool:
    """Whether an engine container starts a server: followers of a multi-node engine don't."""
    program = PurePosixPath(container.command[0]).name if container.command else ""
    if program in _SHELLS:
        return bool(_SERVERS.search(_command_text(container)))
    return program != "ray"


def serving_port(container: Container) -> int | None:
    """The port a container serves on, as far as its manifest tells."""
    ports = _known_ports(container)
    return ports[0] if ports else _DEFAULT_PORTS.get(engine_kind(container))


def at_address(text: str, address: str) -> str:
    """`text` with the pod's own address where it speaks of all interfaces or of localhost.

    A pod has an address of its own but shares the machine's interfaces with all others.
    """
    return _LOCAL_HOST.sub(address, text)


def program_of(
    pod: Pod,
    container: Container,
    argv: tuple[Sequence[str], Sequence[str]],
    mode: EngineMode,
    address: str,
) -> Program:
    """What to run; `argv` are the container's command and arguments after expansion.

    Raises `ProblemsError` when a real container says neither by command nor by a known image what
    to execute.
    """
    init = any(other.name == container.name for other in pod.spec.init_containers)
    command, args = argv
    if init and mode is EngineMode.SIMULATED:
        return NothingToRun()
    if init and is_downloader(container):
        return _download(pod, container, [*command, *args])
    if is_runtime(container) and (mode is EngineMode.SIMULATED or not command):
        words = tuple(at_address(word, address) for word in (*command, *args))
        return ForkedProgram(ENGINE_AGENT, words)
    if mode is EngineMode.REAL:
        return _real(pod, container, command, args, address)
    return _simulated(pod, container, command, args, address)


def _simulated(
    pod: Pod, container: Container, command: Sequence[str], args: Sequence[str], address: str
) -> Program:
    if container.name == engine_container(pod).name and serves(container):
        return ForkedProgram(SIMULATOR, (*command, *args), _engine_defaults(pod, container))
    ports = sorted({port.container_port for port in container.ports} | _probed_ports(container))
    if not ports:
        return ForkedProgram(PAUSE, ())
    words = tuple(word for port in ports for word in ("--port", str(port)))
    return ForkedProgram(RESPONDER, ("--host", address, *words))


def _engine_defaults(pod: Pod, container: Container) -> dict[str, str]:
    """What the simulator can't read from a command line that names no program or no model."""
    defaults = {
        "INFERBUS_ENGINE_SIMULATOR_ENGINE": engine_kind(container) or "openai",
        "INFERBUS_ENGINE_SIMULATOR_DEFAULT_MODEL": pod.metadata.annotations.get(MODEL_NAME, ""),
    }
    port = pod.metadata.annotations.get(ENGINE_PORT) or serving_port(container)
    if port:
        defaults["INFERBUS_ENGINE_SIMULATOR_DEFAULT_PORT"] = str(port)
    return {name: value for name, value in defaults.items() if value}


def _real(
    pod: Pod, container: Container, command: Sequence[str], args: Sequence[str], address: str
) -> ExecutedProgram:
    program = tuple(command) or _IMAGE_ENTRY_POINTS.get(engine_kind(container), ())
    if not program:
        raise ProblemsError(
            Problem(
                code=ErrorCode.MISSING_FIELD,
                message=f"the entry point of image {container.image!r} isn't known here",
                object=pod.key,
                field=f"spec.containers[{container.name}].command",
                remedy="give the container a command, or run it simulated",
            )
        )
    return ExecutedProgram(tuple(at_address(word, address) for word in (*program, *args)))


def _download(pod: Pod, container: Container, words: Sequence[str]) -> ModelDownload:
    source = _flag(words, "--source", "-s")
    destination = _flag(words, "--output-dir", "-o")
    if source and destination:
        return ModelDownload(source, destination)
    raise ProblemsError(
        Problem(
            code=ErrorCode.MISSING_FIELD,
            message="the downloader isn't told what to download, or where to",
            object=pod.key,
            field=f"spec.initContainers[{container.name}].args",
            value=" ".join(words),
            remedy="give it --source and --output-dir",
        )
    )


def _flag(words: Sequence[str], *names: str) -> str:
    for index, word in enumerate(words):
        name, equals, value = word.partition("=")
        if name in names:
            return value if equals else "".join(words[index + 1 : index + 2])
    return ""


def _known_ports(container: Container) -> list[int]:
    """What the command line says, then what is declared."""
    text = " ".join((*container.command, *container.args))
    written = [int(number) for number in _PORT_FLAG.findall(text)]
    return [*written, *(port.container_port for port in container.ports)]


def _probed_ports(container: Container) -> set[int]:
    probes = (container.startup_probe, container.readiness_probe, container.liveness_probe)
    handlers = [probe.http_get or probe.tcp_socket for probe in probes if probe]
    return {handler.port for handler in handlers if handler and isinstance(handler.port, int)}


def _command_text(container: Container) -> str:
    """The part of the command line that says which program runs, not how."""
    command, args = container.command, container.args
    wrapped = bool(command) and PurePosixPath(command[0]).name in _SHELLS
    spoken = not command and bool(args) and not args[0].startswith("-")
    return " ".join((*command, *args) if wrapped or spoken else command)


def _image_name(container: Container) -> str:
    repository = container.image.partition("@")[0]
    return PurePosixPath(repository).name.partition(":")[0]
