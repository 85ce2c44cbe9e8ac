"""The built-in runtimes: admitted, and served as llmaz spec 6 says with its defects corrected."""

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from expansion_builders import open_model, playground, uri_model
from expansion_store import Store, child

from inferbus_contracts.admission import admit
from inferbus_engine_simulator.policy_command_line import Defaults, parse_command_line
from inferbus_engine_simulator.policy_engine_flags import EngineKind
from inferbus_spec_watcher.builtin import BUILT_IN_RUNTIMES
from inferbus_spec_watcher.builtin.drain import VLLM_GAUGES, drain_script

NAMES = ["llamacpp", "ollama", "sglang", "tensorrt-llm", "tgi", "vllm"]


def rendered(name: str) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Container and ModelServer of a Playground that uses the runtime."""
    model = uri_model("ollama://qwen2:0.5b") if name == "ollama" else open_model()
    store = Store(model, playground("svc", config={"backendName": name}))
    store.settle()
    service = store.get("Service", "svc")["spec"]
    (container,) = service["workloadTemplate"]["workerTemplate"]["spec"]["containers"]
    return container, child(store.expand("Service", "svc"), "ModelServer")["spec"]


def test_all_are_admitted_without_a_doubt() -> None:
    assert sorted(BUILT_IN_RUNTIMES) == NAMES
    for manifest in BUILT_IN_RUNTIMES.values():
        assert admit(manifest).warnings == ()


@pytest.mark.parametrize("name", NAMES)
def test_lz_b4_each_engine_serves_the_name_that_requests_carry_on_8080(name: str) -> None:
    container, server = rendered(name)
    argv = [*container.get("command", ()), *container["args"]]
    variables = {one["name"]: one["value"] for one in container.get("env", ())}
    options = parse_command_line(argv, variables, Defaults(engine=EngineKind(name)))
    assert options.port == 8080
    assert server["workloadPort"]["port"] == 8080
    assert server.get("model", options.served_model_names[0]) in options.served_model_names
    if name in ("vllm", "sglang", "llamacpp"):
        assert options.served_model_names == ("opt",)


@pytest.mark.parametrize("name", ["vllm", "llamacpp", "tgi"])
def test_lz_b1_lz_t63_the_drain_asks_the_port_that_the_engine_serves_on(name: str) -> None:
    container, _ = rendered(name)
    script = container["lifecycle"]["preStop"]["exec"]["command"][-1]
    assert re.findall(r"http://localhost:(\d+)/metrics", script) == ["8080"]


@pytest.mark.parametrize("name", NAMES)
def test_lz_b3_a_load_may_take_an_hour(name: str) -> None:
    startup = rendered(name)[0]["startupProbe"]
    assert startup["periodSeconds"] * startup["failureThreshold"] == 3600


def run_drain(folder: Path, pages: list[str]) -> tuple[int, int]:
    """Exit code of the drain script against these answers, and how often it waited."""
    tools = folder / "bin"
    tools.mkdir()
    answers = folder / "answers"
    answers.mkdir()
    for index, page in enumerate(pages):
        (answers / str(index)).write_text(page)
    _script(tools / "sleep", f"echo x >> {folder}/slept")
    _script(
        tools / "curl",
        f"n=$(cat {folder}/asked 2>/dev/null || echo 0); echo $((n + 1)) > {folder}/asked\n"
        f'if [ -f "{answers}/$n" ]; then cat "{answers}/$n"; else exit 7; fi',
    )
    path = f"{tools}:{os.environ['PATH']}"
    done = subprocess.run(
        ["/bin/sh", "-c", drain_script(VLLM_GAUGES, 8080)],
        env={"PATH": path},
        timeout=20,
        check=False,
    )
    slept = folder / "slept"
    return done.returncode, len(slept.read_text().splitlines()) if slept.exists() else 0


def _script(path: Path, body: str) -> None:
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)


BUSY = 'vllm:num_requests_running{engine="0"} 0.0\nvllm:num_requests_running{engine="1"} 2.0\n'
IDLE = "vllm:num_requests_running 0.0\nvllm:num_requests_waiting 0.0\n"


@pytest.mark.skipif(shutil.which("awk") is None, reason="the drain script needs awk")
@pytest.mark.parametrize(
    ("pages", "waits"),
    [
        ([IDLE], 0),
        ([BUSY, BUSY, IDLE], 2),
        (["other_metric 5\n"], 0),
        ([], 0),
        ([BUSY], 1),
    ],
)
def test_lz_t63_mb_7_1_10_the_drain_waits_for_requests_and_for_nothing_else(
    tmp_path: Path, pages: list[str], waits: int
) -> None:
    assert run_drain(tmp_path, pages) == (0, waits)


def test_lz_b2_ollama_opens_its_port_only_when_the_model_is_there() -> None:
    container, _ = rendered("ollama")
    script = container["args"][0]
    hidden, _, opened = script.partition("ollama pull 'qwen2:0.5b'")
    assert "OLLAMA_HOST=127.0.0.1:" in hidden
    assert "0.0.0.0" not in hidden
    assert "OLLAMA_HOST=0.0.0.0:8080" in opened
    assert container["readinessProbe"]["tcpSocket"] == {"port": 8080}
