"""Which program a container becomes."""

from typing import Any

import pytest
from node_agent_builders import container, pod

from inferbus_contracts.errors import ProblemsError
from inferbus_contracts.resources.annotations import ENGINE_PORT, MODEL_NAME
from inferbus_node_agent.pods import parse_pod
from inferbus_node_agent.policy_containers import (
    ENGINE_AGENT,
    PAUSE,
    RESPONDER,
    SIMULATOR,
    EngineMode,
    ExecutedProgram,
    ForkedProgram,
    ModelDownload,
    NothingToRun,
    Program,
    at_address,
    engine_container,
    engine_kind,
    program_of,
    serves,
    serving_port,
)

ADDRESS = "127.1.16.20"
SIMULATED, REAL = EngineMode.SIMULATED, EngineMode.REAL


def one(name: str = "main", *command: str, **fields: Any) -> Any:
    return parse_pod(pod("a", container(name, *command, **fields))).spec.containers[0]


def program(document: dict[str, Any], name: str, mode: EngineMode = SIMULATED) -> Program:
    parsed = parse_pod(document)
    every = (*parsed.spec.init_containers, *parsed.spec.containers)
    wanted = next(other for other in every if other.name == name)
    return program_of(parsed, wanted, (wanted.command, wanted.args), mode, ADDRESS)


@pytest.mark.parametrize(
    ("image", "command", "args", "kind"),
    [
        ("vllm/vllm-openai:v0.7.3", [], [], "vllm"),
        ("registry.example:5000/team/vllm-openai@sha256:00", [], ["--model", "m"], "vllm"),
        ("example/base:1", ["vllm", "serve", "m"], [], "vllm"),
        ("example/base:1", ["python3", "-m", "vllm.entrypoints.openai.api_server"], [], "vllm"),
        ("example/base:1", ["bash", "-c", "pip install x && vllm serve m"], [], "vllm"),
        ("example/base:1", ["bash", "-c"], ["exec python3 -m sglang.launch_server"], "sglang"),
        ("lmsysorg/sglang:v0.4.5-cu121", [], [], "sglang"),
        ("ghcr.io/ggerganov/llama.cpp:server", ["./llama-server"], [], "llamacpp"),
        ("example/base:1", ["/app/llama-server", "-m", "x"], [], "llamacpp"),
        ("ghcr.io/huggingface/text-generation-inference:2.3.1", [], [], "tgi"),
        (
            "nvcr.io/nvidia/tritonserver:25.03-trtllm-python-py3",
            ["trtllm-serve"],
            [],
            "tensorrt-llm",
        ),
        ("ollama/ollama:latest", ["sh", "-c"], ["ollama serve & ollama run m"], "ollama"),
        ("mindie:2.0", [], [], "mindie"),
        ("example/base:1", [], ["vllm", "serve"], "vllm"),
        ("nginx:1", [], [], ""),
        ("example/proxy:1", ["proxy"], ["--backend", "vllm"], ""),
        ("example/proxy:1", [], ["--upstream", "http://vllm:8000"], ""),
        ("strategist:1", [], [], ""),
    ],
)
def test_engines_are_known_by_image_or_command(
    image: str, command: list[str], args: list[str], kind: str
) -> None:
    assert engine_kind(one(image=image, command=command, args=args)) == kind


def test_the_first_container_that_names_an_engine_is_the_engine() -> None:
    document = pod(
        "a",
        container("proxy", image="nginx:1"),
        container("one", image="vllm/vllm-openai:1"),
        container("two", image="lmsysorg/sglang:1"),
    )
    assert engine_container(parse_pod(document)).name == "one"


def test_else_the_one_that_has_the_model_servers_port() -> None:
    containers = (
        container("web", image="nginx:1", ports=[{"containerPort": 80}]),
        container("server", "serve", "--port", "9000", image="example/server:1"),
    )
    hint = {"annotations": {ENGINE_PORT: "9000"}}
    assert engine_container(parse_pod(pod("a", *containers, metadata=hint))).name == "server"
    assert engine_container(parse_pod(pod("a", *containers))).name == "web"


def test_the_sidecar_is_never_the_engine() -> None:
    document = pod(
        "a",
        container("runtime", image="kthena/runtime:latest", args=["--engine", "vllm"]),
        container("main", image="example/server:1"),
    )
    assert engine_container(parse_pod(document)).name == "main"


def test_an_engine_becomes_the_simulator_with_its_own_command_line() -> None:
    line = ["python3", "-m", "sglang.launch_server", "--port", "40000"]
    found = program(pod("a", container("e", image="lmsysorg/sglang:1", command=line)), "e")
    assert isinstance(found, ForkedProgram)
    assert (found.entry_point, found.argv) == (SIMULATOR, tuple(line))


def test_arguments_alone_are_completed_by_what_the_image_says() -> None:
    document = pod(
        "a",
        container("e", image="vllm/vllm-openai:1", args=["--max-model-len", "4096"]),
        metadata={"annotations": {MODEL_NAME: "chat", ENGINE_PORT: "8000"}},
    )
    found = program(document, "e")
    assert found == ForkedProgram(
        SIMULATOR,
        ("--max-model-len", "4096"),
        {
            "INFERBUS_ENGINE_SIMULATOR_ENGINE": "vllm",
            "INFERBUS_ENGINE_SIMULATOR_DEFAULT_MODEL": "chat",
            "INFERBUS_ENGINE_SIMULATOR_DEFAULT_PORT": "8000",
        },
    )


@pytest.mark.parametrize(
    ("command", "serving"),
    [
        (["vllm", "serve", "m"], True),
        (["bash", "-c", "multi-node-serving.sh leader && python3 -m vllm.entrypoints.x"], True),
        (["bash", "-c", "/vllm-workspace/multi-node-serving.sh worker --ray_address=x"], False),
        (["ray", "start", "--address=x:6379", "--block"], False),
        (["sh", "-c", "ollama serve & ollama run m"], True),
        (["bash", "-c", "sleep 10"], False),
        ([], True),
    ],
)
def test_followers_of_a_multi_node_engine_serve_nothing(command: list[str], serving: bool) -> None:
    image = "vllm/vllm-openai:1"
    assert serves(one(image=image, command=command)) is serving
    found = program(pod("a", container("e", image=image, command=command)), "e")
    assert isinstance(found, ForkedProgram)
    assert found.entry_point == (SIMULATOR if serving else PAUSE)


def test_the_sidecar_becomes_the_engine_agent_of_this_pod() -> None:
    args = ["--port", "8100", "--engine", "vllm", "--engine-base-url", "http://localhost:8000"]
    document = pod(
        "a",
        container("runtime", image="kthena/runtime:latest", args=args),
        container("engine", image="vllm/vllm-openai:1"),
    )
    for mode in (SIMULATED, REAL):
        assert program(document, "runtime", mode) == ForkedProgram(
            ENGINE_AGENT, (*args[:-1], f"http://{ADDRESS}:8000")
        )


def test_other_containers_answer_on_the_ports_they_declare_or_are_probed_on() -> None:
    document = pod(
        "a",
        container("engine", image="vllm/vllm-openai:1"),
        container(
            "web",
            image="nginx:1",
            ports=[{"containerPort": 8081}],
            readinessProbe={"tcpSocket": {"port": 9000}},
        ),
        container("quiet", image="busybox:1"),
    )
    assert program(document, "web") == ForkedProgram(
        RESPONDER, ("--host", ADDRESS, "--port", "8081", "--port", "9000")
    )
    assert program(document, "quiet") == ForkedProgram(PAUSE, ())


@pytest.mark.parametrize(
    ("name", "image"),
    [
        ("chat-model-downloader", "example/custom:1"),
        ("chat-lora-downloader-3", "example/custom:1"),
        ("fetch", "kthena/downloader:latest"),
        ("fetch", "ghcr.io/volcano-sh/downloader:v1"),
        ("model-loader", "inftyai/model-loader:v0.0.10"),
        ("model-loader-1", "example/custom:1"),
    ],
)
def test_downloaders_are_waited_for_and_never_run(name: str, image: str) -> None:
    init = container(
        name, image=image, args=["--source", "hf://org/model", "--output-dir=/models/x"]
    )
    document = pod("a", container("main", "vllm", "serve", "x"), initContainers=[init])
    assert program(document, name, SIMULATED) == NothingToRun()
    assert program(document, name, REAL) == ModelDownload("hf://org/model", "/models/x")


def test_a_downloader_without_a_source_is_told() -> None:
    init = container("fetch", image="kthena/downloader:1", args=["--output-dir", "/x"])
    document = pod("a", container("main", "sleep"), initContainers=[init])
    with pytest.raises(ProblemsError, match="isn't told what to download"):
        program(document, "fetch", REAL)


def test_real_containers_are_themselves_at_their_own_address() -> None:
    line = ["vllm", "serve", "m", "--host", "0.0.0.0", "--port", "8000"]
    document = pod("a", container("e", image="vllm/vllm-openai:1", command=line))
    assert program(document, "e", REAL) == ExecutedProgram(
        ("vllm", "serve", "m", "--host", ADDRESS, "--port", "8000")
    )


def test_a_known_image_has_a_known_entry_point() -> None:
    document = pod("a", container("e", image="ollama/ollama:1", args=["serve"]))
    assert program(document, "e", REAL) == ExecutedProgram(("ollama", "serve"))


def test_an_unknown_image_without_command_is_told() -> None:
    with pytest.raises(ProblemsError, match="entry point of image 'example/custom:1'"):
        program(pod("a", container("e", image="example/custom:1", args=["x"])), "e", REAL)


def test_init_containers_run_when_they_are_real() -> None:
    init = container("prepare", "sh", "-c", "true")
    document = pod("a", container("main", "sleep", "1"), initContainers=[init])
    assert program(document, "prepare", REAL) == ExecutedProgram(("sh", "-c", "true"))
    assert program(document, "prepare", SIMULATED) == NothingToRun()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0.0.0.0", ADDRESS),
        ("http://localhost:8000/metrics", f"http://{ADDRESS}:8000/metrics"),
        ("tcp://127.0.0.1:5557", f"tcp://{ADDRESS}:5557"),
        ("curl -s localhost:8080", f"curl -s {ADDRESS}:8080"),
        ("--host=0.0.0.0", f"--host={ADDRESS}"),
        ("10.0.0.0", "10.0.0.0"),
        ("127.0.0.10", "127.0.0.10"),
        ("mylocalhost", "mylocalhost"),
        ("localhost.example.com", "localhost.example.com"),
    ],
)
def test_local_names_mean_the_pod(text: str, expected: str) -> None:
    assert at_address(text, ADDRESS) == expected


@pytest.mark.parametrize(
    ("fields", "port"),
    [
        ({"image": "vllm/vllm-openai:1"}, 8000),
        ({"image": "lmsysorg/sglang:1"}, 30000),
        ({"image": "vllm/vllm-openai:1", "args": ["--port", "9000"]}, 9000),
        ({"image": "vllm/vllm-openai:1", "args": ["--port=9000"]}, 9000),
        ({"image": "x:1", "command": ["bash", "-c", "vllm serve m --port 9001 --x"]}, 9001),
        ({"image": "vllm/vllm-openai:1", "ports": [{"containerPort": 7000}]}, 7000),
        ({"image": "nginx:1"}, None),
    ],
)
def test_where_a_container_serves(fields: dict[str, Any], port: int | None) -> None:
    assert serving_port(one(**fields)) == port
