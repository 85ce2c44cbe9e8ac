import os
from pathlib import Path

import pytest

from inferbus_shared.processes import logs
from inferbus_shared.processes.commands import spawn
from inferbus_shared.processes.logs import LogLimit, trim_log
from shared.tests.processes.sandbox import Sandbox

LIMIT = LogLimit(max_bytes=64 * 1024, generations=2)


def write(path: Path, first: int, count: int) -> None:
    with path.open("ab") as file:
        for number in range(first, first + count):
            file.write(b"line %07d\n" % number)


def disk_bytes(path: Path) -> int:
    return path.stat().st_blocks * 512


def everything(path: Path) -> list[int]:
    """The numbers of all whole lines that are kept, oldest first."""
    parts = [path.with_name(f"{path.name}.{number}") for number in (2, 1)]
    text = b"".join(part.read_bytes() for part in [*parts, path] if part.exists())
    lines = text.replace(b"\0", b"").splitlines()
    if not lines[0].startswith(b"line "):
        del lines[0]  # its beginning went with the part before
    return [int(line.removeprefix(b"line ")) for line in lines]


def test_a_small_log_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    write(path, 0, 100)
    assert not trim_log(path, LIMIT)
    assert everything(path) == list(range(100))


def test_a_log_that_is_not_there_is_no_error(tmp_path: Path) -> None:
    assert not trim_log(tmp_path / "none.log", LIMIT)


def test_no_line_is_lost_or_doubled_by_a_cut(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    write(path, 0, 10_000)
    assert trim_log(path, LIMIT)
    write(path, 10_000, 100)
    assert everything(path) == list(range(10_100))
    assert disk_bytes(path) <= LIMIT.max_bytes
    assert not path.with_name("a.log.part").exists()


def test_what_is_kept_is_bounded(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    for round_number in range(6):
        write(path, round_number * 10_000, 10_000)
        trim_log(path, LIMIT)
    kept = everything(path)
    assert kept == list(range(kept[0], 60_000))
    assert len(kept) < 31_000
    assert {entry.name for entry in tmp_path.iterdir()} == {"a.log", "a.log.1", "a.log.2"}


def test_without_generations_the_head_is_dropped(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    write(path, 0, 10_000)
    assert trim_log(path, LogLimit(max_bytes=64 * 1024, generations=0))
    assert everything(path)[-1] == 9_999
    assert disk_bytes(path) <= 64 * 1024
    assert list(tmp_path.iterdir()) == [path]


def test_where_a_file_cannot_be_collapsed_its_head_is_freed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unsupported(_: int, __: int) -> None:
        raise OSError(95, "not supported")

    monkeypatch.setattr(logs, "collapse_range", unsupported)
    path = tmp_path / "a.log"
    for round_number in range(4):
        write(path, round_number * 10_000, 10_000)
        assert trim_log(path, LIMIT)
    kept = everything(path)
    assert kept == list(range(kept[0], 40_000))
    assert disk_bytes(path) <= LIMIT.max_bytes
    assert disk_bytes(path.with_name("a.log.1")) < 4 * 65_536


def test_a_program_that_writes_meanwhile_loses_nothing(sandbox: Sandbox) -> None:
    count = 150_000
    path = sandbox.folder / "a.log"
    limit = LogLimit(max_bytes=64 * 1024, generations=60)
    cuts = 0
    with sandbox.client() as client:
        client.call(spawn(sandbox.spec("a", "write_lines", str(count))))
        while client.next_event(0) is None or sandbox.exit_record("a") is None:
            cuts += trim_log(path, limit)
    parts = sorted(sandbox.folder.glob("a.log.*"), key=lambda part: -int(part.suffix[1:]))
    text = b"".join(part.read_bytes() for part in [*parts, path]).replace(b"\0", b"")
    lines = text.splitlines()
    assert cuts > 2
    if len(parts) < limit.generations:
        assert lines == [b"line %07d" % number for number in range(count)]
    else:
        pytest.fail(f"{len(parts)} parts: the limit of the test is too small, of {os.cpu_count()}")
