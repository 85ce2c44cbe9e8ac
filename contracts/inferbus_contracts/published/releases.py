"""Releases of the contracts: schemas as they were given out, digests of the golden documents.

Invariant: a release is never written twice, and changes are judged against the newest one. Pure.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from inferbus_contracts.canonical import digest_bytes
from inferbus_contracts.published.documents import RELEASED, SCHEMAS, as_text, is_generated
from inferbus_contracts.published.schemas import Schema

GOLDEN = "golden/"
DIGESTS = "golden.json"


@dataclass(frozen=True, kw_only=True)
class Release:
    """What was given out under one version."""

    version: str
    schemas: Mapping[str, Schema]
    golden_digests: Mapping[str, str]
    """By path below the folder of golden documents."""


def release_files(checked_in: Mapping[str, bytes], version: str) -> dict[str, bytes]:
    """The files of a release, by path in the folder of contracts.

    Raises `ValueError` for a version that isn't numbers with dots between, or isn't the newest.
    """
    newest = max(_versions(checked_in), key=version_order, default="")
    order = version_order(version)
    if newest and order <= version_order(newest):
        raise ValueError(f"{newest} is released already")
    folder = f"{RELEASED}{version}/"
    schemas = {
        folder + path.removeprefix(SCHEMAS): data
        for path, data in checked_in.items()
        if path.startswith(SCHEMAS) and is_generated(path)
    }
    return schemas | {folder + DIGESTS: as_text(_golden_digests(checked_in))}


def last_release(checked_in: Mapping[str, bytes]) -> Release | None:
    """The newest release; None before the first."""
    version = max(_versions(checked_in), key=version_order, default=None)
    if version is None:
        return None
    folder = f"{RELEASED}{version}/"
    files = {
        path.removeprefix(folder): json.loads(data)
        for path, data in checked_in.items()
        if path.startswith(folder)
    }
    digests = files.pop(DIGESTS, {})
    return Release(version=version, schemas=files, golden_digests=digests)


def changed_golden(checked_in: Mapping[str, bytes], release: Release) -> list[str]:
    """Golden documents that were released and are no longer what they were, one line each."""
    present = _golden_digests(checked_in)
    found = []
    for path, digest in sorted(release.golden_digests.items()):
        if present.get(path) != digest:
            what = "was changed" if path in present else "is gone"
            remedy = f"put it back as it was in {release.version}, add a new one beside it"
            found.append(f"{GOLDEN}{path}: {what}; {remedy}")
    return found


def version_order(version: str) -> tuple[int, ...]:
    """What versions are sorted by; raises `ValueError` unless it is numbers with dots between."""
    parts = version.split(".")
    if not all(part.isdecimal() for part in parts):
        raise ValueError(f"{version!r} is no version such as 0.1.0")
    return tuple(int(part) for part in parts)


def _versions(checked_in: Mapping[str, bytes]) -> Iterable[str]:
    return {
        path.removeprefix(RELEASED).partition("/")[0]
        for path in checked_in
        if path.startswith(RELEASED)
    }


def _golden_digests(checked_in: Mapping[str, bytes]) -> dict[str, str]:
    return {
        path.removeprefix(GOLDEN): digest_bytes(data)
        for path, data in checked_in.items()
        if path.startswith(GOLDEN)
    }
