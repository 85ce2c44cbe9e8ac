"""Rules about the world are pure: what they need is passed in, so that a decision can be replayed.

Pure are `core.py`, `policy_*.py` and the contracts, apart from the contracts' commands.
"""

import ast
from collections.abc import Iterator

import pytest

from tests.architecture.packages import CONTRACTS, PACKAGES, SERVICES, Module

COMMANDS = {
    "contracts/inferbus_contracts/add_golden.py",
    "contracts/inferbus_contracts/check.py",
    "contracts/inferbus_contracts/generate.py",
    "contracts/inferbus_contracts/rbac.py",
    "contracts/inferbus_contracts/release.py",
    "contracts/inferbus_contracts/published/command.py",
    "contracts/inferbus_contracts/published/files.py",
}
"""What reads and writes the folder of contracts, and tells people so."""

IMPURE = {
    "aiohttp",
    "asyncio",
    "concurrent",
    "faststream",
    "httpx2",
    "kubernetes_asyncio",
    "logging",
    "multiprocessing",
    "nats",
    "prometheus_client",
    "pydantic_settings",
    "random",
    "secrets",
    "select",
    "selectors",
    "signal",
    "socket",
    "subprocess",
    "tempfile",
    "threading",
    "time",
    "uvloop",
}
"""Clocks, chance, clients, concurrency, logs and the system."""

VALUES_BESIDE_SHELLS = {
    "inferbus_shared.objects.picture": "StoredObject and controller_uid are values",
    "inferbus_shared.bus.messages": "Received is a value",
}
"""Modules of shells that pure ones may import for the sake of a value in them."""

CLOCKS_AND_CHANCE = {"now", "utcnow", "today", "uuid1", "uuid4", "monotonic", "perf_counter"}
FILES = {"exists", "is_dir", "is_file", "iterdir", "mkdir", "read_bytes", "read_text", "rglob"}
FILES |= {"stat", "touch", "unlink", "write_bytes", "write_text"}
PURE_PARTS_OF_OS = {"path", "fsdecode", "fsencode", "PathLike"}

PURE = [
    *(module for module in CONTRACTS.modules if module.place not in COMMANDS),
    *(
        module
        for package in SERVICES
        for module in package.modules
        if module.path.name == "core.py" or module.path.name.startswith("policy_")
    ),
]
MODULES = {module.name: module for package in PACKAGES for module in package.modules}
EACH = pytest.mark.parametrize("module", PURE, ids=lambda module: module.place)


def test_there_is_something_to_check() -> None:
    assert len(PURE) > len(CONTRACTS.modules)
    assert {module.place for module in MODULES.values()} >= COMMANDS


@EACH
def test_it_imports_nothing_that_acts(module: Module) -> None:
    assert sorted(_impure(module)) == []


@EACH
def test_what_it_imports_of_ours_is_pure_too(module: Module) -> None:
    assert list(_reached(module, set())) == []


@EACH
def test_it_asks_no_clock_no_chance_and_no_file(module: Module) -> None:
    assert list(_acts(module.tree)) == []


@pytest.mark.parametrize(
    ("code", "acts"),
    [
        ("datetime.now(UTC)", True),
        ("uuid.uuid4()", True),
        ("uuid.uuid5(a, b)", False),
        ("open('a')", True),
        ("path.read_text()", True),
        ("os.environ", True),
        ("os.path.normpath(a)", False),
        ("outcome.now.scan", False),
    ],
)
def test_what_acts_is_seen(code: str, acts: bool) -> None:
    assert bool(list(_acts(ast.parse(code)))) is acts


def _impure(module: Module) -> set[str]:
    return {name.split(".")[0] for name in module.imports} & IMPURE


def _reached(module: Module, seen: set[str]) -> Iterator[str]:
    for name in sorted(module.imports - seen):
        if name not in MODULES or name in VALUES_BESIDE_SHELLS:
            continue
        seen.add(name)
        for what in sorted(_impure(MODULES[name])):
            yield f"{module.name} imports {name}, which imports {what}"
        yield from _reached(MODULES[name], seen)


def _acts(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _called(node.func):
            yield f"line {node.lineno}: {ast.unparse(node)}"
        if (
            isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and node.value.id == "os"
            and node.attr not in PURE_PARTS_OF_OS
        ):
            yield f"line {node.lineno}: {ast.unparse(node)}"


def _called(function: ast.expr) -> bool:
    if isinstance(function, ast.Attribute):
        return function.attr in CLOCKS_AND_CHANCE | FILES
    return isinstance(function, ast.Name) and function.id in {"open", "print", "input"}
