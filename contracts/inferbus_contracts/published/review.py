"""Everything that must hold before the contracts are given out. Pure."""

import json
from collections.abc import Mapping

from inferbus_contracts.published.compatibility import breaking_changes
from inferbus_contracts.published.documents import (
    ASYNCAPI,
    generated_files,
    stale_files,
)
from inferbus_contracts.published.golden import golden_faults
from inferbus_contracts.published.releases import GOLDEN, changed_golden, last_release
from inferbus_contracts.published.schemas import Schema, published_schemas
from inferbus_contracts.published.structure import structure_faults

Files = Mapping[str, bytes]


def faults(checked_in: Files) -> list[str]:
    """What is wrong with the files in the folder of contracts by themselves, one line each."""
    generated, schemas = generated_files(), published_schemas()
    return [
        *stale_files(checked_in, generated),
        *_structure(generated, schemas),
        *_golden(checked_in, schemas),
    ]


def faults_since_release(checked_in: Files) -> list[str]:
    """What would break readers or writers of the last release, one line each."""
    release = last_release(checked_in)
    if release is None:
        return []
    remedy = "make it a new type or field, and write both until nobody reads the old"
    broken = breaking_changes(release.schemas, published_schemas())
    return [
        *(f"since {release.version}: {text}; {remedy}" for text in broken),
        *changed_golden(checked_in, release),
    ]


def _structure(generated: Files, schemas: Mapping[str, Schema]) -> list[str]:
    return [
        f"{path}: {text}"
        for path, data in generated.items()
        if path.startswith(ASYNCAPI)
        for text in structure_faults(json.loads(data), schemas)
    ]


def _golden(checked_in: Files, schemas: Mapping[str, Schema]) -> list[str]:
    golden = {
        path.removeprefix(GOLDEN): data
        for path, data in checked_in.items()
        if path.startswith(GOLDEN)
    }
    return [f"{GOLDEN}{text}" for text in golden_faults(golden, schemas)]
