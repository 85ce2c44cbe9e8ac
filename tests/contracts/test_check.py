"""The commands: what is checked in is what the code says, and every way out of that is told."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from inferbus_contracts.check import check, check_manifests
from inferbus_contracts.errors import ProblemsError
from inferbus_contracts.generate import generate, generate_manifests
from inferbus_contracts.published.command import run_command
from inferbus_contracts.published.difference import first_difference
from inferbus_contracts.published.documents import generated_files
from inferbus_contracts.published.files import (
    CONTRACTS,
    DEPLOY,
    MANIFESTS,
    PUBLISHED,
    read_published,
)
from inferbus_contracts.published.releases import last_release, release_files, version_order
from inferbus_contracts.release import release

SCHEMA = "schemas/events/woken.autoscaler.v1.json"
GOLDEN = "golden/woken.autoscaler.v1/full.json"


@pytest.fixture
def contracts(tmp_path: Path) -> Path:
    """A copy of everything that is checked in."""
    for part in PUBLISHED:
        shutil.copytree(CONTRACTS / part, tmp_path / part)
    return tmp_path


def told(folder: Path) -> list[str]:
    with pytest.raises(ProblemsError) as raised:
        check(folder)
    return [problem.message for problem in raised.value.problems]


def edit(path: Path, **values: object) -> None:
    path.write_text(json.dumps(json.loads(path.read_bytes()) | values, indent=2, sort_keys=True))


def test_what_is_checked_in_is_current_whole_and_compatible() -> None:
    assert "compatible with" in check(CONTRACTS)


def test_generating_again_changes_nothing(contracts: Path) -> None:
    before = read_published(contracts)
    assert generate(contracts).startswith("0 written, 0 removed")
    assert read_published(contracts) == before


def test_the_same_code_gives_the_same_bytes() -> None:
    assert generated_files() == generated_files()
    assert all(data.endswith(b"}\n") for data in generated_files().values())


def test_an_edited_schema_is_told_and_made_right(contracts: Path) -> None:
    edit(contracts / SCHEMA, title="Other")
    (line,) = told(contracts)
    assert line.startswith(f"{SCHEMA}: title is Woken, was Other; run `python -m")
    generate(contracts)
    check(contracts)


def test_another_form_of_the_same_schema_is_told(contracts: Path) -> None:
    edit(contracts / SCHEMA)
    (contracts / SCHEMA).write_bytes((contracts / SCHEMA).read_bytes().replace(b"  ", b" "))
    (line,) = told(contracts)
    assert line.startswith(f"{SCHEMA}: is written in another form; run")


def test_a_schema_that_is_no_json_is_told(contracts: Path) -> None:
    (contracts / SCHEMA).write_text("<<<<<<< HEAD\n")
    (line,) = told(contracts)
    assert line.startswith(f"{SCHEMA}: is no JSON")


def test_a_missing_document_is_told_and_made(contracts: Path) -> None:
    (contracts / "asyncapi/router.json").unlink()
    (line,) = told(contracts)
    assert line.startswith("asyncapi/router.json: is missing; run")
    assert generate(contracts).startswith("1 written")
    check(contracts)


def test_a_document_without_code_is_told_and_removed(contracts: Path) -> None:
    stray = contracts / "schemas/events/gone/gone.v1.json"
    stray.parent.mkdir()
    stray.write_text("{}")
    (line,) = told(contracts)
    assert line.startswith("schemas/events/gone/gone.v1.json: nothing in the code stands behind it")
    generate(contracts)
    assert not stray.parent.exists()
    check(contracts)


def test_a_change_since_the_release_is_told(contracts: Path) -> None:
    newest = last_release(read_published(contracts))
    assert newest is not None
    edit(
        contracts / f"schemas/released/{newest.version}/events/woken.autoscaler.v1.json",
        required=[],
    )
    (line,) = told(contracts)
    expected = (
        f"since {newest.version}: events/woken.autoscaler.v1.json: dueMs: new readers require it"
    )
    assert line.startswith(expected)


@pytest.mark.parametrize(("change", "said"), [("edit", "was changed"), ("remove", "is gone")])
def test_a_golden_document_of_a_release_stays(contracts: Path, change: str, said: str) -> None:
    path = contracts / GOLDEN
    if change == "edit":
        path.write_bytes(path.read_bytes().replace(b"ends", b"ended"))
    else:
        path.unlink()
    assert any(line.startswith(f"{GOLDEN}: {said}; put it back") for line in told(contracts))


def test_nothing_at_all_is_told_file_by_file(tmp_path: Path) -> None:
    said = told(tmp_path)
    assert f"{SCHEMA}: is missing; run `python -m inferbus_contracts.generate`" in said
    assert any(line.startswith("schemas/released: there is no release") for line in said)


def test_a_release_is_what_the_code_says_and_is_made_once(contracts: Path) -> None:
    assert "frozen" in release(contracts, "999.1")
    newest = last_release(read_published(contracts))
    assert newest is not None
    assert newest.version == "999.1"
    assert f"events/{Path(SCHEMA).name}" in newest.schemas
    assert GOLDEN.removeprefix("golden/") in newest.golden_digests
    assert "999.1" in check(contracts)
    for version in ("999.1", "999.0", "1.0"):
        with pytest.raises(ProblemsError, match=r"999\.1 is released already"):
            release(contracts, version)


def test_a_release_is_refused_while_something_is_wrong(contracts: Path) -> None:
    edit(contracts / SCHEMA, title="Other")
    before = read_published(contracts)
    with pytest.raises(ProblemsError, match="title is Woken"):
        release(contracts, "999.1")
    assert read_published(contracts) == before


@pytest.mark.parametrize("version", ["", "v1", "1.x", "1..0", "../1"])
def test_a_version_is_numbers_with_dots_between(version: str) -> None:
    with pytest.raises(ValueError, match="no version such as"):
        release_files({}, version)


def test_versions_are_sorted_as_numbers() -> None:
    assert sorted(["0.10.0", "0.9", "0.9.1"], key=version_order) == ["0.9", "0.9.1", "0.10.0"]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ({"a": 1}, {"a": 1}, ""),
        ({"a": 1}, {"a": 2}, "a is 2, was 1"),
        ({"a": {"b": [1, 2]}}, {"a": {"b": [1, 3]}}, "a.b[1] is 3, was 2"),
        ({"a": [1]}, {"a": [1, 2]}, "a is [1, 2], was [1]"),
        ({}, {"a": 1}, "a is 1, was absent"),
        ({"a": 1}, {}, "a is absent, was 1"),
        ({"a": 1}, {"a": 1.0}, "a is 1.0, was 1"),
        ([], {}, "the document is {}, was []"),
    ],
)
def test_the_first_difference_in_words(old: object, new: object, said: str) -> None:
    assert first_difference(old, new) == said


def test_a_command_ends_with_what_it_did_or_with_every_problem(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command(lambda: check(CONTRACTS)) == 0
    assert run_command(lambda: check(tmp_path)) == 1
    printed = capsys.readouterr()
    assert printed.out.count("\n") == 1
    assert printed.err.count("\n") == len(told(tmp_path))


DEFINITION = "crds/modelservings.workload.serving.volcano.sh.yaml"


@pytest.fixture
def manifests(tmp_path: Path) -> Path:
    """A copy of the manifests that are checked in."""
    for part in MANIFESTS:
        shutil.copytree(DEPLOY / part, tmp_path / part)
    return tmp_path


def test_manifests_that_are_checked_in_are_current() -> None:
    assert "current" in check_manifests(DEPLOY)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda file: file.write_text(f"{file.read_text()}# by hand\n"), "is not what the code"),
        (lambda file: file.unlink(), "is not what the code says"),
        (lambda file: shutil.copy(file, file.with_name("other.yaml")), "nothing in the code"),
    ],
    ids=["edited", "missing", "stray"],
)
def test_a_manifest_that_the_code_does_not_say_is_told_and_made_right(
    manifests: Path, change: Callable[[Path], object], told: str
) -> None:
    change(manifests / DEFINITION)
    with pytest.raises(ProblemsError) as raised:
        check_manifests(manifests)
    (problem,) = raised.value.problems
    assert told in problem.message
    assert "python -m inferbus_contracts.generate" in problem.message
    generate_manifests(manifests)
    assert "current" in check_manifests(manifests)
    assert generate_manifests(manifests).startswith("0 written, 0 removed")
