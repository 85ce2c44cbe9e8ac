"""A module is about one thing, says why it exists, and is short enough to be read at once."""

import ast

import pytest

from tests.architecture.packages import MODULES, Module

MAX_LINES = 300
LONGER = {
    "contracts/inferbus_contracts/topology.py": "one table, and what derives from it",
    "contracts/inferbus_contracts/scaling_intents.py": "one reading of three resource kinds",
}
EACH = pytest.mark.parametrize("module", MODULES, ids=lambda module: module.place)


@EACH
def test_it_is_short(module: Module) -> None:
    if module.place not in LONGER:
        assert module.text.count("\n") <= MAX_LINES


def test_only_what_is_longer_is_excused() -> None:
    lines = {module.place: module.text.count("\n") for module in MODULES}
    assert {place for place in LONGER if lines[place] <= MAX_LINES} == set()


@EACH
def test_it_begins_with_why_it_exists(module: Module) -> None:
    assert (ast.get_docstring(module.tree) or "").strip()
