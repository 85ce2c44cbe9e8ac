"""Every defect's test fails once the defect is put back."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from workload_mutants import MUTANTS, Mutant

import inferbus_workload_reconciler

PACKAGE = Path(inferbus_workload_reconciler.__file__).parent
TESTS = Path(__file__).parent


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda one: f"MS_{one.defect}-{one.module}")
def test_each_mutant_stands_for_one_place(mutant: Mutant) -> None:
    source = (PACKAGE / f"{mutant.module}.py").read_text()
    assert source.count(mutant.old) == 1


@pytest.mark.slow
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda one: f"MS_{one.defect}-{one.module}")
def test_the_tests_of_a_defect_notice_it(mutant: Mutant, tmp_path: Path) -> None:
    copied = tmp_path / PACKAGE.name
    shutil.copytree(PACKAGE, copied, ignore=shutil.ignore_patterns("__pycache__"))
    module = copied / f"{mutant.module}.py"
    module.write_text(module.read_text().replace(mutant.old, mutant.new))
    options = ["-q", "-x", "-p", "no:cacheprovider", "-k", mutant.selector]
    files = [str(one) for one in TESTS.glob("test_*.py") if mutant.selector in one.read_text()]
    command = [sys.executable, "-m", "pytest", *options, *files]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    result = subprocess.run(
        command, env=environment, cwd=TESTS.parents[2], capture_output=True, text=True, check=False
    )
    assert result.returncode == 1, result.stdout + result.stderr
    assert "failed" in result.stdout
