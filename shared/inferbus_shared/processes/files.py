"""Small JSON files that are either there as a whole or not at all.

Identity files, exit records and allocations are read by processes that did not write them, often
right after their writer was killed. Invariant: a reader sees the old content or the new, never a
part of either.
"""

import json
import os
import tempfile
from pathlib import Path
from typing import Any

from inferbus_contracts.canonical import canonical_json

PRIVATE_MODE = 0o600


def write_json(path: Path, value: Any, *, mode: int = PRIVATE_MODE, durable: bool = True) -> None:
    """Replace the file at `path` by the canonical JSON of `value`, atomically.

    With `durable` the content is on disk before the name is. A file that only matters while the
    processes it speaks of run can do without: they don't outlive the machine either. Raises
    OSError.
    """
    descriptor, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            os.fchmod(file.fileno(), mode)
            file.write(canonical_json(value) + b"\n")
            file.flush()
            if durable:
                os.fsync(file.fileno())
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def read_json(path: Path) -> dict[str, Any] | None:
    """The JSON object at `path`; None when there is no file, or no JSON object in it.

    A file that a power cut emptied is the same as none: what it spoke of is gone too.
    """
    try:
        value = json.loads(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError, json.JSONDecodeError, UnicodeDecodeError):
        return None
    return value if isinstance(value, dict) else None
