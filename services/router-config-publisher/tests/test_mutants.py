"""Every defect's test fails once the defect is put back."""

from pathlib import Path

import pytest
from publisher_mutants import MUTANTS

import inferbus_router_config_publisher
from tests.support.mutants import Mutant, is_noticed

OWN = Path(inferbus_router_config_publisher.__file__).parent
TESTS = Path(__file__).parent

EACH = pytest.mark.parametrize("mutant", MUTANTS, ids=str)


@EACH
def test_each_mutant_stands_for_one_place(mutant: Mutant) -> None:
    assert mutant.places(OWN) == 1


@pytest.mark.slow
@EACH
def test_the_tests_of_a_defect_notice_it(mutant: Mutant, tmp_path: Path) -> None:
    assert is_noticed(mutant, OWN, TESTS.glob("test_*.py"), tmp_path)
