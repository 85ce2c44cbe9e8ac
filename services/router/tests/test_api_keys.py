"""Lists of API keys, and the files they are in."""

from hashlib import sha256
from pathlib import Path

import pytest

from inferbus_contracts.errors import ProblemsError
from inferbus_router.api_key_files import load_api_keys, look_at
from inferbus_router.policy_api_keys import ApiKeys, key_digest, key_lines, read_api_keys

DIGEST = sha256(b"secret").hexdigest()


def read(text: str) -> ApiKeys:
    return read_api_keys(key_lines("keys", text))


def test_keys_are_written_as_they_are_or_as_their_digest() -> None:
    keys = read(f"# ours\n\nann: k1\nann: k2\n  bob : sha256:{DIGEST}  \n")

    assert {keys[key_digest(key)] for key in (b"k1", b"k2")} == {"api-key:ann"}
    assert keys[key_digest(b"secret")] == "api-key:bob"
    assert key_digest(DIGEST.encode()) not in keys
    assert len(keys) == 3


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("ann", "one word"),
        ("ann:", "one word"),
        ("ann: two words", "one word"),
        (": key", "name"),
        ("a b: key", "name"),
        ("ann: sha256:12", "64 hexadecimal"),
        ("ann: k1\nbob: k1", "another name"),
    ],
)
def test_a_line_that_is_wrong_is_told_by_its_place_and_without_the_key(
    text: str, fault: str
) -> None:
    with pytest.raises(ProblemsError, match=fault) as raised:
        read(text)

    (problem,) = raised.value.problems
    assert problem.file == f"keys:{len(text.splitlines())}"
    assert "k1" not in str(problem)
    assert "two words" not in str(problem)


def test_all_that_is_wrong_is_told_at_once() -> None:
    with pytest.raises(ProblemsError) as raised:
        read("ann\nok: key\nbob\n")

    assert [problem.file for problem in raised.value.problems] == ["keys:1", "keys:3"]


def test_a_mounted_secret_is_a_folder_of_keys(tmp_path: Path) -> None:
    data = tmp_path / "..2026"
    data.mkdir()
    (data / "ann").write_text("k1\n")
    (tmp_path / "ann").symlink_to(data / "ann")
    (tmp_path / "bob").write_text(f"sha256:{DIGEST}")
    (tmp_path / ".hidden").write_text("not a key")

    assert sorted(load_api_keys([tmp_path]).values()) == ["api-key:ann", "api-key:bob"]


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(ProblemsError, match="can't be read"):
        load_api_keys([tmp_path / "none"])


def test_a_change_is_seen(tmp_path: Path) -> None:
    folder, file = tmp_path / "folder", tmp_path / "file"
    folder.mkdir()
    file.write_text("ann: k1")
    looks = [look_at([folder, file])]
    (folder / "bob").write_text("k2")
    looks.append(look_at([folder, file]))
    file.write_text("ann: longer")
    looks.append(look_at([folder, file]))
    file.unlink()
    looks.append(look_at([folder, file]))

    assert len(set(looks)) == len(looks)
    assert look_at([folder, file]) == looks[-1]
