"""Every numbered case and defect of the ModelServing specification is put to the test on a server.

| numbers | on the fake and on a real server |
|---|---|
| T1 to T73, T79 to T87 | `test_modelserving_cases`: the planner's tests over an API server |
| T37, T47, T48, T50, T54, T55, T57 | `test_modelserving_servers` too |
| T56, T66 | `test_reconciler_passes` too |
| T74 to T78 | `numbered_admission`, in `test_modelserving_servers` and `test_definitions` |

T74 to T78 are the server's admission; the fake knows no CEL. What a server admits and the rules of
the contracts refuse becomes a condition (`test_spec_watcher_refusals`).

A defect of severity H or M has a test under its number and a mutant that brings it back
(`workload_mutants`). Where two results are given it is the target behaviour that holds: T63 with
MS_D6 mended, T42 and T83 with MS_D22, T84, T85 and T87.
"""

import ast
from pathlib import Path

import pytest
from workload_mutants import MUTANTS

from tests.kube.numbered_admission import ACCEPTED_BY_NUMBER, REFUSED_BY_NUMBER
from tests.support.planner_cases import PLANNER_TESTS, numbers, numbers_of, planner_tests

HERE = Path(__file__).parent
ADMISSION = {f"T{number}" for number in range(74, 79)}
CASES = {f"T{number}" for number in range(1, 88)} - ADMISSION
SLIGHT = {30, 31, 32, 39, 43, 46}
"""Defects of severity L."""
GRAVE = {f"D{number}" for number in range(1, 48) if number not in SLIGHT}
WITHOUT_A_WORLD = {"D36", "D44"}
"""What a server refuses is told (`test_reconciler_passes`); two instances (`test_memory_store`)."""


@pytest.fixture(scope="module")
def over_a_server() -> set[str]:
    """Numbers of the tests that run on both servers."""
    return {number for test in planner_tests() for number in numbers_of(test)}


def named(*files: Path) -> set[str]:
    """Numbers in the names of tests and in the texts of modules."""
    found: set[str] = set()
    for path in files:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                found |= numbers(node.name)
    return found


def test_every_case_runs_on_both_servers(over_a_server: set[str]) -> None:
    assert sorted(CASES - over_a_server) == []


def test_every_case_of_admission_is_put_to_a_server() -> None:
    tables = (*REFUSED_BY_NUMBER, *ACCEPTED_BY_NUMBER)
    assert sorted(ADMISSION - {str(case[0]).split()[0] for case in tables}) == []


def test_every_grave_defect_is_tested_over_a_server(over_a_server: set[str]) -> None:
    assert sorted(GRAVE - over_a_server - WITHOUT_A_WORLD) == []
    assert named(*HERE.glob("test_*.py"), *PLANNER_TESTS.glob("test_*.py")) >= WITHOUT_A_WORLD


def test_every_grave_defect_is_brought_back_by_a_mutant() -> None:
    mutated = {number for mutant in MUTANTS for number in numbers(mutant.defect)}
    assert sorted(GRAVE - mutated) == []
