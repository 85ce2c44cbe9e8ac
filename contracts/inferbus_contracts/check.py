"""`python -m inferbus_contracts.check`: whether what is checked in is true, whole and compatible.

Writes nothing. Exits with 1, and a line for each fault, when schemas or AsyncAPI documents aren't
what the code says, a document doesn't hold together, a golden document is no longer read as it was
written, the schemas break readers or writers of the last release, or a manifest isn't what the code
says or is one that Kubernetes refuses.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from inferbus_contracts.errors import ErrorCode, Problem, ProblemsError
from inferbus_contracts.manifests.files import schema_faults, stale_manifests
from inferbus_contracts.published.command import run_command
from inferbus_contracts.published.files import CONTRACTS, DEPLOY, read_manifests, read_published
from inferbus_contracts.published.releases import last_release
from inferbus_contracts.published.review import faults, faults_since_release


def check(folder: Path) -> str:
    """Tell that all is well; raises `ProblemsError` with every fault."""
    checked_in = read_published(folder)
    release = last_release(checked_in)
    found = [*faults(checked_in), *faults_since_release(checked_in)]
    if release is None:
        found.append(
            "schemas/released: there is no release; `python -m inferbus_contracts.release`"
        )
    _raise_for(found)
    version = release.version if release else ""
    return f"{len(checked_in)} files are current, whole and compatible with {version}"


def check_manifests(folder: Path) -> str:
    """Tell that the manifests in a folder like `deploy` are current; raises `ProblemsError`."""
    checked_in = read_manifests(folder)
    _raise_for([*stale_manifests(checked_in), *schema_faults()])
    return f"{len(checked_in)} manifests are current, and structural"


def _raise_for(found: Sequence[str]) -> None:
    if found:
        raise ProblemsError(*(Problem(code=ErrorCode.RULE_BROKEN, message=text) for text in found))


def _check_all() -> str:
    return f"{check(CONTRACTS)}\n{check_manifests(DEPLOY)}"


if __name__ == "__main__":
    sys.exit(run_command(_check_all))
