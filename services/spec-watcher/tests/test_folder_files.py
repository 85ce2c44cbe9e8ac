"""Files of a folder: told apart from what they were, and never taken for gone by mistake."""

import os
from pathlib import Path

import pytest

from inferbus_contracts.errors import ProblemsError
from inferbus_spec_watcher.folder_files import FileMovingError, look_around, read_unchanged


def test_manifests_are_found_by_their_names_in_the_folder(tmp_path: Path) -> None:
    (tmp_path / "team").mkdir()
    for name in ("b.yaml", "team/a.json", "notes.txt", ".b.yaml.swp"):
        (tmp_path / name).write_text("x")
    looks = look_around(tmp_path)
    assert sorted(looks) == ["b.yaml", "team/a.json"]
    assert looks["b.yaml"].size == 1


def test_another_file_of_the_same_name_looks_otherwise(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text("x")
    before = look_around(tmp_path)
    (tmp_path / "new").write_text("y")
    os.utime(tmp_path / "new", ns=(0, before["a.yaml"].changed_at_ns))
    (tmp_path / "new").replace(file)
    assert look_around(tmp_path) != before


@pytest.mark.parametrize("kind", ["missing", "file"])
def test_what_is_no_folder_is_no_empty_folder(tmp_path: Path, kind: str) -> None:
    root = tmp_path / "root"
    if kind == "file":
        root.write_text("x")
    with pytest.raises(OSError, match="root"):
        look_around(root)


def test_a_link_to_nothing_is_no_manifest(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").symlink_to(tmp_path / "missing.yaml")
    assert look_around(tmp_path) == {}


def test_a_file_that_is_as_it_was_looked_at_is_read(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_bytes(b"x")
    assert read_unchanged(file, look_around(tmp_path)["a.yaml"]) == b"x"


def test_a_file_that_changed_since_is_not(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_bytes(b"long")
    look = look_around(tmp_path)["a.yaml"]
    file.write_bytes(b"x")
    with pytest.raises(FileMovingError):
        read_unchanged(file, look)
    file.unlink()
    with pytest.raises(FileMovingError):
        read_unchanged(file, look)


def test_a_file_that_cannot_be_read_is_told_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "a.yaml"
    file.write_text("x")
    look = look_around(tmp_path)["a.yaml"]

    def refuse(_: Path) -> bytes:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_bytes", refuse)
    with pytest.raises(ProblemsError, match="Permission denied"):
        read_unchanged(file, look)


def test_a_file_that_moves_behind_a_locked_door_is_not_told_as_broken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "a.yaml"
    file.write_text("x")
    look = look_around(tmp_path)["a.yaml"]

    def refuse(_: Path) -> os.stat_result:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "stat", refuse)
    with pytest.raises(FileMovingError):
        read_unchanged(file, look)
