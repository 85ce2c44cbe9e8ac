"""The compiled engine and clients that the router is measured with.

Built once per change of their sources, into the user's cache. Invariant: what measures takes a
small part of what is measured, so that both C programs fit on one processor beside a proxy's.
"""

import contextlib
import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

_SOURCES = Path(__file__).parent
_PORTS = 4
_FLAGS = ("-O2", "-std=gnu11")


class MissingToolError(Exception):
    """Something that a measurement needs isn't on this machine; says what."""


def cache_folder(name: str) -> Path:
    """A folder of the user's cache."""
    root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = root / "inferbus" / name
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def built(name: str) -> Path:
    """The program compiled from `<name>.c`; raises `MissingToolError` without a C compiler."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        raise MissingToolError("no C compiler (cc, gcc or clang) is on the path")
    sources = (_SOURCES / "http.h", _SOURCES / f"{name}.c")
    recipe = b"".join(source.read_bytes() for source in sources) + " ".join(_FLAGS).encode()
    program = cache_folder("bench-programs") / f"{name}-{hashlib.sha256(recipe).hexdigest()[:16]}"
    if not program.exists():
        side = program.with_suffix(f".{os.getpid()}")
        subprocess.run([compiler, *_FLAGS, "-o", side, sources[1]], check=True)
        side.rename(program)
    return program


@contextlib.contextmanager
def engine(pace_ms: int, chunks: int, cpu: int | None) -> Iterator[tuple[int, ...]]:
    """Engines that take no time, in one process; gives their ports.

    A stream is `chunks` events, `pace_ms` apart, then one of usage and `[DONE]`.
    """
    command = pinned([str(built("engine")), str(_PORTS), str(pace_ms), str(chunks)], cpu)
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield tuple(int(port) for port in process.stdout.readline().split())
    finally:
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                stream.close()


@dataclass(frozen=True, kw_only=True)
class Load:
    """What clients saw; only whole answers with status 200 count as requests."""

    requests: int
    errors: int
    events: int
    """Server-sent events of all streams."""
    seconds: float
    p50_us: float
    p99_us: float
    max_us: float

    @property
    def rate(self) -> float:
        """Requests per second."""
        return self.requests / self.seconds


def load_command(
    port: int,
    bodies: Path,
    *,
    connections: int,
    seconds: float,
    rate: int = 0,
    requests: int = 0,
    cpu: int | None,
) -> Sequence[str]:
    """How the clients are started: see `load.c`."""
    words = (port, connections, seconds, rate, requests, bodies)
    return pinned([str(built("load")), *map(str, words)], cpu)


def load_of(output: bytes) -> Load:
    """What the clients printed."""
    return Load(**json.loads(output))


def pinned(command: Sequence[str], cpu: int | None) -> list[str]:
    """The command, kept on one processor; None: on any."""
    if cpu is None:
        return list(command)
    tool = shutil.which("taskset")
    if tool is None:
        raise MissingToolError("taskset (util-linux) is not on the path")
    return [tool, "--cpu-list", str(cpu), *command]


def processors() -> tuple[int | None, int | None]:
    """One for what is measured and one for what measures; (None, None) where there is only one."""
    usable = sorted(os.sched_getaffinity(0))
    return (usable[0], usable[1]) if len(usable) > 1 else (None, None)
