"""The program as people and init containers call it."""

import asyncio
import json
import os
import pty
import signal
from pathlib import Path

import pytest
from downloader_node import Node
from model_hub import ModelHub

from inferbus_contracts.errors import ErrorCode, ProblemsError
from inferbus_model_downloader.command_line import parse_fetch
from tests.support.eventually import eventually


def cache_of(words: list[str], setting: Path | None = None) -> Path:
    return parse_fetch(["fetch", "hf://a/b", *words], {}, setting).cache


def test_the_cache_lies_beside_the_output_so_that_it_can_be_swapped(tmp_path: Path) -> None:
    assert cache_of(["-o", str(tmp_path / "m")]) == tmp_path / ".inferbus-models"


def test_the_cache_lies_in_an_output_that_is_there_since_a_volume_may_end_there(
    tmp_path: Path,
) -> None:
    assert cache_of(["-o", str(tmp_path)]) == tmp_path / ".inferbus-models"
    link = tmp_path / "link"
    link.symlink_to(tmp_path)
    assert cache_of(["-o", str(link)]) == tmp_path / ".inferbus-models"


def test_an_option_wins_over_the_setting_of_a_cache(tmp_path: Path) -> None:
    assert cache_of(["-o", "x"], tmp_path) == tmp_path
    assert cache_of(["-o", "x", "--cache-dir", str(tmp_path / "c")], tmp_path) == tmp_path / "c"


def test_an_option_wins_over_config_and_environment() -> None:
    environment = {"HF_REVISION": "e"}
    words = ["hf://a/b", "--config", '{"hf_revision": "c"}']
    assert parse_fetch(words, environment, None).request.wanted_revision == "c"
    words += ["--revision", "o"]
    assert parse_fetch(words, environment, None).request.wanted_revision == "o"


def test_a_relative_path_is_meant_where_the_command_is_given() -> None:
    command = parse_fetch(["./m"], {}, None)
    assert str(command.request.source) == f"host://{Path.cwd()}/m"


@pytest.mark.parametrize(
    "words",
    [
        ["fetch"],
        ["fetch", "hf://a/b", "--source", "hf://a/b"],
        ["fetch", "hf://a/b", "-w", "65"],
        ["fetch", "hf://a/b", "-w", "many"],
        ["fetch", "hf://a/b", "--timeout", "0"],
        ["fetch", "hf://a/b", "--no-such-option"],
        ["--source", "hf://a/b", "--config", "{"],
        ["serve", "now"],
    ],
)
def test_a_command_that_cannot_be_meant_is_a_problem(words: list[str]) -> None:
    with pytest.raises(ProblemsError) as caught:
        parse_fetch(words, {}, None)
    assert caught.value.problems[0].code in (
        ErrorCode.BAD_ARGUMENT,
        ErrorCode.MODEL_SOURCE_INVALID,
    )


async def test_the_references_init_container_works_unchanged(
    node: Node, hub: ModelHub, files: dict[str, bytes]
) -> None:
    hub.token = "hf_fromconfigfile"
    hub.put(files, commit="b" * 40, branch="v2")
    config = {"hf_token": hub.token, "hf_endpoint": hub.url, "hf_revision": "v2"}
    output = node.folder / "volume" / "8590cc9fef9361779a5bd7862eb82b6d"
    code, out, err = await node.run(
        *("--source", "hf://owner/model", "--output-dir", str(output)),
        *("--config", json.dumps(config), "--max-workers", "2"),
        HF_ENDPOINT="http://127.0.0.1:1",
    )
    assert (code, err) == (0, "")
    assert node.shown(output) == files
    assert f"{output}: 5 files" in out
    assert "b" * 40 in out


async def test_a_mounted_volume_shows_the_model_in_itself(
    node: Node, files: dict[str, bytes]
) -> None:
    node.output.mkdir(parents=True)
    code, _, err = await node.run("fetch", "owner/model", "-o", str(node.output))
    assert (code, err) == (0, "")
    assert {path: (node.output / path).read_bytes() for path in files} == files
    assert not node.output.is_symlink()


async def test_problems_are_lines_with_an_exit_code_and_never_secrets(
    node: Node, hub: ModelHub
) -> None:
    hub.token = "right"
    code, out, err = await node.run(
        "fetch", "hf://owner/model", "-o", str(node.output), HF_TOKEN="wrong-s3cret"
    )
    assert (code, out) == (2, "")
    assert err.startswith("error: ")
    assert "IB-5003" in err
    assert "s3cret" not in err
    assert "Traceback" not in err


async def test_a_deadline_ends_it(node: Node, hub: ModelHub, files: dict[str, bytes]) -> None:
    hub.bytes_per_second = 10_000
    words = ("fetch", "hf://owner/model", "-o", str(node.output))
    code, _, err = await node.run(*words, "--timeout", "1")
    assert code == 3
    assert "IB-4010" in err
    assert not node.output.exists()
    hub.bytes_per_second = None
    assert (await node.run(*words))[0] == 0
    assert node.shown() == files


async def test_an_interrupt_ends_it_like_any_program(node: Node, hub: ModelHub) -> None:
    hub.bytes_per_second = 10_000
    process = node.start("fetch", "hf://owner/model", "-o", str(node.output))
    await eventually(lambda: hub.sent_bytes > 0)
    process.send_signal(signal.SIGINT)
    _, err = await asyncio.to_thread(process.communicate)
    assert process.returncode == 130
    assert "Traceback" not in err


async def test_a_terminal_sees_one_line_that_moves(node: Node, hub: ModelHub) -> None:
    hub.bytes_per_second = 150_000
    ours, theirs = pty.openpty()
    process = node.start("fetch", "hf://owner/model", "-o", str(node.output), stderr=theirs)
    os.close(theirs)
    seen = await asyncio.to_thread(read_all, ours)
    await asyncio.to_thread(process.communicate)
    assert process.returncode == 0
    assert seen.count("\r") > 2
    assert seen.count("\n") == 1
    assert " of 1.0 MiB " in seen


def read_all(descriptor: int) -> str:
    data = b""
    try:
        while piece := os.read(descriptor, 4096):
            data += piece
    except OSError:  # what a terminal answers when its other side is closed
        pass
    os.close(descriptor)
    return data.decode()


async def test_offline_what_is_complete_starts_and_what_is_not_says_so(
    node: Node, hub: ModelHub, files: dict[str, bytes]
) -> None:
    words = ("fetch", "hf://owner/model", "--cache-dir", str(node.cache), "-o")
    code, _, err = await node.run(*words, str(node.output), HF_HUB_OFFLINE="1")
    assert code == 2
    assert "IB-5005" in err
    assert not hub.requests
    await node.fetch()
    before = len(hub.requests)
    assert (await node.run(*words, str(node.folder / "off"), HF_HUB_OFFLINE="1"))[0] == 0
    assert node.shown(node.folder / "off") == files
    assert len(hub.requests) == before
