"""`compose.yaml`, read and run by the real Docker Compose, which comes as a Python package."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

COMMAND = Path(sys.executable).parent / "docker-compose"
ROOT = Path(__file__).parents[2]
ALL_PROFILES = ("--profile", "*")
COMMAND_SECONDS = 60.0


def compose(
    *arguments: str,
    settings: Mapping[str, str] | None = None,
    folder: Path = ROOT,
    stdin: str | None = None,
    check: bool = True,
    timeout_seconds: float = COMMAND_SECONDS,
) -> subprocess.CompletedProcess[str]:
    """Run Compose in a folder, with no other settings of the platform than these.

    With `check`, a failure fails the test.
    """
    inherited = {name: value for name, value in os.environ.items() if "INFERBUS" not in name}
    result = subprocess.run(
        [COMMAND, *arguments],
        cwd=folder,
        env={**inherited, "DOCKER_BUILDKIT": "0", **(settings or {})},
        input=stdin,
        capture_output=True,
        text=True,
        timeout=timeout_seconds,
        check=False,
    )
    if check and result.returncode != 0:
        said = f"{result.stdout[-4000:]}\n{result.stderr[-4000:]}"
        raise AssertionError(f"compose {' '.join(arguments)}: {result.returncode}\n{said}")
    return result


def configuration(**settings: str) -> dict[str, Any]:
    """What Compose makes of compose.yaml, services of all profiles included."""
    result = compose(*ALL_PROFILES, "config", "--format", "json", settings=settings)
    found: dict[str, Any] = json.loads(result.stdout)
    return found
