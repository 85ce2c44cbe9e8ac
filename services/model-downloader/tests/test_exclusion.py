"""One download per artifact and node, however many want it; who lost the right stops."""

import asyncio
import contextlib
from pathlib import Path

import pytest
from downloader_forks import Forks
from downloader_node import Node
from model_hub import ModelHub

from inferbus_contracts.errors import ErrorCode, ProblemsError
from inferbus_model_downloader.effects_lock import exclusive
from tests.support.eventually import eventually


def total(files: dict[str, bytes]) -> int:
    return sum(map(len, files.values()))


async def test_ten_processes_cause_one_download(
    node: Node, hub: ModelHub, files: dict[str, bytes], forks: Forks
) -> None:
    hub.bytes_per_second = 500_000
    outputs = [node.folder / f"pod-{number}" for number in range(10)]
    cache = ("--cache-dir", str(node.cache))
    processes = [
        forks.start(("fetch", "hf://owner/model", "-o", str(out), *cache)) for out in outputs
    ]
    assert all(process.wait(60) for process in processes), forks.log
    codes = [ended.code for process in processes if (ended := process.ended())]
    assert codes == [0] * 10, forks.log
    assert all(node.shown(out) == files for out in outputs)
    assert hub.sent_bytes == total(files)
    assert len(node.artifacts()) == 1


async def test_requests_of_one_process_share_a_download_and_see_its_progress(
    node: Node, hub: ModelHub, files: dict[str, bytes]
) -> None:
    hub.bytes_per_second = 300_000
    first = asyncio.create_task(node.fetch())
    await eventually(lambda: hub.sent_bytes > 0)
    second = asyncio.create_task(node.fetch(destination=node.folder / "second"))
    await eventually(lambda: node.progress.waiting and node.progress.done_bytes > 0)
    assert node.progress.total_bytes == total(files)
    await asyncio.gather(first, second)
    assert node.shown(node.folder / "second") == files
    assert hub.sent_bytes == total(files)


async def test_who_waits_takes_over_when_the_other_dies(
    node: Node, hub: ModelHub, files: dict[str, bytes], forks: Forks
) -> None:
    hub.bytes_per_second = 100_000
    words = ("fetch", "hf://owner/model", "--cache-dir", str(node.cache))
    first = forks.start((*words, "-o", str(node.folder / "first")))
    await eventually(lambda: hub.sent_bytes > 100_000)
    waiting = asyncio.create_task(node.fetch())
    await eventually(lambda: node.progress.waiting)
    first.kill()
    hub.bytes_per_second = None
    await waiting
    assert node.shown() == files
    assert hub.sent_bytes < total(files) + 64 * 1024 + 4 * 64 * 1024


async def test_different_artifacts_do_not_wait_for_each_other(
    node: Node, hub: ModelHub, files: dict[str, bytes]
) -> None:
    async with exclusive_of(node, await key_of(node, hub)):
        async with asyncio.timeout(20):
            await node.fetch(include=["config.json"], destination=node.folder / "other")


async def test_who_was_fenced_off_writes_and_publishes_nothing_more(
    node: Node, hub: ModelHub
) -> None:
    hub.bytes_per_second = 100_000
    fetching = asyncio.create_task(node.fetch())
    await eventually(lambda: hub.sent_bytes > 50_000)
    lock = next(node.cache.glob("locks/*"))
    lock.unlink()
    lock.write_text("another holder, where the file system grants a lock twice")
    hub.bytes_per_second = None
    with pytest.raises(ProblemsError) as caught:
        await fetching
    assert caught.value.problems[0].code is ErrorCode.CONFLICT
    assert not node.artifacts()


async def test_a_cache_emptied_under_a_download_leaves_nothing_that_looks_complete(
    node: Node, hub: ModelHub, files: dict[str, bytes]
) -> None:
    hub.bytes_per_second = 100_000
    fetching = asyncio.create_task(node.fetch())
    await eventually(lambda: hub.sent_bytes > 50_000)
    node.cache.rename(node.folder / "trash")
    hub.bytes_per_second = None
    with contextlib.suppress(ProblemsError):
        await fetching
    assert not node.artifacts()
    await node.fetch()
    assert node.shown() == files


async def test_mb_7_4_a_lock_that_cannot_be_had_is_told_at_once(node: Node) -> None:
    node.cache.parent.mkdir(exist_ok=True)
    node.cache.write_text("a file where the cache should be")
    with pytest.raises(ProblemsError) as caught:
        async with asyncio.timeout(20):
            await node.fetch()
    assert caught.value.problems[0].code is ErrorCode.PERMISSION_DENIED
    assert str(node.cache) in (caught.value.problems[0].file or "")


async def test_a_lock_is_given_back_when_its_holder_fails(tmp_path: Path) -> None:
    path = tmp_path / "locks" / "k"
    with contextlib.suppress(RuntimeError):
        async with exclusive(path, lambda: None):
            raise RuntimeError("failed")
    async with asyncio.timeout(10):
        async with exclusive(path, lambda: None) as lock:
            lock.check()


async def key_of(node: Node, hub: ModelHub) -> str:
    manifest = (await node.fetch(destination=node.folder / "probe")).manifest
    return manifest.key


def exclusive_of(node: Node, key: str) -> contextlib.AbstractAsyncContextManager[object]:
    return exclusive(node.cache / "locks" / key, lambda: None)
