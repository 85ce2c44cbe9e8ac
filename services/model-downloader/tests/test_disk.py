"""Disks that are full, or get full: told, and gone on with when there is room."""

import asyncio
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from downloader_node import Node
from model_hub import ModelHub

from inferbus_contracts.errors import ErrorCode, Problem, ProblemsError
from tests.support.eventually import eventually

MIB = 1 << 20


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(folder)],
        capture_output=True,
        text=True,
        check=False,
    )
    if mounted.returncode:
        pytest.skip(f"a small file system can't be mounted here: {mounted.stderr.strip()}")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


async def problem_of(node: Node, **knobs: int) -> Problem:
    with pytest.raises(ProblemsError) as caught:
        await node.fetch(knobs=dict(knobs))
    assert not node.artifacts()
    return caught.value.problems[0]


async def test_what_does_not_fit_beside_the_reserve_is_not_begun(node: Node, hub: ModelHub) -> None:
    problem = await problem_of(node, reserve_bytes=1 << 60)
    assert problem.code is ErrorCode.DISK_FULL
    assert str(node.cache) in (problem.file or "")
    assert hub.sent_bytes == 0


async def test_what_does_not_fit_on_the_disk_is_not_begun(
    node: Node, hub: ModelHub, small_disk: Path
) -> None:
    hub.put({"weights": bytes(4 * MIB)})
    node.cache = small_disk / "cache"
    assert (await problem_of(node)).code is ErrorCode.DISK_FULL
    assert hub.sent_bytes == 0


@pytest.mark.parametrize(
    ("reserve_bytes", "filler_bytes"), [(0, 3 * MIB // 2), (MIB // 2, 3 * MIB // 4)]
)
async def test_a_disk_that_fills_up_keeps_what_came_and_goes_on(
    node: Node, hub: ModelHub, small_disk: Path, reserve_bytes: int, filler_bytes: int
) -> None:
    hub.put({"weights": bytes(range(256)) * 8192})
    hub.bytes_per_second = 1_000_000
    node.cache = small_disk / "cache"
    filler = small_disk / "filler"

    async def fill_up() -> None:
        await eventually(lambda: hub.sent_bytes > MIB // 2)
        await asyncio.to_thread(filler.write_bytes, bytes(filler_bytes))

    filling = asyncio.create_task(fill_up())
    problem = await problem_of(node, reserve_bytes=reserve_bytes)
    await filling
    assert problem.code is ErrorCode.DISK_FULL
    filler.unlink()
    hub.bytes_per_second = None
    await node.fetch(knobs={"reserve_bytes": reserve_bytes})
    assert node.shown() == {"weights": bytes(range(256)) * 8192}
    assert node.progress.received_bytes < 2 * MIB - MIB // 4


async def test_a_cache_that_cannot_be_written_but_is_complete_will_do(
    node: Node, files: dict[str, bytes], small_disk: Path
) -> None:
    node.cache = small_disk / "cache"
    await node.fetch()
    remount = ["mount", "-o", "remount,ro", str(small_disk)]
    await asyncio.to_thread(subprocess.run, remount, check=True)
    await node.fetch(destination=node.folder / "second")
    assert node.shown(node.folder / "second") == files
    node.hub.put({**files, "more.txt": b"more"}, commit="b" * 40)
    with pytest.raises(ProblemsError) as caught:
        await node.fetch()
    assert caught.value.problems[0].code is ErrorCode.PERMISSION_DENIED
