"""Which files of a source belong to an artifact, and where they may be written.

The listing comes from a server that may be hostile. Invariant: every path of a plan stays inside
the folder it is joined to, no two files of a plan meet, and an empty plan is an error.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase
from itertools import pairwise

from inferbus_contracts.errors import ErrorCode, Problem, ProblemsError

_MAX_NAME_BYTES = 255
_MAX_PATH_BYTES = 4000
"""The limits of Linux file systems, less what the cache puts before."""


class Algorithm(StrEnum):
    """How a checksum was made."""

    SHA256 = "sha256"
    GIT_SHA1 = "git-sha1"
    """SHA-1 over `blob <size>`, a zero byte and the content: the name git gives a file."""
    MODIFIED_NS = "modified-ns"
    """The time of the last change; for files that are used where they are."""


@dataclass(frozen=True, slots=True)
class Checksum:
    """What the content of a file must give."""

    algorithm: Algorithm
    value: str
    """Lower-case hexadecimal digits; decimal for `modified-ns`."""


@dataclass(frozen=True, slots=True)
class SourceFile:
    """One file as its source describes it."""

    path: str
    """Relative, with forward slashes."""
    size_bytes: int
    checksum: Checksum | None = None
    """None: the source names none; only the length can be checked."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A source at one revision, which never changes."""

    revision: str
    """The commit, or what stands for it; empty where a source has no revisions."""
    files: tuple[SourceFile, ...]


def plan_files(
    files: Iterable[SourceFile], include: Sequence[str] = (), exclude: Sequence[str] = ()
) -> tuple[SourceFile, ...]:
    """The files to fetch, by path.

    Patterns are shell globs on the whole path in which `*` also matches `/`, and a trailing `/`
    means everything below, as the hub's own client has it; `exclude` wins. Raises `ProblemsError`:
    MODEL_SOURCE_INVALID for a path that can't be written safely, MODEL_NOT_FOUND when nothing is
    left to fetch.
    """
    chosen = sorted(
        (file for file in files if _is_chosen(file.path, include, exclude)),
        key=lambda file: file.path,
    )
    if not chosen:
        raise ProblemsError(
            Problem(
                code=ErrorCode.MODEL_NOT_FOUND,
                message="no file of the source is wanted",
                value=f"include {list(include)}, exclude {list(exclude)}",
                remedy="widen the include patterns, or narrow the exclude patterns",
            )
        )
    problems = [*_unsafe(chosen), *_clashes([file.path for file in chosen])]
    if problems:
        raise ProblemsError(*problems)
    return tuple(chosen)


def top_names(paths: Iterable[str]) -> list[str]:
    """The names right below the folder that `paths` are in, in order."""
    return sorted({path.partition("/")[0] for path in paths})


def path_fault(path: str) -> str | None:
    """Why `path` can't be a file's place inside a folder; None when it can."""
    parts = path.split("/")
    try:
        sizes_bytes = [len(part.encode()) for part in parts]
    except UnicodeEncodeError:
        return "it is no valid Unicode"
    if any(ord(character) < 0x20 or ord(character) == 0x7F for character in path):
        return "it holds a control character"
    if path.startswith("/"):
        return "it is absolute"
    if ".." in parts:
        return "it leaves the folder"
    if "" in parts or "." in parts:
        return "it has an empty part"
    if max(sizes_bytes) > _MAX_NAME_BYTES or sum(sizes_bytes) + len(parts) > _MAX_PATH_BYTES:
        return "it is too long"
    return None


def _is_chosen(path: str, include: Sequence[str], exclude: Sequence[str]) -> bool:
    if include and not _matches(path, include):
        return False
    return not _matches(path, exclude)


def _matches(path: str, patterns: Sequence[str]) -> bool:
    return any(
        fnmatchcase(path, f"{pattern}*" if pattern.endswith("/") else pattern)
        for pattern in patterns
    )


def _unsafe(files: Iterable[SourceFile]) -> list[Problem]:
    found = []
    for file in files:
        fault = path_fault(file.path) or ("its size is negative" if file.size_bytes < 0 else None)
        if fault:
            found.append(_refused(file.path, f"the source lists a file that is refused: {fault}"))
    return found


def _clashes(paths: Sequence[str]) -> list[Problem]:
    folders = {
        path[:position]
        for path in paths
        for position, character in enumerate(path)
        if character == "/"
    }
    twice = {path for path, following in pairwise(paths) if path == following}
    return [
        _refused(path, "the source lists two things of this name")
        for path in sorted(twice | (folders & set(paths)))
    ]


def _refused(path: str, message: str) -> Problem:
    return Problem(
        code=ErrorCode.MODEL_SOURCE_INVALID,
        message=message,
        field="path",
        value=path,
        remedy="don't use this source, or exclude the file",
    )
