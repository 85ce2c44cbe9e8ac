"""The demo as a user runs it: what it prints, and that nothing of it stays."""

import asyncio
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from inferbus_cli.platform.directory import PlatformDirectory
from tests.bench.processes import platform_processes
from tests.scenario.demo import program
from tests.scenario.demo.trace import MADE, REAL
from tests.support.eventually import eventually
from tests.support.platform import COMMAND

ROOT = Path(__file__).parents[2]
DEMO = (sys.executable, "-m", "tests.scenario.demo")


def left_of(folder: Path) -> list[str]:
    """The processes of the platform in a folder."""
    return [one.name for one in platform_processes(PlatformDirectory(folder)).values()]


def changes_of(model: str, text: str) -> list[tuple[int, int]]:
    """The decisions about a model that changed its replicas: from, to."""
    found = re.findall(rf"^\d\d:\d\d  {model} (\d+) → (\d+)[: ]", text, re.MULTILINE)
    return [(int(before), int(after)) for before, after in found]


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """Where the demo's platform is to be; ended here when the demo didn't."""
    chosen = tmp_path / "platform"
    yield chosen
    if left_of(chosen):
        subprocess.run([COMMAND, "down", "--dir", str(chosen)], check=True, timeout=100)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_it_scales_both_models_up_and_down_and_explains_itself(folder: Path) -> None:
    result = subprocess.run(
        [*DEMO, "--minutes", "0.5", "--dir", str(folder)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    text = result.stdout
    assert result.returncode == 0, result.stderr + text
    assert "\x1b" not in text
    for model in ("coder", "qwen-3b"):
        changes = changes_of(model, text)
        assert any(after > before for before, after in changes), text
        assert any(after < before for before, after in changes), text
        total = re.search(rf"^{model}   +[\d,]{{3,}}   +0   ", text, re.MULTILINE)
        assert total is not None, text
    assert f"from {REAL if program.TRACE_FILE.exists() else MADE}" in text
    asked = re.search(r"^\$ inferbus why (\S+) ", text, re.MULTILINE)
    assert asked is not None
    explained = text[asked.end() :]
    assert f"{asked[1]}  " in explained
    assert "Limiters, in order" in explained
    assert left_of(folder) == []


@pytest.mark.slow
@pytest.mark.timeout(200)
@pytest.mark.parametrize("word", ["starting services", "Traffic:"])
async def test_an_interrupt_ends_everything(tmp_path: Path, folder: Path, word: str) -> None:
    said = tmp_path / "said"
    with said.open("wb") as file:
        demo = await asyncio.create_subprocess_exec(
            *DEMO, "--dir", str(folder), cwd=ROOT, stdout=file, stderr=file, start_new_session=True
        )
    try:
        await eventually(lambda: word in said.read_text(), timeout=120, what=said.read_text)
        os.killpg(demo.pid, signal.SIGINT)
        async with asyncio.timeout(100):
            assert await demo.wait() == 130, said.read_text()
    finally:
        if demo.returncode is None:
            demo.kill()
            await demo.wait()
    text = said.read_text()
    assert "Traceback" not in text
    assert text.endswith("interrupted\n")
    assert left_of(folder) == []


@pytest.mark.slow
@pytest.mark.timeout(200)
def test_a_reader_that_goes_away_ends_everything(folder: Path) -> None:
    with subprocess.Popen(
        [*DEMO, "--dir", str(folder)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as demo:
        assert demo.stdout is not None
        assert demo.stderr is not None
        for line in demo.stdout:
            if line.startswith("Traffic:"):
                break
        demo.stdout.close()
        assert demo.wait(100) == 130
        assert "Traceback" not in demo.stderr.read()
    assert left_of(folder) == []
