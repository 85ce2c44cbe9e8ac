"""Every defect's test fails once the defect is put back."""

from pathlib import Path

import pytest

import inferbus_autoscaler
import inferbus_contracts
from services.autoscaler.tests.autoscaler_mutants import CONTRACT_MUTANTS, MUTANTS
from tests.support.mutants import Mutant, is_noticed

OWN = Path(inferbus_autoscaler.__file__).parent
SHARED = Path(inferbus_contracts.__file__).parent
TESTS = Path(__file__).parent


EACH = pytest.mark.parametrize(
    ("mutant", "package"),
    [*((one, OWN) for one in MUTANTS), *((one, SHARED) for one in CONTRACT_MUTANTS)],
    ids=lambda part: part.name if isinstance(part, Path) else str(part),
)


@EACH
def test_each_mutant_stands_for_one_place(mutant: Mutant, package: Path) -> None:
    assert mutant.places(package) == 1


@pytest.mark.slow
@EACH
def test_the_tests_of_a_defect_notice_it(mutant: Mutant, package: Path, tmp_path: Path) -> None:
    assert is_noticed(mutant, package, TESTS.glob("test_*.py"), tmp_path)
