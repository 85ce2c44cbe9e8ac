"""Every defect's test fails once the defect is put back.

The mutants of all `router_mutants_*.py` beside this file are tried.
"""

from importlib import import_module
from pathlib import Path

import pytest

import inferbus_router
from tests.support.mutants import Mutant, is_noticed

OWN = Path(inferbus_router.__file__).parent
TESTS = Path(__file__).parent


def gathered() -> list[Mutant]:
    """The mutants of all modules, in the order of their names."""
    names = sorted(path.stem for path in TESTS.glob("router_mutants_*.py"))
    modules = [import_module(f"services.router.tests.{name}") for name in names]
    return [mutant for module in modules for mutant in module.MUTANTS]


EACH = pytest.mark.parametrize("mutant", gathered(), ids=str)


@EACH
def test_each_mutant_stands_for_one_place(mutant: Mutant) -> None:
    assert mutant.places(OWN) == 1


@pytest.mark.slow
@EACH
def test_the_tests_of_a_defect_notice_it(mutant: Mutant, tmp_path: Path) -> None:
    assert is_noticed(mutant, OWN, TESTS.glob("test_*.py"), tmp_path)
