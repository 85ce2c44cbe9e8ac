"""Models of a hub: what an engine sees, and what the hub is asked for."""

import hashlib
from pathlib import Path
from typing import Any

import pytest
from downloader_node import Node
from model_hub import Fault, ModelHub

from inferbus_contracts.errors import ErrorCode, ProblemsError
from inferbus_model_downloader.policy_options import HubOptions


async def problem_of(node: Node, **wanted: Any) -> ErrorCode:
    with pytest.raises(ProblemsError) as caught:
        await node.fetch(**wanted)
    assert not node.artifacts()
    assert not node.output.exists()
    assert caught.value.problems[0].remedy
    return caught.value.problems[0].code


async def test_the_model_appears_with_a_manifest_of_checked_files(
    node: Node, hub: ModelHub, files: dict[str, bytes]
) -> None:
    artifact = await node.fetch()
    assert node.shown() == files
    assert artifact.path == node.output
    assert artifact.manifest.revision == "a" * 40
    listed = {file.path: file for file in artifact.manifest.files}
    assert {path: file.size_bytes for path, file in listed.items()} == {
        path: len(content) for path, content in files.items()
    }
    weights = listed["model-1.safetensors"]
    assert weights.checksum == hashlib.sha256(files["model-1.safetensors"]).hexdigest()
    assert node.progress.done_bytes == node.progress.total_bytes == hub.sent_bytes
    assert not list(node.cache.glob("staging/*"))


async def test_files_are_fetched_in_ranges_that_cover_them_once(
    node: Node, hub: ModelHub, files: dict[str, bytes]
) -> None:
    await node.fetch()
    starts = sorted(request.start for request in hub.reads("model-1.safetensors"))
    assert starts == list(range(0, 700_001, 64 * 1024))
    assert hub.sent_bytes == sum(map(len, files.values()))


async def test_the_store_behind_the_hub_never_sees_the_token(node: Node, hub: ModelHub) -> None:
    hub.token = "hf_secretsecret"
    await node.fetch(options=HubOptions(hub.url, hub.token))
    at_store = [request for request in hub.requests if "X-Signature" in request.path]
    assert at_store
    assert all(request.authorization is None for request in at_store)
    assert all(
        request.authorization == f"Bearer {hub.token}"
        for request in hub.requests
        if request not in at_store
    )


async def test_an_expired_address_of_the_store_is_asked_for_again(
    node: Node, hub: ModelHub, files: dict[str, bytes]
) -> None:
    expired = [Fault(), Fault(status=403), Fault(), Fault(status=404)]
    hub.faults["model-1.safetensors"].extend(expired)
    await node.fetch(knobs={"max_workers": 1})
    assert node.shown() == files


async def test_only_chosen_files_are_fetched(
    node: Node, hub: ModelHub, files: dict[str, bytes]
) -> None:
    await node.fetch(include=["*.json", "onnx/"], exclude=["empty*"])
    assert sorted(node.shown()) == ["config.json", "onnx/model.onnx"]
    assert {request.file for request in hub.reads()} == {"config.json", "onnx/model.onnx"}


async def test_a_branch_tag_or_commit_is_resolved_once_and_pinned(
    node: Node, hub: ModelHub, files: dict[str, bytes]
) -> None:
    hub.put({**files, "config.json": b"new"}, commit="b" * 40, branch="v2")
    old, new = node.folder / "old", node.folder / "new"
    await node.fetch(destination=old)
    artifact = await node.fetch(destination=new, revision="v2")
    assert artifact.manifest.revision == "b" * 40
    assert node.shown(old)["config.json"] == files["config.json"]
    assert node.shown(new)["config.json"] == b"new"
    assert len(node.artifacts()) == 2


async def test_a_branch_that_moved_is_shown_anew_and_the_old_artifact_stays(
    node: Node, hub: ModelHub, files: dict[str, bytes]
) -> None:
    await node.fetch()
    opened = (node.output / "config.json").resolve()
    hub.put({**files, "config.json": b"new"}, commit="b" * 40)
    await node.fetch()
    assert node.shown()["config.json"] == b"new"
    assert opened.read_bytes() == files["config.json"]


async def test_a_complete_artifact_of_a_commit_asks_nobody(node: Node, hub: ModelHub) -> None:
    await node.fetch(revision="a" * 40)
    before = len(hub.requests)
    await node.fetch(revision="a" * 40, destination=node.folder / "again")
    assert len(hub.requests) == before


async def test_mb_7_4_a_complete_branch_starts_without_its_hub(
    node: Node, hub: ModelHub, files: dict[str, bytes]
) -> None:
    await node.fetch()
    hub.close()
    other = node.folder / "other"
    artifact = await node.fetch(destination=other)
    assert node.shown(other) == files
    assert artifact.manifest.revision == "a" * 40


async def test_who_prefers_what_is_here_is_not_moved_by_a_branch(
    node: Node, hub: ModelHub, files: dict[str, bytes]
) -> None:
    await node.fetch()
    hub.put({**files, "config.json": b"new"}, commit="b" * 40)
    before = len(hub.requests)
    await node.fetch(prefer_cached=True)
    assert node.shown() == files
    assert len(hub.requests) == before


async def test_without_hub_and_without_artifact_it_says_so(node: Node, hub: ModelHub) -> None:
    hub.close()
    assert await problem_of(node) is ErrorCode.MODEL_SOURCE_UNREACHABLE


async def test_an_incomplete_artifact_does_not_stand_in_for_a_hub(
    node: Node, hub: ModelHub
) -> None:
    await node.fetch()
    (node.output / "model-2.safetensors").unlink()
    hub.close()
    with pytest.raises(ProblemsError):
        await node.fetch()


@pytest.mark.parametrize("damage", ["gone", "cut", "manifest", "manifest cut"])
async def test_a_damaged_artifact_is_fetched_again(
    node: Node, files: dict[str, bytes], damage: str
) -> None:
    await node.fetch()
    manifest = node.artifacts()[0]
    weights = node.output / "model-1.safetensors"
    match damage:
        case "gone":
            weights.unlink()
        case "cut":
            weights.write_bytes(weights.read_bytes()[:-1])
        case "manifest":
            manifest.unlink()
        case "manifest cut":
            manifest.write_text(manifest.read_text()[:200])
    await node.fetch()
    assert node.shown() == files
    assert len(node.artifacts()) == 1


async def test_a_mirror_that_lists_names_alone_is_asked_for_the_rest(
    node: Node, hub: ModelHub, files: dict[str, bytes]
) -> None:
    hub.describes_files = False
    artifact = await node.fetch()
    assert node.shown() == files
    algorithms = {file.path: file.algorithm.value for file in artifact.manifest.files}
    assert algorithms["model-1.safetensors"] == "sha256"
    assert algorithms["config.json"] == "git-sha1"


async def test_a_server_without_ranges_is_read_all_the_same(
    node: Node, hub: ModelHub, files: dict[str, bytes]
) -> None:
    hub.ignores_ranges = True
    await node.fetch()
    assert node.shown() == files


@pytest.mark.parametrize(
    "name", ["../outside", "/tmp/outside", "a/../../outside", "..", "x\n", "model-1.safetensors/x"]
)
async def test_a_hostile_hub_cannot_write_outside(
    node: Node, hub: ModelHub, files: dict[str, bytes], name: str
) -> None:
    hub.put({**files, name: b"evil"})
    assert await problem_of(node) is ErrorCode.MODEL_SOURCE_INVALID
    written = {path.name for path in node.folder.rglob("*") if path.is_file()}
    assert written <= {path.name for path in node.cache.rglob("locks/*")}


async def test_a_listing_without_a_commit_is_refused(node: Node, hub: ModelHub) -> None:
    hub.listing_overrides = {"sha": None}
    assert await problem_of(node) is ErrorCode.MODEL_SOURCE_INVALID


async def test_what_the_hub_does_not_have(
    node: Node, hub: ModelHub, files: dict[str, bytes]
) -> None:
    assert await problem_of(node, source="hf://owner/other") is ErrorCode.MODEL_NOT_FOUND
    assert await problem_of(node, revision="v9") is ErrorCode.MODEL_NOT_FOUND
    hub.faults["config.json"].append(Fault(status=404))
    assert await problem_of(node) is ErrorCode.MODEL_NOT_FOUND


async def test_what_the_hub_does_not_give(node: Node, hub: ModelHub) -> None:
    hub.faults["config.json"].append(Fault(status=403))
    assert await problem_of(node) is ErrorCode.MODEL_UNAUTHORIZED
    hub.token = "right"
    assert await problem_of(node) is ErrorCode.MODEL_UNAUTHORIZED


async def test_a_wrong_token_is_not_repeated_in_the_problem(node: Node, hub: ModelHub) -> None:
    hub.token = "right"
    with pytest.raises(ProblemsError) as caught:
        await node.fetch(options=HubOptions(hub.url, "wrong-secret"))
    assert "wrong-secret" not in str(caught.value)


async def test_other_sources_are_named_as_not_supported(node: Node) -> None:
    assert await problem_of(node, source="s3://bucket/x") is ErrorCode.UNSUPPORTED


async def test_filters_that_leave_nothing(node: Node) -> None:
    assert await problem_of(node, include=["*.gguf"]) is ErrorCode.MODEL_NOT_FOUND


async def test_many_small_files_need_few_descriptors(
    node: Node, hub: ModelHub, tmp_path: Path
) -> None:
    import resource

    many = {f"shard/{number:04}.txt": str(number).encode() for number in range(150)}
    hub.put(many)
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (120, limits[1]))
    try:
        await node.fetch()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert node.shown() == many
