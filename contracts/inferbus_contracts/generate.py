"""`python -m inferbus_contracts.generate`: writes schemas and AsyncAPI documents from the code.

Afterwards the checked-in files are exactly what the code says; releases and golden documents are
left alone.
"""

import sys
from pathlib import Path

from inferbus_contracts.published.command import run_command
from inferbus_contracts.published.documents import generated_files, is_generated
from inferbus_contracts.published.files import CONTRACTS, read_published, remove, write_tree


def generate(folder: Path) -> str:
    """Bring the files in a folder of contracts up to date; returns what was done, in words."""
    checked_in, generated = read_published(folder), generated_files()
    stale = [path for path in checked_in if is_generated(path) and path not in generated]
    new = {path: data for path, data in generated.items() if checked_in.get(path) != data}
    write_tree(folder, new)
    remove(folder, stale)
    return f"{len(new)} written, {len(stale)} removed, {len(generated)} in all"


if __name__ == "__main__":
    sys.exit(run_command(lambda: generate(CONTRACTS)))
