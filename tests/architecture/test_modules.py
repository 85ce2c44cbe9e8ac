"""A module is about one thing, says why it exists, and is short enough to be read at once."""

import ast

import pytest

from tests.architecture.packages import MODULES, Module

MAX_LINES = 300
EACH = pytest.mark.parametrize("module", MODULES, ids=lambda module: module.place)


@EACH
def test_it_is_short(module: Module) -> None:
    assert module.text.count("\n") <= MAX_LINES


@EACH
def test_it_begins_with_why_it_exists(module: Module) -> None:
    assert (ast.get_docstring(module.tree) or "").strip()
