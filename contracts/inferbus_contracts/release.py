"""`python -m inferbus_contracts.release <version>`: freezes the contracts as they are given out.

Refuses while the check finds anything, so that a release is what the code of its version says.
"""

import argparse
import sys
from pathlib import Path

from inferbus_contracts.errors import ErrorCode, Problem, ProblemsError
from inferbus_contracts.published.command import run_command
from inferbus_contracts.published.files import CONTRACTS, read_published, write_tree
from inferbus_contracts.published.releases import release_files
from inferbus_contracts.published.review import faults, faults_since_release


def release(folder: Path, version: str) -> str:
    """Write the release and tell so; raises `ProblemsError` when there can be none."""
    checked_in = read_published(folder)
    found = [*faults(checked_in), *faults_since_release(checked_in)]
    if found:
        raise ProblemsError(*(Problem(code=ErrorCode.RULE_BROKEN, message=text) for text in found))
    try:
        files = release_files(checked_in, version)
    except ValueError as error:
        raise ProblemsError(
            Problem(
                code=ErrorCode.BAD_ARGUMENT,
                message=str(error),
                value=version,
                remedy="give a version that is newer than every release",
            )
        ) from None
    write_tree(folder, files)
    return f"{version}: {len(files)} files frozen"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Freeze the contracts as they are given out.")
    parser.add_argument("version", help="numbers with dots between, e.g. 0.1.0")
    arguments = parser.parse_args()
    sys.exit(run_command(lambda: release(CONTRACTS, arguments.version)))
