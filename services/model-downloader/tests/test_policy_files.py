"""Which files are fetched, and which names are refused."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferbus_contracts.errors import ErrorCode, ProblemsError
from inferbus_model_downloader.policy_files import SourceFile, path_fault, plan_files, top_names

NAMES = ("config.json", "a/model.bin", "a/b/model.safetensors", "model.bin", "README.md")


def planned(*patterns: str, exclude: tuple[str, ...] = ()) -> list[str]:
    files = [SourceFile(name, 1) for name in NAMES]
    return [file.path for file in plan_files(files, patterns, exclude)]


def test_without_patterns_everything_is_fetched_in_order() -> None:
    assert planned() == sorted(NAMES)


@pytest.mark.parametrize(
    ("include", "exclude", "expected"),
    [
        (("*.bin",), (), ["a/model.bin", "model.bin"]),
        (("a/",), (), ["a/b/model.safetensors", "a/model.bin"]),
        (("*",), ("*.bin", "a/"), ["README.md", "config.json"]),
        (("model.bin", "config.json"), ("model.bin",), ["config.json"]),
        (("readme.md", "README*"), (), ["README.md"]),
    ],
)
def test_patterns_are_globs_on_the_whole_path_and_exclusion_wins(
    include: tuple[str, ...], exclude: tuple[str, ...], expected: list[str]
) -> None:
    assert planned(*include, exclude=exclude) == expected


def test_a_plan_without_files_is_an_error() -> None:
    with pytest.raises(ProblemsError) as caught:
        planned("*.gguf")
    assert caught.value.problems[0].code is ErrorCode.MODEL_NOT_FOUND


@pytest.mark.parametrize(
    "path",
    [
        "../x",
        "a/../../x",
        "a/..",
        "..",
        "/etc/passwd",
        "",
        ".",
        "a//b",
        "./a",
        "a/",
        "a\0b",
        "a\nb",
        "a/\x7f",
        "\ud800",
        "x" * 256,
        "/".join(["x" * 200] * 30),
    ],
)
def test_a_path_that_is_no_place_inside_the_folder_is_refused(path: str) -> None:
    with pytest.raises(ProblemsError) as caught:
        plan_files([SourceFile("ok", 1), SourceFile(path, 1)])
    assert [problem.code for problem in caught.value.problems] == [ErrorCode.MODEL_SOURCE_INVALID]


@given(st.text(max_size=30))
def test_a_path_without_fault_stays_inside(path: str) -> None:
    if path_fault(path) is None:
        root = Path("/cache/content")
        assert (root / path).parts[: len(root.parts)] == root.parts
        assert ".." not in Path(path).parts
        assert (root / path) != root


@pytest.mark.parametrize("second", ["a", "a/b"])
def test_two_files_that_meet_are_refused(second: str) -> None:
    with pytest.raises(ProblemsError) as caught:
        plan_files([SourceFile("a", 1), SourceFile(second, 2)])
    assert caught.value.problems[0].value == "a"


def test_a_negative_size_is_refused() -> None:
    with pytest.raises(ProblemsError):
        plan_files([SourceFile("a", -1)])


def test_top_names_are_what_lies_right_below() -> None:
    assert top_names(NAMES) == ["README.md", "a", "config.json", "model.bin"]
