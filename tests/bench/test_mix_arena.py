"""The optimizer before a referee: right answers, in its form, timed around the solver alone."""

import json
from pathlib import Path

import pytest

from tests.bench.arena import mix
from tests.bench.mix_arena import answers, main

EXAMPLE_8 = {
    "id": 8,
    "types": [
        {"name": "h100", "cost": 100, "capacity": 4, "min": 0, "max": 4},
        {"name": "a100", "cost": 60, "capacity": 1, "min": 1, "max": 8},
    ],
    "demand": 8,
    "optimum": 260.0,
}
"""Autoscaling spec 3.4, where the block order costs 480 or 640."""


def test_as_ex8_is_answered_at_the_optimum() -> None:
    assert mix()(EXAMPLE_8) == [2, 1]


def test_a_demand_that_no_mix_serves_is_refused() -> None:
    with pytest.raises(ValueError, match="mix 8 cannot serve 99"):
        mix()(EXAMPLE_8 | {"demand": 99})


def test_only_the_solve_is_timed() -> None:
    readings = iter([1_000_000_000, 1_500_000_000, 7_000_000_000, 7_000_000_001])
    lines = [json.dumps(EXAMPLE_8), json.dumps(EXAMPLE_8 | {"id": 9})]
    told = list(answers(lines, lambda: next(readings)))
    assert [(answer["id"], answer["seconds"]) for answer in told] == [(8, 0.5), (9, 1e-9)]


def test_a_file_of_mixes_becomes_a_line_each(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mixes = tmp_path / "mixes.jsonl"
    mixes.write_text(json.dumps(EXAMPLE_8) + "\n" + json.dumps(EXAMPLE_8 | {"id": 9}) + "\n")
    assert main([str(mixes)]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(line["id"], line["replicas"]) for line in lines] == [(8, [2, 1]), (9, [2, 1])]
