"""Every defect's test fails once the defect is put back."""

from pathlib import Path

import pytest

from services.optimizer.tests.optimizer_mutants import MUTANTS
from tests.support.mutants import Mutant, is_noticed

NAMES = [str(mutant) for _, mutant in MUTANTS]
TESTS = Path(__file__).parent


@pytest.mark.parametrize(("package", "mutant"), MUTANTS, ids=NAMES)
def test_each_mutant_stands_for_one_place(package: Path, mutant: Mutant) -> None:
    assert mutant.places(package) == 1


@pytest.mark.slow
@pytest.mark.parametrize(("package", "mutant"), MUTANTS, ids=NAMES)
def test_the_tests_of_a_defect_notice_it(package: Path, mutant: Mutant, tmp_path: Path) -> None:
    assert is_noticed(mutant, package, TESTS.glob("test_*.py"), tmp_path)
