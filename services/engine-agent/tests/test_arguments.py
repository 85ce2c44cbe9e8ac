"""The sidecar's command line."""

import pytest

from inferbus_contracts.errors import ProblemsError
from inferbus_engine_agent.policy_arguments import parse_arguments
from inferbus_engine_agent.policy_metrics import Engine

REQUIRED = ["--engine", "vllm", "--pod", "p.ns", "--model", "m"]


def test_what_a_modelbooster_starts() -> None:
    options = parse_arguments(
        [
            *("--port", "8100", "--engine", "vllmdisaggregated"),
            *("--engine-base-url", "http://localhost:8000", "--engine-metrics-path", "/metrics"),
            *("--pod", "chat-0.llm", "--model", "chat"),
        ]
    )

    assert options.engine is Engine.VLLM
    assert (options.host, options.port) == ("0.0.0.0", 8100)
    assert options.metrics_url == "http://localhost:8000/metrics"
    assert (options.pod, options.model) == ("chat-0.llm", "chat")


def test_defaults_and_short_flags() -> None:
    options = parse_arguments(["-E", "SGLang", "-I", "p.ns", "-N", "m"])

    assert options.engine is Engine.SGLANG
    assert (options.port, options.engine_base_url) == (9000, "http://localhost:8000")
    short = parse_arguments(
        [
            "-E",
            "vLLM",
            "-I",
            "p",
            "-N",
            "m",
            "-P",
            "1",
            "-H",
            "::1",
            "-B",
            "http://e:1/x/",
            "-M",
            "m",
        ]
    )
    assert (short.host, short.port, short.metrics_url) == ("::1", 1, "http://e:1/x/m")


def test_the_pods_address_stands_for_localhost() -> None:
    options = parse_arguments([*REQUIRED, "-B", "http://localhost:8080"], pod_ip="127.3.0.9")

    assert options.host == "127.3.0.9"
    assert options.engine_base_url == "http://127.3.0.9:8080"
    elsewhere = parse_arguments(
        [*REQUIRED, "-B", "http://10.0.0.5:80", "-H", "10.0.0.4"], pod_ip="127.3.0.9"
    )
    assert (elsewhere.engine_base_url, elsewhere.host) == ("http://10.0.0.5:80", "10.0.0.4")


@pytest.mark.parametrize(
    ("argv", "told"),
    [
        ([], "--engine"),
        (["--engine", "vllm", "--model", "m"], "--pod"),
        (["--engine", "vllm", "--pod", "p"], "--model"),
        ([*REQUIRED, "--engine", "triton"], r"triton.*use one of vllm, .*sglang"),
        ([*REQUIRED, "--port", "many"], "many"),
        ([*REQUIRED, "--port", "70000"], "70000"),
        ([*REQUIRED, "--engine-base-url", "localhost:8000"], "localhost:8000"),
        ([*REQUIRED, "--unknown"], "--unknown"),
    ],
)
def test_bad_arguments_are_told(argv: list[str], told: str) -> None:
    with pytest.raises(ProblemsError, match=told):
        parse_arguments(argv)
