"""What the figures were measured on, as far as it changes them."""

import os
import platform
from importlib.util import cache_from_source
from pathlib import Path

import pydantic

from tests.bench.figure import Detail

REPOSITORY = Path(__file__).parents[2]


def machine() -> dict[str, Detail]:
    """Cores, memory, versions, what else runs, and what of the code is compiled."""
    return {
        "cores": len(os.sched_getaffinity(0)),
        "processor": _line(Path("/proc/cpuinfo"), "model name") or platform.machine(),
        "memory_mib": _kib(_line(Path("/proc/meminfo"), "MemTotal")) // 1024,
        "free_memory_mib": _kib(_line(Path("/proc/meminfo"), "MemAvailable")) // 1024,
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "load_average": round(os.getloadavg()[0], 2),
        "own_code_compiled": compiled(REPOSITORY, ("contracts", "shared", "services")),
        "libraries_compiled": compiled(Path(pydantic.__file__).parents[1], ("pydantic", "nats")),
        "page_cache": "as it was found",
    }


def compiled(root: Path, folders: tuple[str, ...]) -> str:
    """How many of the modules have bytecode on disk that is as new as they are."""
    modules = [
        path
        for folder in folders
        for path in (root / folder).rglob("*.py")
        if "tests" not in path.relative_to(root).parts
    ]
    return f"{sum(map(_is_compiled, modules))} of {len(modules)} modules"


def _is_compiled(module: Path) -> bool:
    bytecode = Path(cache_from_source(str(module)))
    return bytecode.exists() and bytecode.stat().st_mtime >= module.stat().st_mtime


def _line(path: Path, name: str) -> str:
    for line in path.read_text().splitlines():
        key, _, value = line.partition(":")
        if key.strip() == name:
            return value.strip()
    return ""


def _kib(text: str) -> int:
    return int(text.split()[0]) if text else 0
