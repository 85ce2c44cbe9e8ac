"""Every defect's test fails once the defect is put back."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from expansion_mutants import MUTANTS, Mutant

import inferbus_spec_watcher

PACKAGE = Path(inferbus_spec_watcher.__file__).parent
TESTS = Path(__file__).parent


def module_of(mutant: Mutant, package: Path) -> Path:
    return package / f"{mutant.module}.py"


def label(mutant: Mutant) -> str:
    return f"{mutant.defect}-{Path(mutant.module).name}"


@pytest.mark.parametrize("mutant", MUTANTS, ids=label)
def test_each_mutant_stands_for_one_place(mutant: Mutant) -> None:
    assert module_of(mutant, PACKAGE).read_text().count(mutant.old) == 1


@pytest.mark.slow
@pytest.mark.parametrize("mutant", MUTANTS, ids=label)
def test_the_tests_of_a_defect_notice_it(mutant: Mutant, tmp_path: Path) -> None:
    copied = tmp_path / PACKAGE.name
    shutil.copytree(PACKAGE, copied, ignore=shutil.ignore_patterns("__pycache__"))
    module = module_of(mutant, copied)
    module.write_text(module.read_text().replace(mutant.old, mutant.new))
    files = [
        str(one) for one in TESTS.glob("test_expand_*.py") if mutant.selector in one.read_text()
    ]
    options = ["-qx", "-p", "no:cacheprovider", "-k", mutant.selector]
    result = subprocess.run(
        [sys.executable, "-m", "pytest", *options, *files],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        cwd=TESTS.parents[2],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "failed" in result.stdout, result.stdout + result.stderr
