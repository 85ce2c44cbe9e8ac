"""A disk that fills up: told as such, nothing acknowledged is lost, and room is all that heals it.

Each test mounts a small disk of its own, which only root may.
"""

import contextlib
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.scenario.bad_input import NO_PLATFORM, refusals
from tests.support.eventually import eventually
from tests.support.platform import Platform, model_manifests

pytestmark = pytest.mark.slow

ENOUGH_MEBIBYTES = 160
TOO_SMALL_MEBIBYTES = 64
CHUNK = b"\0" * 65_536


@contextlib.contextmanager
def disk(folder: Path, mebibytes: int) -> Iterator[Path]:
    """A disk of that size; skips the test where none may be mounted."""
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={mebibytes}m", "tmpfs", str(folder)]
    try:
        done = subprocess.run(mount, capture_output=True, text=True, check=False)
    except OSError as error:
        pytest.skip(f"no disk can be mounted here: {error}")
    if done.returncode != 0:
        pytest.skip(f"no disk can be mounted here: {done.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


@contextlib.contextmanager
def platform_on(folder: Path, *options: str) -> Iterator[Platform]:
    """A platform in a folder, ended afterwards."""
    platform = Platform(folder / "platform")
    try:
        platform.up("--startup", "0", *options)
        yield platform
    finally:
        platform.inferbus("down", check=False)


def up(platform: Platform) -> subprocess.CompletedProcess[str]:
    port = str(platform.router_port)
    return platform.inferbus("up", "--detach", "--router-port", port, check=False)


def fill(folder: Path) -> Path:
    """Take what room there is; the file that takes it."""
    file = folder / "filler"
    with file.open("wb", buffering=0) as filler, contextlib.suppress(OSError):
        while True:
            filler.write(CHUNK)
    return file


def config_map(number: int) -> str:
    text = "x" * 20_000
    return f"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: m{number}\ndata:\n  text: {text}\n"


def apply(platform: Platform, number: int) -> subprocess.CompletedProcess[str]:
    return platform.inferbus("apply", "-f", "-", stdin=config_map(number), check=False)


def names(platform: Platform) -> set[str]:
    told = json.loads(platform.inferbus("get", "configmap", "-o", "json").stdout)
    return {item["metadata"]["name"] for item in told["items"]}


async def test_a_full_disk_is_told_loses_nothing_and_heals_with_room(tmp_path: Path) -> None:
    with disk(tmp_path / "disk", ENOUGH_MEBIBYTES) as folder, platform_on(folder) as platform:
        platform.apply(*model_manifests("chat"))
        await eventually(lambda: platform.complete("chat").status == 200, timeout=30)
        assert apply(platform, 0).returncode == 0
        before = {name: row.pid for name, row in platform.processes().items()}

        filler = fill(folder)
        acknowledged = {"m0"}
        refused = None
        for number in range(1, 20):
            result = apply(platform, number)
            if result.returncode != 0:
                refused = result
                break
            acknowledged.add(f"m{number}")
        assert refused is not None, "a full disk stores nothing"
        first = refusals(refused, exit_code=NO_PLATFORM)[0]
        for part in (str(platform.directory.root), "disk", "full", "free", "make room", "IB-4002"):
            assert part in first
        assert platform.complete("chat").status == 200, "what runs, runs on"

        filler.unlink()
        await eventually(lambda: apply(platform, 20).returncode == 0, timeout=90)
        acknowledged.add("m20")
        assert acknowledged <= names(platform)
        assert platform.complete("chat").status == 200
        platform.apply(*model_manifests("later"))
        await eventually(lambda: platform.complete("later").status == 200, timeout=60)
        after = {name: row.pid for name, row in platform.processes().items()}
        changed = {name for name in before if before[name] != after[name]}
        assert changed <= {"nats"}, "no other process ended over it"


def test_a_disk_without_room_for_the_log_is_refused_before_anything_runs(tmp_path: Path) -> None:
    with disk(tmp_path / "disk", TOO_SMALL_MEBIBYTES) as folder:
        platform = Platform(folder / "platform")
        (line,) = refusals(up(platform), exit_code=NO_PLATFORM)
        for part in (str(folder), "not enough free space", "MiB", "--dir", "IB-4002"):
            assert part in line
        assert all(row.pid is None for row in platform.processes().values())


def test_a_disk_without_any_room_is_refused_too(tmp_path: Path) -> None:
    with disk(tmp_path / "disk", 1) as folder:
        platform = Platform(folder / "platform")
        fill(folder)
        (line,) = refusals(up(platform), exit_code=NO_PLATFORM)
        for part in (str(folder), "make room", "IB-4002"):
            assert part in line
