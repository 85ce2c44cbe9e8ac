"""The programs: start-up, stopping, exit codes."""

import asyncio
import contextlib
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from inferbus_engine_simulator.main import main
from inferbus_engine_simulator.responder import main as respond
from inferbus_engine_simulator.server import bind
from tests.support.eventually import eventually

INSTANT = {"INFERBUS_ENGINE_SIMULATOR_ACCELERATOR": "instant"}


def free_port(host: str = "127.0.0.1") -> int:
    """A port that nobody used a moment ago."""
    with socket.socket() as probe:
        probe.bind((host, 0))
        return int(probe.getsockname()[1])


class Program:
    """A program of this package in a process of its own."""

    def __init__(self, process: asyncio.subprocess.Process, log: Path, base: str) -> None:
        self.process = process
        self.log = log
        self.base = base

    async def answers(self, path: str = "/health") -> bool:
        async with aiohttp.ClientSession() as session, session.get(self.base + path) as response:
            return response.status == 200


@pytest.fixture
async def run_program(tmp_path: Path) -> AsyncIterator[Any]:
    """Starts programs; what still runs at the end is killed."""
    programs: list[Program] = []

    async def run(module: str, port: int, *argv: str, env: dict[str, str] | None = None) -> Program:
        log = tmp_path / f"{len(programs)}.log"
        with log.open("wb") as output:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", f"inferbus_engine_simulator.{module}", *argv),
                env={**os.environ, **(env or {})},
                stdout=output,
                stderr=output,
            )
        programs.append(Program(process, log, f"http://127.0.0.1:{port}"))
        return programs[-1]

    yield run
    for program in programs:
        if program.process.returncode is None:
            program.process.kill()
            await program.process.wait()


@contextlib.asynccontextmanager
async def stopped_while_streaming(
    run_program: Any, model: str, max_tokens: int, drain_seconds: str
) -> AsyncIterator[tuple[Program, aiohttp.ClientResponse]]:
    """An engine that gets SIGTERM when the first token of a stream has arrived."""
    port = free_port()
    program = await run_program(
        *("main", port, "vllm", "serve", model, "--port", str(port)),
        env={
            "INFERBUS_ENGINE_SIMULATOR_ACCELERATOR": "cpu",
            "INFERBUS_ENGINE_SIMULATOR_STARTUP_SECONDS": "0",
            "INFERBUS_ENGINE_SIMULATOR_DRAIN_SECONDS": drain_seconds,
        },
    )
    await eventually(program.answers)
    body = {"prompt": "hi", "max_tokens": max_tokens, "stream": True}
    async with (
        aiohttp.ClientSession() as session,
        session.post(program.base + "/v1/completions", json=body) as response,
    ):
        await response.content.readuntil(b"\n\n")
        program.process.send_signal(signal.SIGTERM)
        yield program, response


async def test_a_running_request_is_finished_after_sigterm(run_program: Any) -> None:
    async with stopped_while_streaming(run_program, "m-0.5b", 60, "60") as (program, response):
        text = await response.text()

    assert text.endswith("data: [DONE]\n\n")
    assert text.count('"text":') >= 59
    assert await program.process.wait() == 0


async def test_a_request_that_takes_too_long_is_cut_off_after_the_grace(run_program: Any) -> None:
    async with stopped_while_streaming(run_program, "m-7b", 10_000, "0.1") as (program, response):
        with pytest.raises(aiohttp.ClientError):
            await response.text()

    assert await program.process.wait() == 0


async def test_vllm_does_not_listen_while_the_model_is_loaded(run_program: Any) -> None:
    port = free_port()
    program = await run_program(
        *("main", port, "vllm", "serve", "m", "--port", str(port)),
        env={"INFERBUS_ENGINE_SIMULATOR_STARTUP_SECONDS": "3600"},
    )
    await eventually(lambda: b"engine starting" in program.log.read_bytes())
    with pytest.raises(aiohttp.ClientConnectionError):
        await program.answers()
    program.process.terminate()

    assert await program.process.wait() == 0


async def test_a_fast_clock_shortens_the_start_up(run_program: Any) -> None:
    port = free_port()
    program = await run_program(
        *("main", port, "vllm", "serve", "m", "--port", str(port)),
        env={"INFERBUS_ENGINE_SIMULATOR_STARTUP_SECONDS": "3600", "INFERBUS_CLOCK_RATE": "10000"},
    )

    await eventually(program.answers)


async def test_the_pods_address_stands_for_all_of_its_own(run_program: Any) -> None:
    port = free_port("127.0.0.7")
    argv = ("vllm", "serve", "m", "--host", "0.0.0.0", "--port", str(port))
    program = await run_program(
        "main", port, *argv, env={**INSTANT, "INFERBUS_POD_IP": "127.0.0.7"}
    )
    program.base = f"http://127.0.0.7:{port}"
    await eventually(program.answers)

    other = Program(program.process, program.log, f"http://127.0.0.1:{port}")
    with pytest.raises(aiohttp.ClientConnectionError):
        await other.answers()


@pytest.mark.parametrize(
    ("argv", "variables", "told"),
    [
        (["vllm", "serve", "m", "--port", "x"], {}, "--port"),
        (["sleep", "1"], {}, "no inference engine"),
        (["vllm", "serve", "m"], {"ACCELERATOR": "b300"}, "ENGINE_SIMULATOR_ACCELERATOR"),
        (["vllm", "serve", "m"], {"SPEED": "0"}, "ENGINE_SIMULATOR_SPEED"),
        (["vllm", "serve", "m"], {"FAULTS": "{"}, "ENGINE_SIMULATOR_FAULTS"),
        (["vllm", "serve", "m"], {"FAULTS": '[{"kind": "x"}]'}, "FAULTS.0.kind"),
    ],
)
def test_bad_input_ends_with_exit_code_2_and_the_reason(
    argv: list[str],
    variables: dict[str, str],
    told: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(f"INFERBUS_ENGINE_SIMULATOR_{name}", value)

    assert main(argv) == 2
    errors = capsys.readouterr().err
    assert told in errors
    assert "Traceback" not in errors


def test_a_port_that_is_taken_ends_with_exit_code_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("INFERBUS_ENGINE_SIMULATOR_STARTUP_SECONDS", "3600")
    taken = bind("127.0.0.1", 0)
    taken.listen()
    port = str(taken.getsockname()[1])
    try:
        assert main(["vllm", "serve", "m", "--port", port]) == 1
        assert respond(["--port", port]) == 1
    finally:
        taken.close()

    assert "IB-4001" in capsys.readouterr().err


async def chunks() -> AsyncIterator[bytes]:
    """A body without a length."""
    for _ in range(3):
        yield b"x" * 1000


async def test_the_responder_answers_any_request_on_all_its_ports(run_program: Any) -> None:
    ports = [free_port(), free_port()]
    argv = [word for port in ports for word in ("--port", str(port))]
    program = await run_program("responder", ports[0], *argv)
    await eventually(program.answers)
    async with aiohttp.ClientSession() as session:
        for port in ports:
            url = f"http://127.0.0.1:{port}/any/path"
            async with session.post(url, data=b"x" * 200_000) as response:
                assert (response.status, await response.text()) == (200, "ok\n")
            async with session.post(url, data=chunks()) as response:
                assert response.status == 200
            async with session.head(url) as response:
                assert response.status == 200
    program.process.terminate()

    assert await program.process.wait() == 0


@pytest.mark.parametrize("argv", [[], ["--port", "x"], ["--host", "127.0.0.1"]])
def test_a_responder_without_ports_ends_with_exit_code_2(
    argv: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert respond(argv) == 2
    assert "--port" in capsys.readouterr().err
