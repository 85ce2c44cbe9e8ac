"""Manifests that users already have: applied as they are, they become what they say, and serve."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from inferbus_contracts.keys import ObjectKey
from inferbus_shared.objects.client import ObjectClient
from tests.scenario.example_files import BATCHES, FOLDER, LEFT_TO_SHORT_KINDS, Batch
from tests.support.eventually import eventually
from tests.support.platform import Platform, running_platform

README = Path(__file__).parents[2] / "services" / "spec-watcher" / "README.md"
PATIENCE_SECONDS = 60

here = pytest.mark.skipif(
    not FOLDER.is_dir(), reason=f"the example manifests are not beside this checkout: {FOLDER}"
)


@here
def test_no_file_is_forgotten() -> None:
    found = {path.relative_to(FOLDER).as_posix() for path in FOLDER.rglob("*.yaml")}
    assert {file for batch in BATCHES for file in batch.files} == found


def test_the_readme_tells_by_file_what_is_left() -> None:
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in README.read_text().splitlines()
        if line.startswith("| `")
    ]
    told = {files.strip("`"): left for files, _, left in rows}
    files = {file for batch in BATCHES for file in batch.files}
    assert told.keys() == files
    for file in files:
        assert told[file] == ("; ".join(LEFT_TO_SHORT_KINDS.get(file, ())) or "–")


@pytest.fixture(scope="module")
def platform() -> Iterator[Platform]:
    """One for all files: each leaves it as it was."""
    with running_platform("--startup", "0") as running:
        yield running


@here
@pytest.mark.slow
@pytest.mark.parametrize("batch", BATCHES, ids=lambda batch: batch.name)
async def test_it_is_accepted_becomes_what_it_says_and_serves(
    platform: Platform, batch: Batch
) -> None:
    files = [part for file in batch.files for part in ("-f", str(FOLDER / file))]
    try:
        if batch.beside:
            platform.apply(*batch.beside)
        platform.inferbus("apply", *files, "--wait", "--timeout", f"{PATIENCE_SECONDS}s")
        await has_children(platform, batch)
        for model in batch.serves:
            await eventually(
                partial(answers, platform, model),
                timeout=PATIENCE_SECONDS,
                what=f"{model} answers",
            )
        listed = {one["id"] for one in platform.ask("/v1/models").body["data"]}
        assert listed == set(batch.serves)
    finally:
        beside = [f"{one['kind']}/{one['metadata']['name']}" for one in batch.beside]
        for what in (files, beside):
            if what:
                platform.inferbus("delete", *what, "--grace-period", "0", "--ignore-not-found")
    await is_empty(platform, batch)


def answers(platform: Platform, model: str) -> bool:
    return platform.complete(model).status == 200


async def has_children(platform: Platform, batch: Batch) -> None:
    async with platform.bus() as bus:
        objects = ObjectClient(bus, "cli")
        for key in batch.children:
            child = await objects.get(ObjectKey.parse(key))
            assert child["metadata"]["ownerReferences"][0]["controller"] is True
        assert len(await objects.find("Pod")) == batch.pods


async def is_empty(platform: Platform, batch: Batch) -> None:
    """Nothing of the files stays, and nothing that was made of them."""
    async with platform.bus() as bus:
        objects = ObjectClient(bus, "cli")
        kinds = ["Pod", *(ObjectKey.parse(key).kind for key in batch.children)]

        async def none_left() -> bool:
            return not any([await objects.find(kind) for kind in kinds])

        await eventually(none_left, timeout=PATIENCE_SECONDS)
