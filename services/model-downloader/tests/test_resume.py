"""Killed and started again: nothing incomplete is ever shown, and little is fetched twice."""

import json
import random
import time

import pytest
from downloader_forks import Forks
from downloader_node import QUICK, Node
from model_hub import Fault, ModelHub

from inferbus_contracts.errors import ProblemsError
from inferbus_model_downloader.effects_staging import glance
from inferbus_model_downloader.policy_layout import StagingLayout
from inferbus_model_downloader.policy_manifest import unseal
from tests.support.eventually import eventually

CHUNK_BYTES: int = QUICK["chunk_bytes"]


def words(node: Node) -> tuple[str, ...]:
    return ("fetch", "hf://owner/model", "-o", str(node.output), "--cache-dir", str(node.cache))


def written_bytes(node: Node) -> int:
    seen = glance(StagingLayout(next(node.cache.glob("staging/*"))))
    return seen[1] if seen else 0


def total(files: dict[str, bytes]) -> int:
    return sum(map(len, files.values()))


def is_complete(node: Node, files: dict[str, bytes]) -> bool:
    """Whether an artifact claims to be complete; asserts that what claims it, is."""
    for path in node.artifacts():
        manifest = unseal(json.loads(path.read_text()))
        assert manifest is not None
        content = path.parent / "content"
        assert {file.path: (content / file.path).read_bytes() for file in manifest.files} == files
    if node.output.exists():
        assert node.shown() == files
    return bool(node.artifacts())


async def test_a_kill_loses_less_than_a_chunk(
    node: Node, hub: ModelHub, files: dict[str, bytes], forks: Forks
) -> None:
    stalls = [Fault(stall_after=CHUNK_BYTES - 1000)] * 4
    hub.faults["model-1.safetensors"].extend([*[Fault()] * 4, *stalls])
    forks.environment = node.environment(INFERBUS_MODEL_DOWNLOADER_STALL_SECONDS="60")
    process = forks.start(words(node))
    arrived_bytes = len(files["config.json"]) + 8 * CHUNK_BYTES - 4 * 1000
    await eventually(lambda: hub.sent_bytes == arrived_bytes)
    await eventually(lambda: written_bytes(node) > arrived_bytes - CHUNK_BYTES)
    process.kill()
    assert not is_complete(node, files)
    await node.fetch()
    assert node.shown() == files
    assert total(files) - node.progress.received_bytes > arrived_bytes - CHUNK_BYTES


async def test_a_failure_loses_nothing(node: Node, hub: ModelHub, files: dict[str, bytes]) -> None:
    hub.faults["model-2.safetensors"].extend([Fault(), Fault(status=403), Fault(status=403)])
    with pytest.raises(ProblemsError):
        await node.fetch(knobs={"max_workers": 1})
    assert hub.sent_bytes > 700_000
    await node.fetch()
    assert node.shown() == files
    assert hub.sent_bytes == total(files)


async def test_a_new_listing_under_the_same_commit_starts_over(
    node: Node, hub: ModelHub, files: dict[str, bytes]
) -> None:
    hub.faults["onnx/model.onnx"].append(Fault(status=404))
    with pytest.raises(ProblemsError):
        await node.fetch(knobs={"max_workers": 1})
    changed = {**files, "model-1.safetensors": files["model-1.safetensors"][::-1]}
    hub.put(changed)
    await node.fetch()
    assert node.shown() == changed


@pytest.mark.parametrize("damage", ["content gone", "content cut", "journal torn", "bytes flipped"])
async def test_a_staging_that_lost_something_is_not_believed(
    node: Node, hub: ModelHub, files: dict[str, bytes], damage: str
) -> None:
    hub.faults["onnx/model.onnx"].append(Fault(status=404))
    with pytest.raises(ProblemsError):
        await node.fetch(knobs={"max_workers": 1})
    staging = next(node.cache.glob("staging/*"))
    weights = staging / "tree" / "content" / "model-1.safetensors"
    match damage:
        case "content gone":
            weights.unlink()
        case "content cut":
            weights.write_bytes(weights.read_bytes()[:1000])
        case "journal torn":
            journal = staging / "journal"
            journal.write_bytes(journal.read_bytes()[:-3] + b"\0\0")
        case "bytes flipped":
            lines = (staging / "journal").read_bytes().split(b"\n")
            unverified = [line for line in lines if not line.startswith(b"v")]
            (staging / "journal").write_bytes(b"\n".join(unverified))
            weights.write_bytes(bytes(len(weights.read_bytes())))
    await node.fetch()
    assert node.shown() == files


async def kill_at_random_moments(
    node: Node, hub: ModelHub, files: dict[str, bytes], forks: Forks, kills: int
) -> None:
    moments = random.Random(kills)
    hub.bytes_per_second = 1_500_000
    started = time.monotonic()
    first = forks.start(words(node))
    assert first.wait(60), forks.log
    whole_seconds = time.monotonic() - started
    assert is_complete(node, files)
    unfinished = 0
    for _ in range(kills):
        if is_complete(node, files):
            take_away(node)
        process = forks.start(words(node))
        unfinished += not process.wait(moments.uniform(0.02, 1.2) * whole_seconds)
        process.kill()
    assert unfinished > kills / 4, "the kills came too late to show anything"
    is_complete(node, files)
    hub.bytes_per_second = None
    await node.fetch()
    assert node.shown() == files


def take_away(node: Node) -> None:
    """Have the artifact made again."""
    node.artifacts()[0].unlink()
    node.output.unlink(missing_ok=True)


@pytest.mark.slow
async def test_kills_at_random_moments_never_leave_half_an_artifact(
    node: Node, hub: ModelHub, files: dict[str, bytes], forks: Forks
) -> None:
    await kill_at_random_moments(node, hub, files, forks, 20)


@pytest.mark.slow
@pytest.mark.timeout(600)
async def test_a_hundred_kills_never_leave_half_an_artifact(
    node: Node, hub: ModelHub, files: dict[str, bytes], forks: Forks
) -> None:
    await kill_at_random_moments(node, hub, files, forks, 100)
