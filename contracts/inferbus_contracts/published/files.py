"""The folder that everything published is kept in: the package's only reading and writing.

Invariant: paths are relative to a folder and have forward slashes, whatever the system.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path

import inferbus_contracts

CONTRACTS = Path(inferbus_contracts.__file__).parents[1]
"""The folder of the package in a checkout."""

DEPLOY = CONTRACTS.parent / "deploy"
"""The folder of manifests in a checkout."""

PUBLISHED = ("asyncapi", "golden", "schemas")
"""The folders that stand beside the package there."""

MANIFESTS = ("crds", "rbac")
"""The folders of manifests that are generated."""


def read_published(folder: Path) -> dict[str, bytes]:
    """Every published file below a folder of contracts by path; nothing where there are none."""
    return _read(folder, PUBLISHED)


def read_manifests(folder: Path) -> dict[str, bytes]:
    """Every generated manifest below a folder like `deploy` by path."""
    return _read(folder, MANIFESTS)


def _read(folder: Path, parts: Iterable[str]) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for part in parts
        for path in sorted((folder / part).rglob("*"))
        if path.is_file()
    }


def write_tree(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write files by path below a folder, making folders on the way."""
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def remove(folder: Path, names: list[str]) -> None:
    """Remove files by path below a folder, and the folders that are empty then."""
    for name in names:
        path = folder / name
        path.unlink()
        for parent in path.parents:
            if parent == folder or any(parent.iterdir()):
                break
            parent.rmdir()
