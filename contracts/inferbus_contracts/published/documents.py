"""Everything that is generated, as the files it is checked in as. Pure.

Invariant: the same code gives the same bytes: keys are sorted, text is UTF-8, lines end in `\\n`.
"""

import json
from collections.abc import Mapping
from typing import Any

from inferbus_contracts.published.asyncapi import asyncapi_documents
from inferbus_contracts.published.difference import first_difference
from inferbus_contracts.published.schemas import published_schemas

SCHEMAS = "schemas/"
ASYNCAPI = "asyncapi/"
RELEASED = f"{SCHEMAS}released/"
"""Frozen, never generated."""

REMEDY = "run `python -m inferbus_contracts.generate`"


def generated_files() -> dict[str, bytes]:
    """Every generated file by its path in the folder of contracts."""
    schemas = {f"{SCHEMAS}{path}": document for path, document in published_schemas().items()}
    documents = {f"{ASYNCAPI}{path}": document for path, document in asyncapi_documents().items()}
    return {path: as_text(document) for path, document in (schemas | documents).items()}


def as_text(document: Mapping[str, Any]) -> bytes:
    """A generated document as it is checked in."""
    text = json.dumps(document, indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False)
    return f"{text}\n".encode()


def is_generated(path: str) -> bool:
    """Whether a file in the folder of contracts is the generator's."""
    return path.startswith((SCHEMAS, ASYNCAPI)) and not path.startswith(RELEASED)


def stale_files(checked_in: Mapping[str, bytes], generated: Mapping[str, bytes]) -> list[str]:
    """Where the checked-in files are not what the code says, one line each with what to do."""
    found = []
    for path in sorted({*generated, *filter(is_generated, checked_in)}):
        if path not in generated:
            found.append(f"{path}: nothing in the code stands behind it; {REMEDY}")
        elif path not in checked_in:
            found.append(f"{path}: is missing; {REMEDY}")
        elif checked_in[path] != generated[path]:
            told = _difference(checked_in[path], generated[path])
            found.append(f"{path}: {told}; {REMEDY}")
    return found


def _difference(checked_in: bytes, generated: bytes) -> str:
    try:
        old = json.loads(checked_in)
    except ValueError as error:
        return f"is no JSON: {error}"
    return first_difference(old, json.loads(generated)) or "is written in another form"
