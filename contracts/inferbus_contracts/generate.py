"""`python -m inferbus_contracts.generate`: schemas, AsyncAPI documents and manifests from the code.

Afterwards the checked-in files are exactly what the code says; releases and golden documents are
left alone.
"""

import sys
from collections.abc import Mapping
from pathlib import Path

from inferbus_contracts.manifests.files import generated_manifests, is_generated_manifest
from inferbus_contracts.published.command import run_command
from inferbus_contracts.published.documents import generated_files, is_generated
from inferbus_contracts.published.files import (
    CONTRACTS,
    DEPLOY,
    read_manifests,
    read_published,
    remove,
    write_tree,
)


def generate(folder: Path) -> str:
    """Bring the files in a folder of contracts up to date; returns what was done, in words."""
    checked_in, generated = read_published(folder), generated_files()
    known = {path: data for path, data in checked_in.items() if is_generated(path)}
    return _brought_up_to_date(folder, known, generated)


def generate_manifests(folder: Path) -> str:
    """Bring the manifests in a folder like `deploy` up to date; returns what was done, in words."""
    checked_in = read_manifests(folder)
    known = {path: data for path, data in checked_in.items() if is_generated_manifest(path)}
    return _brought_up_to_date(folder, known, generated_manifests())


def _brought_up_to_date(
    folder: Path, known: Mapping[str, bytes], generated: Mapping[str, bytes]
) -> str:
    stale = [path for path in known if path not in generated]
    new = {path: data for path, data in generated.items() if known.get(path) != data}
    write_tree(folder, new)
    remove(folder, stale)
    return f"{len(new)} written, {len(stale)} removed, {len(generated)} in all"


def _generate_all() -> str:
    return f"contracts: {generate(CONTRACTS)}\nmanifests: {generate_manifests(DEPLOY)}"


if __name__ == "__main__":
    sys.exit(run_command(_generate_all))
