"""Every silence's test fails once the silence is put back."""

from pathlib import Path

import pytest
from status_mutants import MUTANTS

import inferbus_spec_watcher
from tests.support.mutants import Mutant, is_noticed

PACKAGE = Path(inferbus_spec_watcher.__file__).parent
TESTS = Path(__file__).parent


@pytest.mark.parametrize("mutant", MUTANTS, ids=str)
def test_each_mutant_stands_for_one_place(mutant: Mutant) -> None:
    assert mutant.places(PACKAGE) == 1


@pytest.mark.slow
@pytest.mark.parametrize("mutant", MUTANTS, ids=str)
def test_the_tests_of_a_defect_notice_it(mutant: Mutant, tmp_path: Path) -> None:
    assert is_noticed(mutant, PACKAGE, TESTS.glob("test_status_*.py"), tmp_path)
