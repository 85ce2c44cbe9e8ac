"""The planner's tests that state a case of the modelserving specification by its number.

A case is T1 to T87 of section 6, or defect D1 to D47 of section 7; a test bears its number in its
name (`ms_t07`, `ms_d3`) or in the id of one of its parameters (`MS_T07`). The folder of these tests
has to be on the module path (`tests/kube/conftest.py`).
"""

import importlib
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, Final

PLANNER_TESTS: Final = Path(__file__).parents[2] / "services" / "workload-reconciler" / "tests"
_NUMBER: Final = re.compile(r"ms_([td])0*(\d+)", re.IGNORECASE)


def numbers(text: str) -> set[str]:
    """The cases named in a text, as `T7` or `D3`."""
    return {f"{letter.upper()}{number}" for letter, number in _NUMBER.findall(text)}


def numbers_of(test: Callable[..., Any]) -> set[str]:
    """The cases that a test is about."""
    found = numbers(test.__name__)
    for mark in getattr(test, "pytestmark", ()):
        if mark.name == "parametrize":
            for value in mark.args[1]:
                found |= numbers(str(getattr(value, "id", "")))
    return found


def planner_tests() -> Iterator[Callable[..., Any]]:
    """The tests of the planner with a number that use a world, in order."""
    for path in sorted(PLANNER_TESTS.glob("test_*.py")):
        module = importlib.import_module(path.stem)
        for name, one in vars(module).items():
            is_own = getattr(one, "__module__", "") == module.__name__
            if name.startswith("test_") and is_own and numbers_of(one) and uses_world(one, module):
                yield one


def uses_world(test: Callable[..., Any], module: ModuleType) -> bool:
    """Whether a test asks for a world, by itself or through its module's helpers."""
    world = importlib.import_module("workload_world").World
    waiting: list[Any] = [test]
    seen: set[Any] = set()
    while waiting:
        one = waiting.pop()
        if one is world:
            return True
        code = getattr(one, "__code__", None)
        if code is None or one in seen:
            continue
        seen.add(one)
        known = one.__globals__
        waiting += [known[name] for name in _names(code) if name in known]
    return False


def _names(code: Any) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if hasattr(constant, "co_names"):
            yield from _names(constant)
