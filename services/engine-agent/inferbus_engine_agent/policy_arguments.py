"""The command line of the sidecar: the one of the reference's runtime (modelbooster spec 5.1).

Invariant: the same words give the same options, and a bad word is told by its flag.
"""

import argparse
from collections.abc import Sequence
from typing import NamedTuple, NoReturn
from urllib.parse import urlsplit

from inferbus_contracts.errors import ErrorCode, Problem, ProblemsError
from inferbus_engine_agent.policy_metrics import Engine

_ENGINES: dict[str, Engine] = {
    "vllm": Engine.VLLM,
    "vllmdisaggregated": Engine.VLLM,
    "sglang": Engine.SGLANG,
    "llamacpp": Engine.LLAMACPP,
    "tgi": Engine.TGI,
    "tensorrtllm": Engine.OTHER,
    "ollama": Engine.OTHER,
    "mindie": Engine.OTHER,
    "mindiedisaggregated": Engine.OTHER,
    "openai": Engine.OTHER,
}
DEFAULT_METRICS_PATH = "/metrics"
_LOCAL_HOSTS = frozenset({"localhost", "127.0.0.1", "0.0.0.0", "::", "[::]"})


class AgentOptions(NamedTuple):
    """What one sidecar does."""

    engine: Engine
    host: str
    port: int
    engine_base_url: str
    """Without a slash at the end."""
    engine_metrics_path: str
    pod: str
    """`name.namespace` of the pod."""
    model: str
    """The platform's name of the model."""

    @property
    def metrics_url(self) -> str:
        """Where the engine's metrics page is."""
        return self.engine_base_url + self.engine_metrics_path


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise ProblemsError(
            Problem(
                code=ErrorCode.BAD_ARGUMENT,
                message=message,
                remedy="see inferbus-engine-agent --help",
            )
        )


def parse_arguments(argv: Sequence[str], pod_ip: str = "") -> AgentOptions:
    """The options of a command line.

    `pod_ip` stands for localhost, both to listen on and to reach the engine at: containers of a
    simulated pod share an address instead of a network namespace. Raises `ProblemsError`.
    """
    parsed = _parser().parse_args(list(argv))
    return AgentOptions(
        engine=_engine(parsed.engine),
        host=pod_ip if pod_ip and parsed.host in _LOCAL_HOSTS else parsed.host,
        port=parsed.port,
        engine_base_url=_base_url(parsed.engine_base_url, pod_ip),
        engine_metrics_path="/" + parsed.engine_metrics_path.lstrip("/"),
        pod=parsed.pod,
        model=parsed.model,
    )


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="inferbus-engine-agent", allow_abbrev=False)
    parser.add_argument("-E", "--engine", required=True, help=", ".join(_ENGINES))
    parser.add_argument("-H", "--host", default="0.0.0.0", help="address to listen on")
    parser.add_argument("-P", "--port", default=9000, type=_port, help="port to listen on")
    parser.add_argument("-B", "--engine-base-url", default="http://localhost:8000")
    parser.add_argument("-M", "--engine-metrics-path", default=DEFAULT_METRICS_PATH)
    parser.add_argument("-I", "--pod", required=True, help="name.namespace of the pod")
    parser.add_argument("-N", "--model", required=True, help="the platform's name of the model")
    return parser


def _port(word: str) -> int:
    if not word.isdecimal() or not 1 <= int(word) <= 65535:
        raise argparse.ArgumentTypeError(f"{word!r} is no port from 1 to 65535")
    return int(word)


def _engine(word: str) -> Engine:
    engine = _ENGINES.get(word.lower().replace("-", "").replace("_", ""))
    if engine is None:
        raise ProblemsError(
            Problem(
                code=ErrorCode.BAD_ARGUMENT,
                message="this engine is not supported",
                field="--engine",
                value=word,
                remedy=f"use one of {', '.join(_ENGINES)}",
            )
        )
    return engine


def _base_url(text: str, pod_ip: str) -> str:
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ProblemsError(
            Problem(
                code=ErrorCode.BAD_ARGUMENT,
                message="this is no URL of an engine",
                field="--engine-base-url",
                value=text,
                remedy="give scheme, host and port, such as http://localhost:8000",
            )
        )
    if pod_ip and parts.hostname in _LOCAL_HOSTS:
        parts = parts._replace(netloc=f"{pod_ip}:{parts.port}" if parts.port else pod_ip)
    return parts.geturl().rstrip("/")
