"""What is checked in says nothing about the place it was made in."""

import re
import subprocess
from pathlib import Path

import pytest

from tests.architecture.packages import ROOT

LOCK = "uv.lock"
PUBLIC_INDEX = {"pypi.org", "files.pythonhosted.org"}
REGISTRIES = {*PUBLIC_INDEX, "registry.npmjs.org"}
WORKPLACE = re.compile(r"(?<![\w./-])/work/")
THIS = Path(__file__)


def checked_in() -> list[Path]:
    try:
        listed = subprocess.run(
            ["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True
        )
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"not a checkout: {error}")
    paths = [ROOT / name for name in listed.stdout.split("\0") if name]
    return [path for path in paths if path.is_file() and path != THIS]


def texts() -> dict[str, str]:
    """Every text that is checked in, by path, apart from this one."""
    return {
        path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8", errors="replace")
        for path in checked_in()
    }


def test_no_file_names_a_registry() -> None:
    named = {
        place
        for place, text in texts().items()
        if place != LOCK and any(host in text for host in REGISTRIES)
    }
    assert named == set()


def test_the_lock_names_the_public_index_alone() -> None:
    hosts = set(re.findall(r"https?://([^/\"]+)", (ROOT / LOCK).read_text(encoding="utf-8")))
    assert hosts <= PUBLIC_INDEX


def test_no_file_names_a_folder_of_somebodys_machine() -> None:
    found = {
        f"{place}:{number}"
        for place, text in texts().items()
        for number, line in enumerate(text.splitlines(), start=1)
        if WORKPLACE.search(line)
    }
    assert found == set()
