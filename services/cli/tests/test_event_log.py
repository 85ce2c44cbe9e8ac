"""A NATS server that stores nothing any more is started anew when that helps, and only then."""

import shutil
from pathlib import Path
from typing import NamedTuple

import pytest

from inferbus_cli.full_disk import with_cause
from inferbus_cli.platform.policy_event_log import (
    ROOM_BYTES,
    UNWELL_SECONDS,
    LogHealth,
    observed,
    should_start_anew,
)
from inferbus_contracts.errors import ErrorCode, Problem, ProblemsError

WELL = observed(LogHealth(), 7, True, 0.0)
LATER = 1.0 + UNWELL_SECONDS


def unwell_since(state: LogHealth, *moments: float) -> LogHealth:
    for moment in moments:
        state = observed(state, 7, False, moment)
    return state


def test_a_server_that_fell_ill_is_started_anew_once_there_is_room() -> None:
    ill = unwell_since(WELL, 1.0, 3.0)
    assert not should_start_anew(ill, LATER - 0.1, ROOM_BYTES)
    assert not should_start_anew(ill, LATER, ROOM_BYTES - 1)
    assert should_start_anew(ill, LATER, ROOM_BYTES)


def test_a_server_that_recovers_is_left_alone() -> None:
    recovered = observed(unwell_since(WELL, 1.0), 7, True, 2.0)
    assert not should_start_anew(recovered, 100.0, ROOM_BYTES)
    again = unwell_since(recovered, 100.0)
    assert not should_start_anew(again, 100.0, ROOM_BYTES), "counted from its second fall"


def test_a_server_that_still_reads_back_its_store_is_left_alone() -> None:
    started = unwell_since(LogHealth(7), 1.0, 500.0)
    assert not should_start_anew(started, 1000.0, ROOM_BYTES)


def test_another_process_is_another_life() -> None:
    other = observed(unwell_since(WELL, 1.0), 8, False, 2.0)
    assert other == LogHealth(8, was_well=False, unwell_since=2.0)
    assert not should_start_anew(other, 100.0, ROOM_BYTES)


class Usage(NamedTuple):
    total: int
    used: int
    free: int


def error(code: ErrorCode) -> ProblemsError:
    return ProblemsError(Problem(code=code, message="said the bus"))


def on_a_disk(monkeypatch: pytest.MonkeyPatch, free_bytes: int) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(1, 1, free_bytes))


def test_a_full_disk_is_told_first_where_the_bus_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_a_disk(monkeypatch, 2048)
    first, second = with_cause(error(ErrorCode.BUS_TIMEOUT), tmp_path).problems
    assert first.code is ErrorCode.DISK_FULL
    assert (first.file, first.value) == (str(tmp_path), "2 KiB free")
    assert "make room" in first.remedy
    assert second.code is ErrorCode.BUS_TIMEOUT


@pytest.mark.parametrize(
    ("code", "free_bytes"),
    [(ErrorCode.BUS_TIMEOUT, 2**30), (ErrorCode.UNKNOWN_FIELD, 0), (ErrorCode.NOT_RUNNING, 0)],
)
def test_a_full_disk_is_not_blamed_for_anything_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: ErrorCode, free_bytes: int
) -> None:
    on_a_disk(monkeypatch, free_bytes)
    told = error(code)
    assert with_cause(told, tmp_path) is told


def test_a_folder_that_is_not_there_is_no_full_disk(tmp_path: Path) -> None:
    told = error(ErrorCode.BUS_TIMEOUT)
    assert with_cause(told, tmp_path / "none") is told
