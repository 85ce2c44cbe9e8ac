"""The files that services and containers write into, and following them while they are cut.

A log's owner cuts its head off into `<file>.1` now and then; whoever reads further down moves up by
what was cut.
"""

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from inferbus_cli.platform.directory import PlatformDirectory
from inferbus_contracts.errors import ErrorCode, Problem, ProblemsError

SUFFIX = ".log"
_BLOCK_BYTES = 64 * 1024
_LOOK_SECONDS = 0.2


def log_of(directory: PlatformDirectory, word: str, container: str | None) -> Path:
    """The log of a process, or of a container of the pod that `word` names.

    `word` is a process (`autoscaler`), a pod's name, `pod/name`, or its uid. Without `container` it
    is the pod's first. Raises `ProblemsError` when there is none.
    """
    name = word.removeprefix("pod/")
    own = directory.logs / f"{name}{SUFFIX}"
    if own.is_file() and name == word and container is None:
        return own
    pods = {
        folder: document
        for folder, document in _pods(directory)
        if name in (document.get("name"), document.get("uid"))
    }
    if len(pods) > 1:
        raise ProblemsError(_several(word, [str(one.get("uid")) for one in pods.values()]))
    for folder in pods:
        return _container_log(folder, container)
    raise ProblemsError(_unknown(directory, word))


def _pods(directory: PlatformDirectory) -> Iterator[tuple[Path, dict[str, object]]]:
    """Run folders of pods with the metadata of each."""
    for record in sorted(directory.pods.glob("*/pod.json")):
        try:
            yield record.parent, json.loads(record.read_text())["document"]["metadata"]
        except (OSError, ValueError, KeyError, TypeError):
            continue  # it is being written, or removed


def _container_log(folder: Path, container: str | None) -> Path:
    logs = {path.name.removesuffix(SUFFIX): path for path in sorted(folder.glob(f"*{SUFFIX}"))}
    order = [name for name in _declared(folder) if name in logs] or list(logs)
    wanted = container or (order[0] if order else "")
    if wanted in logs:
        return logs[wanted]
    raise ProblemsError(
        Problem(
            code=ErrorCode.NOT_FOUND,
            message="the pod has no log of this container" if container else "nothing was logged",
            file=str(folder),
            field="--container",
            value=container,
            remedy=f"its logs: {', '.join(order) or 'none yet'}",
        )
    )


def _declared(folder: Path) -> list[str]:
    spec = json.loads((folder / "pod.json").read_text())["document"].get("spec") or {}
    return [str(one.get("name")) for one in spec.get("containers") or ()]


def tail(path: Path, lines: int | None) -> tuple[bytes, int]:
    """The last lines (all of them for None), and the size of the file at that moment.

    Raises OSError. What was freed at the head of the file without moving the rest reads as zero
    bytes, and is left out.
    """
    with path.open("rb") as file:
        end = file.seek(0, 2)
        start, data = end, b""
        while start and (lines is None or data.count(b"\n") <= lines):
            step = min(_BLOCK_BYTES, start)
            start -= step
            file.seek(start)
            data = file.read(step) + data
    text = data.lstrip(b"\0")
    if lines is None:
        return text, end
    kept = text.splitlines(keepends=True)[-lines:] if lines else []
    return b"".join(kept), end


def follow(
    path: Path, position: int, wait: Callable[[], None] = lambda: time.sleep(_LOOK_SECONDS)
) -> Iterator[bytes]:
    """What is written into the file behind `position`, as it comes; ends when the file is gone."""
    while True:
        try:
            size = path.stat().st_size
            if size < position:
                position = max(0, position - _cut(path, position - size))
            with path.open("rb") as file:
                file.seek(position)
                data = file.read()
        except FileNotFoundError:
            return
        if data:
            position += len(data)
            yield data
        wait()


def _cut(path: Path, least: int) -> int:
    """How many bytes were taken off the head: as many as its newest older part has."""
    older = path.with_name(f"{path.name}.1")
    return max(older.stat().st_size, least) if older.exists() else least


def _several(word: str, uids: list[str]) -> Problem:
    return Problem(
        code=ErrorCode.BAD_ARGUMENT,
        message=f"{len(uids)} pods have this name",
        field="POD",
        value=word,
        remedy=f"name one by its uid: {', '.join(sorted(uids))}",
    )


def _unknown(directory: PlatformDirectory, word: str) -> Problem:
    services = sorted(path.stem for path in directory.logs.glob(f"*{SUFFIX}"))
    pods = sorted(str(document.get("name")) for _, document in _pods(directory))
    return Problem(
        code=ErrorCode.NOT_FOUND,
        message="there is no service and no pod of this name with a log",
        file=str(directory.root),
        field="SERVICE|POD",
        value=word,
        remedy=f"services: {', '.join(services) or 'none'}; pods: {', '.join(pods[:20]) or 'none'}",
    )
