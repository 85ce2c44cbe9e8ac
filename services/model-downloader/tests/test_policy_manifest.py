"""A manifest is believed only as it was sealed."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from inferbus_model_downloader.policy_files import Algorithm
from inferbus_model_downloader.policy_manifest import (
    Manifest,
    ManifestFile,
    damaged_files,
    seal,
    unseal,
)

MANIFEST = Manifest(
    key="k",
    source="hf://a/b",
    revision="c" * 40,
    include=("*.json",),
    files=(
        ManifestFile(path="a.json", size_bytes=3, algorithm=Algorithm.SHA256, checksum="00"),
        ManifestFile(path="b.json", size_bytes=0, algorithm=Algorithm.GIT_SHA1, checksum="11"),
    ),
)


def test_a_sealed_manifest_comes_back_from_its_json() -> None:
    sealed = json.loads(json.dumps(seal(MANIFEST, 1_700_000_000_000)))
    assert unseal(sealed) == MANIFEST
    assert sealed["createdMs"] == 1_700_000_000_000


def test_the_same_artifact_has_the_same_digest_whenever_it_was_made() -> None:
    assert seal(MANIFEST, 1)["digest"] == seal(MANIFEST, 2)["digest"] == MANIFEST.digest


@given(st.data())
def test_a_manifest_that_was_changed_anywhere_is_not_believed(data: st.DataObject) -> None:
    sealed: dict[str, Any] = json.loads(json.dumps(seal(MANIFEST, 1)))
    place = data.draw(st.sampled_from(["digest", "format", "key", "revision", "size", "files"]))
    match place:
        case "digest":
            sealed["digest"] = data.draw(st.text().filter(lambda text: text != MANIFEST.digest))
        case "format":
            sealed["format"] = 2
        case "size":
            sealed["manifest"]["files"][0]["sizeBytes"] = data.draw(st.integers(4))
        case "files":
            del sealed["manifest"]["files"][data.draw(st.integers(0, 1))]
        case _:
            sealed["manifest"][place] = data.draw(st.text(min_size=41))
    assert unseal(sealed) is None


def test_what_is_no_manifest_is_none() -> None:
    broken: list[dict[str, Any] | None] = [None, {}, {"format": 1}, {"format": 1, "manifest": 5}]
    assert [unseal(value) for value in broken] == [None] * 4


def test_files_that_are_gone_or_cut_are_named() -> None:
    assert damaged_files(MANIFEST, {"a.json": 3, "b.json": 0}) == []
    assert damaged_files(MANIFEST, {"a.json": 2}) == ["a.json", "b.json"]
