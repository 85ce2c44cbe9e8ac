"""What `-f` names, read into one unit: the objects that are stored together or not at all.

Invariant: a unit is refused whole, with every problem there is, each at its file and line.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from inferbus_contracts.errors import ErrorCode, Problem, ProblemsError
from inferbus_shared.manifests import (
    ManifestDocument,
    read_manifests,
    read_path,
    repeated_objects,
)

MAX_DOCUMENTS = 1000
MAX_REQUEST_BYTES = 1_500_000
"""One unit is one request, and the server takes 2 MB."""

STANDARD_INPUT = "-"


def read_unit(paths: Sequence[str]) -> list[ManifestDocument]:
    """The objects of all files and folders, in order; `-` is standard input.

    Raises `ProblemsError` for what can't be read, an object that stands twice, no object at all,
    and more of them than one unit can hold.
    """
    documents: list[ManifestDocument] = []
    problems: list[Problem] = []
    for path in paths:
        try:
            documents += _read(path)
        except ProblemsError as error:
            problems += error.problems
    problems += repeated_objects(documents)
    if problems:
        raise ProblemsError(*problems)
    if not documents:
        raise ProblemsError(_empty(paths))
    if len(documents) > MAX_DOCUMENTS:
        raise ProblemsError(_too_many(paths, len(documents)))
    return documents


def check_size(paths: Sequence[str], size_bytes: int) -> None:
    """Raise `ProblemsError` when the request of a unit is larger than one message may be."""
    if size_bytes > MAX_REQUEST_BYTES:
        raise ProblemsError(
            Problem(
                code=ErrorCode.TOO_LARGE,
                message=f"together the objects have {size_bytes} bytes, "
                f"{MAX_REQUEST_BYTES} are possible in one apply",
                file=", ".join(paths),
                value=size_bytes,
                remedy="apply the files one by one, what is referred to first",
            )
        )


def _read(path: str) -> list[ManifestDocument]:
    if path == STANDARD_INPUT:
        return read_manifests(sys.stdin.buffer.read(), STANDARD_INPUT)
    documents = read_path(Path(path))
    if not documents:
        raise ProblemsError(_empty([path]))
    return documents


def _empty(paths: Sequence[str]) -> Problem:
    return Problem(
        code=ErrorCode.NOT_A_DOCUMENT,
        message="there is no object in it",
        file=", ".join(paths),
        remedy="name a manifest, or a folder with .yaml, .yml or .json files",
    )


def _too_many(paths: Sequence[str], count: int) -> Problem:
    return Problem(
        code=ErrorCode.TOO_LARGE,
        message=f"{count} objects are more than the {MAX_DOCUMENTS} that one apply may hold",
        file=", ".join(paths),
        value=count,
        remedy="apply the files one by one, what is referred to first",
    )
