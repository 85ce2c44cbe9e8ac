"""Defects put back one by one: a test that doesn't notice its defect is worth nothing."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
NO_TEST_FAILED = 0
TESTS_FAILED = 1


class Mutant(NamedTuple):
    """A defect put back: a text that stands exactly once in its module, replaced by another."""

    defect: str
    module: str
    """Path in its package, without `.py`."""
    old: str
    new: str

    def __str__(self) -> str:
        return f"{self.defect}-{Path(self.module).name}"

    @property
    def selector(self) -> str:
        """Part of the names of the defect's tests."""
        return f"{self.defect.lower()}_"

    def places(self, package: Path) -> int:
        """How often its text stands in the module."""
        return self._module(package).read_text().count(self.old)

    def copy_into(self, folder: Path, package: Path) -> None:
        """Put a copy of the package that has the defect into a folder."""
        copied = folder / package.name
        shutil.copytree(package, copied, ignore=shutil.ignore_patterns("__pycache__"))
        module = self._module(copied)
        module.write_text(module.read_text().replace(self.old, self.new))

    def _module(self, package: Path) -> Path:
        return package / f"{self.module}.py"


def is_noticed(mutant: Mutant, package: Path, tests: Iterable[Path], folder: Path) -> bool:
    """Whether one of the defect's own tests in these files fails; `folder` is empty and ours.

    Raises `AssertionError` when there are none, or they can't be run.
    """
    mutant.copy_into(folder, package)
    files = [str(one) for one in tests if mutant.selector in one.read_text()]
    assert files, f"no test is named after {mutant.defect}"
    options = ["-qx", "-p", "no:cacheprovider", "-k", mutant.selector]
    result = subprocess.run(
        [sys.executable, "-m", "pytest", *options, *files],
        env={**os.environ, "PYTHONPATH": str(folder)},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode in (NO_TEST_FAILED, TESTS_FAILED), result.stdout + result.stderr
    return result.returncode == TESTS_FAILED
