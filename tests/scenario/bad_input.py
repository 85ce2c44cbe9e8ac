"""What every refusal has, whichever command it comes from, checked in one place.

A refusal is an exit code that isn't 0 and one line of its own for each thing that is wrong: the
place, the fault, the value, the remedy, the code. Never a traceback.
"""

import re
import subprocess
from pathlib import Path

from tests.support.platform import Platform

LINE = re.compile(r"error: (?P<said>.+); (?P<remedy>.+) \[(?P<code>IB-\d{4})\]")
BAD_INPUT = 2
NO_PLATFORM = 3


def refusal(
    result: subprocess.CompletedProcess[str], *parts: str, code: str, exit_code: int = BAD_INPUT
) -> str:
    """The one line of a refused command, which holds all `parts`; fails where it wasn't refused."""
    (line,) = refusals(result, exit_code=exit_code)
    found = LINE.fullmatch(line)
    assert found is not None, f"not a fault, a remedy and a code: {line}"
    assert found["code"] == code, line
    for part in parts:
        assert part in line, f"{part!r} isn't said in: {line}"
    return line


def refusals(result: subprocess.CompletedProcess[str], *, exit_code: int = BAD_INPUT) -> list[str]:
    """The lines of a refused command."""
    said = f"{result.returncode}\n{result.stdout}\n{result.stderr}"
    assert result.returncode == exit_code, said
    assert "Traceback" not in result.stderr, said
    return [line for line in result.stderr.splitlines() if line.startswith("error: ")]


def refused_apply(
    platform: Platform, path: Path | str, *parts: str, code: str, exit_code: int = BAD_INPUT
) -> str:
    """What `inferbus apply` says of a file or folder that it refuses."""
    result = platform.inferbus("apply", "-f", str(path), check=False)
    assert result.stdout == "", "nothing was applied"
    return refusal(result, *parts, code=code, exit_code=exit_code)
