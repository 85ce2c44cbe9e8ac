"""The packages of the workspace, read as text: their modules, imports and declarations."""

import ast
import functools
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Module:
    """One source file of a package."""

    path: Path
    package_folder: Path
    """The folder that its package lies in."""

    @property
    def place(self) -> str:
        """Its path in the repository."""
        return self.path.relative_to(ROOT).as_posix()

    @property
    def name(self) -> str:
        """The name it is imported by."""
        parts = self.path.relative_to(self.package_folder).with_suffix("").parts
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

    @functools.cached_property
    def text(self) -> str:
        return self.path.read_text(encoding="utf-8")

    @functools.cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text, self.place)

    @functools.cached_property
    def imports(self) -> frozenset[str]:
        """Every module that is imported, anywhere in the file, with what is taken from it."""
        return frozenset(_imports(self.tree))


@dataclass(frozen=True)
class Package:
    """One member of the workspace."""

    folder: Path

    @functools.cached_property
    def project(self) -> dict[str, Any]:
        """Its pyproject.toml."""
        return tomllib.loads((self.folder / "pyproject.toml").read_text(encoding="utf-8"))

    @property
    def name(self) -> str:
        """The name it is installed under."""
        return str(self.project["project"]["name"])

    @property
    def import_name(self) -> str:
        return self.name.replace("-", "_")

    @property
    def source(self) -> Path:
        """The folder of its modules."""
        return self.folder / self.import_name

    @functools.cached_property
    def modules(self) -> tuple[Module, ...]:
        return tuple(Module(path, self.folder) for path in sorted(self.source.rglob("*.py")))


def _imports(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


CONTRACTS = Package(ROOT / "contracts")
SHARED = Package(ROOT / "shared")
SERVICES = tuple(
    Package(path.parent) for path in sorted((ROOT / "services").glob("*/pyproject.toml"))
)
PACKAGES = (CONTRACTS, SHARED, *SERVICES)
MODULES = tuple(module for package in PACKAGES for module in package.modules)
