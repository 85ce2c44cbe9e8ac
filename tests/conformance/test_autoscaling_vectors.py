"""The reference's vectors, and the runner that checks them."""

import json
from pathlib import Path

import pytest

from tests.conformance.autoscaling import OPS, cases, failure, main, quantity

VECTORS = Path(__file__).resolve().parents[3] / "shared" / "vectors" / "autoscaling.jsonl"


@pytest.mark.parametrize("op", OPS)
def test_every_vector_passes(op: str) -> None:
    if not VECTORS.is_file():
        pytest.skip(f"the reference's vectors are not at {VECTORS}")
    chosen = [case for case in cases([str(VECTORS)]) if case["op"] == op]
    wrong = {case["id"]: failure(case) for case in chosen if failure(case)}
    assert chosen
    assert wrong == {}


WINDOW: dict[str, object] = {
    "id": "window",
    "op": "rate_window",
    "input": {
        "kind": "max",
        "windowMs": 10_000,
        "events": [{"tMs": 1, "append": 7}, {"tMs": 2, "query": 3}],
    },
    "expect": [None, 7],
}


def run(tmp_path: Path, *given: dict[str, object]) -> int:
    file = tmp_path / "cases.jsonl"
    file.write_text("\n".join(json.dumps(case) for case in given) + "\n\n")
    return main([str(file)])


def test_the_runner_counts_what_passed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path, WINDOW, WINDOW) == 0
    assert capsys.readouterr().out == "2 passed, 0 failed\n"


def test_the_runner_shows_what_failed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path, WINDOW, WINDOW | {"id": "other", "expect": [None, 8]}) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "other (rate_window): expected [null, 8]"
    assert lines[1].strip() == "got [null, 7]"
    assert lines[-1] == "1 passed, 1 failed"


def test_an_unknown_op_is_a_failure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path, WINDOW | {"op": "guess"}) == 1
    assert "no rule for op 'guess'" in capsys.readouterr().out


def allocation(*blocks: tuple[str, int, int]) -> dict[str, object]:
    params = [
        {"name": "a", "cost": 0, "min": 0, "max": 3},
        {"name": "b", "cost": 5, "min": 0, "max": 1},
    ]
    expected = [
        {"target": target, "replicas": replicas, "sortCost": cost}
        for target, replicas, cost in blocks
    ]
    return {
        "id": "allocation",
        "op": "optimizer_allocate",
        "input": {"params": params, "costExpansionRatePercent": 200, "totals": [4]},
        "expect": {"blocks": expected, "allocations": [[3, 1]]},
    }


def test_equal_blocks_of_one_target_may_stand_in_any_order() -> None:
    assert failure(allocation(("a", 1, 0), ("a", 2, 0), ("b", 1, 5))) is None
    assert failure(allocation(("a", 2, 0), ("a", 1, 0), ("b", 1, 5))) is None


def test_other_blocks_may_not() -> None:
    assert failure(allocation(("b", 1, 5), ("a", 1, 0), ("a", 2, 0))) is not None
    assert failure(allocation(("a", 3, 0), ("b", 1, 5))) is not None


@pytest.mark.parametrize(
    ("text", "value"), [("500m", 0.5), ("10", 10.0), ("1.5", 1.5), ("2k", 2000.0), ("1Ki", 1024.0)]
)
def test_quantities(text: str, value: float) -> None:
    assert quantity(text) == value


def test_a_text_that_is_no_quantity() -> None:
    with pytest.raises(ValueError, match="no quantity"):
        quantity("ten")
