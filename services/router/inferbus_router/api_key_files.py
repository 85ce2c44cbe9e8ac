"""Files of API keys: reading them, and seeing that they changed.

A file is a list of keys; a folder, e.g. a mounted Secret, has one file for each key, whose name is
the key's. Invariant: what is read is all of the files or nothing.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path

from inferbus_contracts.errors import ErrorCode, Problem, ProblemsError
from inferbus_router.policy_api_keys import ApiKeys, KeyLine, key_lines, read_api_keys

Look = tuple[tuple[str, int, int, int], ...]
"""Of each file its path, time of modification in nanoseconds, size and inode."""


def load_api_keys(paths: Iterable[Path]) -> ApiKeys:
    """The keys of all files and folders; raises `ProblemsError`."""
    lines: list[KeyLine] = []
    for path in paths:
        try:
            lines += _lines(path)
        except (OSError, UnicodeDecodeError) as error:
            raise ProblemsError(_unreadable(path, error)) from None
    return read_api_keys(lines)


def look_at(paths: Iterable[Path]) -> Look:
    """What tells a changed file; one that can't be seen is left out."""
    found = []
    for path in paths:
        try:
            for file in _files(path):
                stat = file.stat()
                found.append((str(file), stat.st_mtime_ns, stat.st_size, stat.st_ino))
        except OSError:
            continue  # it looks other than before, which is all that matters here
    return tuple(found)


def _lines(path: Path) -> list[KeyLine]:
    if path.is_dir():
        return [KeyLine(str(file), file.name, file.read_text().strip()) for file in _files(path)]
    return key_lines(str(path), path.read_text())


def _files(path: Path) -> Iterator[Path]:
    """The path itself, or the files in it but for hidden ones, which Kubernetes adds to mounts."""
    if not path.is_dir():
        yield path
        return
    for file in sorted(path.iterdir()):
        if file.is_file() and not file.name.startswith("."):
            yield file


def _unreadable(path: Path, error: OSError | UnicodeDecodeError) -> Problem:
    reason = error.strerror if isinstance(error, OSError) else "it isn't UTF-8"
    return Problem(
        code=ErrorCode.BAD_SETTING,
        message=f"the API keys can't be read: {reason}",
        file=str(path),
        remedy="name a file of `name: key` lines, or a folder with one file per key",
    )
