"""The manifests that users of both platforms already have become on a cluster what they say."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.resources.kinds import LEADER_WORKER_SET, MODEL_SERVING, key_of
from tests.scenario.example_files import BATCHES, FOLDER, Batch
from tests.support.kube_platform import KubePlatform

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.skipif(
        not FOLDER.is_dir(), reason=f"the example manifests are not beside this checkout: {FOLDER}"
    ),
]


def documents_of(path: Path) -> list[dict[str, Any]]:
    return [one for one in yaml.safe_load_all(path.read_text()) if one]


async def test_every_example_serves_on_a_cluster_and_leaves_nothing(kube: KubePlatform) -> None:
    for batch in BATCHES:
        documents = [one for file in batch.files for one in documents_of(FOLDER / file)]
        await kube.apply(*batch.beside, *documents)
        for model in batch.serves:
            await kube.until_it_serves(model)
        await kube.until_ready(batch.pods)
        await has_children(kube, batch)
        for document in (*documents, *batch.beside):
            await kube.delete(key_of(document).kind, document["metadata"]["name"])
        await kube.until_empty()


async def has_children(kube: KubePlatform, batch: Batch) -> None:
    """Nothing runs LeaderWorkerSets here, so their groups are ModelServings of the same name."""
    for text in batch.children:
        key = ObjectKey.parse(text)
        kind = MODEL_SERVING if key.kind == LEADER_WORKER_SET else key.kind
        child = await kube.get(kind, key.name)
        assert child is not None, f"{batch.name}: no {key}"
        (owner,) = child["metadata"]["ownerReferences"]
        assert owner["controller"] is True
