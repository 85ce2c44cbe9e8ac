"""Whose memory and CPU is counted."""

import asyncio
import os
import sys
from pathlib import Path

from inferbus_cli.platform.directory import PlatformDirectory
from tests.bench.processes import (
    ProcessUse,
    descendants,
    platform_processes,
    total_memory_bytes,
)
from tests.support.eventually import eventually

PARENTS = {1: 0, 10: 1, 11: 10, 12: 11, 20: 1, 21: 20}


def test_a_process_brings_everything_below_it() -> None:
    assert descendants(PARENTS, [10]) == {10, 11, 12}
    assert descendants(PARENTS, [21, 11]) == {11, 12, 21}
    assert descendants(PARENTS, []) == set()


def test_a_circle_of_parents_ends() -> None:
    assert descendants({5: 6, 6: 5}, [5]) == {5, 6}


def test_memory_is_the_sum_of_all() -> None:
    processes = {
        pid: ProcessUse(pid=pid, name="x", cpu_seconds=0, memory_bytes=pid) for pid in (3, 4)
    }
    assert total_memory_bytes(processes) == 7


async def test_a_process_that_nobody_names_is_found_by_the_folder_it_was_given(
    tmp_path: Path,
) -> None:
    """It is counted with its child."""
    nested = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {'input()'!r}])"
    outer = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        nested,
        env={**os.environ, "SOME_FOLDER": str(tmp_path)},
        stdin=asyncio.subprocess.PIPE,
    )
    try:
        directory = PlatformDirectory(tmp_path)
        found = await eventually(
            lambda: (len(used := platform_processes(directory)) == 2 and used) or None
        )
        assert found is not None
        assert outer.pid in found
        assert all(one.memory_bytes > 0 for one in found.values())
    finally:
        await outer.communicate(b"")
    assert outer.pid not in platform_processes(directory)
