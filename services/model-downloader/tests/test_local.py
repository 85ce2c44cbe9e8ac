"""Models that are on the node: shown where they are, never copied."""

from pathlib import Path

import pytest
from downloader_node import Node

from inferbus_contracts.errors import ErrorCode, ProblemsError
from inferbus_model_downloader.policy_options import HubOptions


@pytest.fixture
def model(tmp_path: Path) -> Path:
    folder = tmp_path / "host" / "llama"
    (folder / "sub").mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    (folder / "sub" / "weights.bin").write_bytes(b"w" * 1000)
    return folder


async def code_of(node: Node, source: str, destination: Path | None = None) -> ErrorCode:
    with pytest.raises(ProblemsError) as caught:
        await node.fetch(source, destination=destination or node.output)
    return caught.value.problems[0].code


@pytest.mark.parametrize("form", ["host://{}", "hostpath://{}", "file://{}", "{}", "pvc://{}"])
async def test_a_folder_is_shown_by_one_link(node: Node, model: Path, form: str) -> None:
    artifact = await node.fetch(form.format(model))
    assert node.output.is_symlink()
    assert node.output.samefile(model)
    assert artifact.manifest.total_bytes == 1002
    assert node.progress.done_bytes == 1002
    assert not node.cache.exists()


async def test_mb_1221_a_claim_is_used_below_the_folder_of_claims(node: Node, model: Path) -> None:
    claims = {"claims_dir": model.parent.parent}
    await node.fetch("pvc://host/llama", knobs=claims)
    assert node.output.samefile(model)


async def test_host_paths_may_stand_below_a_platform_folder(node: Node, model: Path) -> None:
    await node.fetch("host:///llama", knobs={"host_dir": model.parent})
    assert node.output.samefile(model)


async def test_one_file_is_shown_in_a_folder(node: Node, model: Path) -> None:
    artifact = await node.fetch(f"host://{model}/sub/weights.bin")
    assert node.shown() == {"weights.bin": b"w" * 1000}
    assert len(artifact.manifest.files) == 1


async def test_filters_show_only_what_they_leave(node: Node, model: Path) -> None:
    await node.fetch(f"host://{model}", include=["*.bin"])
    assert node.shown() == {"sub/weights.bin": b"w" * 1000}
    assert (node.output / "sub" / "weights.bin").is_symlink()


async def test_the_digest_changes_with_the_files(node: Node, model: Path) -> None:
    first = await node.fetch(f"host://{model}")
    assert (await node.fetch(f"host://{model}")).manifest.digest == first.manifest.digest
    (model / "sub" / "weights.bin").write_bytes(b"x" * 1001)
    assert (await node.fetch(f"host://{model}")).manifest.digest != first.manifest.digest


async def test_a_source_that_is_its_own_destination_is_left_alone(node: Node, model: Path) -> None:
    await node.fetch(f"host://{model}", destination=model)
    assert sorted(node.shown(model)) == ["config.json", "sub/weights.bin"]


async def test_an_existing_folder_gets_a_link_for_each_entry(node: Node, model: Path) -> None:
    node.output.mkdir(parents=True)
    await node.fetch(f"host://{model}")
    assert not node.output.is_symlink()
    assert {path.name for path in node.output.iterdir()} == {"config.json", "sub"}
    assert all(path.is_symlink() for path in node.output.iterdir())


async def test_nothing_of_the_user_is_replaced(node: Node, model: Path) -> None:
    node.output.mkdir(parents=True)
    (node.output / "config.json").write_text("mine")
    (node.output / "mine").symlink_to("/nowhere")
    assert await code_of(node, f"host://{model}") is ErrorCode.ALREADY_EXISTS
    assert (node.output / "config.json").read_text() == "mine"
    assert (node.output / "mine").is_symlink()


async def test_a_destination_that_is_a_file_is_refused(node: Node, model: Path) -> None:
    node.output.parent.mkdir(parents=True)
    node.output.write_text("mine")
    for source in (f"host://{model}", f"host://{model}/config.json"):
        assert await code_of(node, source) is ErrorCode.ALREADY_EXISTS
    assert node.output.read_text() == "mine"


async def test_a_model_cannot_be_shown_inside_itself(node: Node, model: Path) -> None:
    assert await code_of(node, f"host://{model}", model / "again") is ErrorCode.BAD_ARGUMENT
    assert not (model / "again").exists()


async def test_what_is_not_there(node: Node, model: Path) -> None:
    assert await code_of(node, f"host://{model}/none") is ErrorCode.MODEL_NOT_FOUND
    empty = model / "empty"
    empty.mkdir()
    assert await code_of(node, f"host://{empty}") is ErrorCode.MODEL_NOT_FOUND
    (empty / "dangling").symlink_to("/nowhere/at/all")
    assert await code_of(node, f"host://{empty}") is ErrorCode.MODEL_NOT_FOUND


async def test_a_hub_model_can_take_the_place_of_a_local_one(
    node: Node, model: Path, files: dict[str, bytes]
) -> None:
    await node.fetch(f"host://{model}")
    await node.fetch(options=HubOptions(node.hub.url, False))
    assert node.shown() == files
    assert (model / "config.json").read_text() == "{}"


async def test_an_existing_folder_shows_the_newer_artifact_without_leftovers(
    node: Node, files: dict[str, bytes]
) -> None:
    node.output.mkdir(parents=True)
    (node.output / "mine.txt").write_text("mine")
    (node.output / "link").symlink_to("/nowhere")
    await node.fetch()
    newer = {"config.json": b"new", "tokenizer.json": b"{}"}
    node.hub.put(newer, commit="b" * 40)
    await node.fetch()
    assert node.shown() == {**newer, "mine.txt": b"mine"}
    assert (node.output / "link").is_symlink()


async def test_links_survive_when_the_volume_is_mounted_elsewhere(
    node: Node, files: dict[str, bytes]
) -> None:
    volume = node.folder / "volume"
    node.cache = volume / ".cache"
    await node.fetch(destination=volume / "deep" / "m")
    volume.rename(node.folder / "elsewhere")
    assert node.shown(node.folder / "elsewhere" / "deep" / "m") == files
