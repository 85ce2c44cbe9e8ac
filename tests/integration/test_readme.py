"""The table of traps names tests that exist."""

import re
from pathlib import Path

FOLDER = Path(__file__).parent
ROW = re.compile(r"^\| .+ \| (\w+) \| `(test_\w+)` \|$")


def test_every_test_that_the_table_names_exists() -> None:
    lines = (FOLDER / "README.md").read_text().splitlines()
    rows = [match for line in lines if (match := ROW.match(line))]
    assert len(rows) == sum("`test_" in line and line.startswith("|") for line in lines)
    lost = [
        f"{file}: {test}"
        for file, test in (row.groups() for row in rows)
        if f"def {test}(" not in (FOLDER / f"test_{file}.py").read_text()
    ]
    assert rows
    assert not lost
