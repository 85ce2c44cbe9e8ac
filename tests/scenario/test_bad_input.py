"""Bad manifests and a running platform: refused whole, told exactly, and nothing else is touched.

All tests share one platform that serves a model. It must still serve at the end, with every
process that it began with.
"""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from inferbus_contracts.api.objects import (
    AppliedDocument,
    ApplyReply,
    ApplyRequest,
    GetRequest,
    ObjectReply,
    ObjectVerb,
    object_subject,
)
from inferbus_contracts.errors import ErrorCode, ProblemsError
from inferbus_contracts.events.spec import SpecRejected
from inferbus_contracts.services import Service
from inferbus_contracts.subjects import wildcard
from inferbus_shared.bus.follow import Follower, Start
from inferbus_shared.manifests import read_manifests
from tests.scenario.bad_input import BAD_INPUT, NO_PLATFORM, refusal, refusals, refused_apply
from tests.scenario.bad_manifests import DEFECTS, Defect
from tests.scenario.good_manifests import GOOD
from tests.support.eventually import eventually
from tests.support.platform import Platform, model_manifests, running_platform

pytestmark = pytest.mark.slow

BESIDE = "beside"
GOOD_OBJECT = f"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {BESIDE}\n"
"""Stands beside every defect and must never be stored."""


@pytest.fixture(scope="module")
def platform() -> Iterator[Platform]:
    """A platform that serves `chat`, before and after."""
    with running_platform("--startup", "0") as running:
        running.apply(*model_manifests("chat"))
        running.inferbus("apply", "-f", "-", "--wait", stdin=json.dumps(model_manifests("chat")[0]))
        before = {name: row.pid for name, row in running.processes().items()}
        yield running
        assert running.complete("chat").status == 200
        assert {name: row.pid for name, row in running.processes().items()} == before


async def stored(platform: Platform, key: str) -> dict[str, Any] | None:
    """An object as it is stored; None where there is none."""
    async with platform.bus() as bus:
        try:
            subject = object_subject(ObjectVerb.GET)
            return (await bus.ask(subject, GetRequest(key=key), ObjectReply)).object
        except ProblemsError as error:
            if error.problems[0].code is ErrorCode.NOT_FOUND:
                return None
            raise


async def nothing_is_stored(platform: Platform) -> bool:
    return await stored(platform, f"ConfigMap/default/{BESIDE}") is None


def unit(folder: Path, text: str | bytes, name: str = "bad.yaml") -> Path:
    """A folder with a good manifest and this one; the path of this one."""
    (folder / "a-good.yaml").write_text(GOOD_OBJECT)
    file = folder / name
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return file


def test_the_good_manifests_are_good(platform: Platform, tmp_path: Path) -> None:
    """Otherwise a defect's refusal would prove nothing."""
    for kind, text in GOOD.items():
        (tmp_path / f"{kind}.yaml").write_text(text)
    done = platform.inferbus("apply", "-f", str(tmp_path), "--dry-run")
    assert len(done.stdout.splitlines()) == len(GOOD) + 1, "a binding comes with its policy"
    assert "playground/playground created (dry run)" in done.stdout


@pytest.mark.parametrize("defect", DEFECTS, ids=lambda defect: defect.name)
async def test_a_defect_is_told_and_its_whole_unit_refused(
    platform: Platform, tmp_path: Path, defect: Defect
) -> None:
    file = unit(tmp_path, defect.text)
    line = refused_apply(platform, tmp_path, defect.field, defect.value, code=defect.code)
    assert line.startswith(f"error: {file}:{defect.line}: ")
    assert await nothing_is_stored(platform)


async def test_what_reaches_the_server_is_refused_there_too_and_stands_in_the_log(
    platform: Platform,
) -> None:
    """Whoever asks: the object API has the same rules as the command line."""
    for defect in DEFECTS:
        if defect.code == "IB-1001":
            continue  # no document comes out of broken YAML
        documents = [*read_manifests(GOOD_OBJECT, "g.yaml"), *read_manifests(defect.text, "b.yaml")]
        applied = [AppliedDocument(object=one.object, file=one.place) for one in documents]
        request = ApplyRequest(documents=applied, manager=f"test {defect.name}")
        async with platform.bus(Service.WORKLOAD_RECONCILER) as bus:
            with pytest.raises(ProblemsError) as caught:
                await bus.ask(object_subject(ObjectVerb.APPLY), request, ApplyReply)
        (problem,) = caught.value.problems
        assert (problem.code, problem.field) == (defect.code, defect.field), defect.name
        assert problem.file == documents[-1].place
        assert problem.remedy
        assert await nothing_is_stored(platform), defect.name
        (told,) = [one for one in await rejections(platform) if one.manager == request.manager]
        assert told.problems == [problem]


async def rejections(platform: Platform) -> list[SpecRejected]:
    async with platform.bus(Service.CONSOLE) as bus:
        every = Follower(bus.connection, "FACTS", wildcard("spec.rejected"), Start.everything())
        read = [(await bus.read(message)).data async for message in every.snapshot()]
        return [data for data in read if isinstance(data, SpecRejected)]


async def test_every_defect_of_a_unit_is_told_at_once(platform: Platform, tmp_path: Path) -> None:
    of_fields = [defect for defect in DEFECTS if defect.code in ("IB-1004", "IB-1006", "IB-1007")]
    chosen = {defect.kind: defect for defect in of_fields}.values()  # one of an object
    for defect in chosen:
        (tmp_path / f"{defect.name}.yaml").write_text(defect.text)
    (tmp_path / "z.yaml").write_text(GOOD_OBJECT)
    told = refusals(platform.inferbus("apply", "-f", str(tmp_path), check=False))
    assert len(told) == len(chosen)
    for defect in chosen:
        assert any(f"{defect.name}.yaml:{defect.line}: " in line for line in told), defect.name
    assert await nothing_is_stored(platform)


async def test_the_same_object_in_two_files_is_refused(platform: Platform, tmp_path: Path) -> None:
    file = unit(tmp_path, GOOD["ModelServer"])
    (tmp_path / "again.yaml").write_text(GOOD["ModelServer"])
    where = [f"{file}:1", "ModelServer/default/server", "already defined at"]
    refused_apply(platform, tmp_path, *where, f"{tmp_path}/again.yaml:1", code="IB-2001")
    assert await nothing_is_stored(platform)


async def test_an_object_over_the_limit_is_refused_and_one_below_is_kept_whole(
    platform: Platform, tmp_path: Path
) -> None:
    def config_map(size_bytes: int) -> str:
        text = "x" * size_bytes
        return f"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: big\ndata:\n  text: {text}\n"

    file = unit(tmp_path, config_map(300_000))
    parts = (f"{file}:1", "ConfigMap/default/big", "262144", "value: 300")
    refused_apply(platform, tmp_path, *parts, code="IB-1010")
    assert await nothing_is_stored(platform)

    near = tmp_path / "near"
    near.mkdir()
    (near / "big.yaml").write_text(config_map(262_000))
    platform.inferbus("apply", "-f", str(near))
    found = await stored(platform, "ConfigMap/default/big")
    assert found is not None
    assert found["data"]["text"] == "x" * 262_000
    platform.inferbus("delete", "configmap", "big")


async def test_a_unit_of_too_many_objects_is_refused(platform: Platform, tmp_path: Path) -> None:
    one = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: m{}\n"
    unit(tmp_path, "---\n".join(one.format(number) for number in range(1000)))
    parts = (str(tmp_path), "value: 1001", "one by one")
    refused_apply(platform, tmp_path, *parts, code="IB-1010")
    assert await nothing_is_stored(platform)
    assert await stored(platform, "ConfigMap/default/m0") is None


async def test_a_unit_that_no_message_can_hold_is_refused(
    platform: Platform, tmp_path: Path
) -> None:
    text = "x" * 200_000
    one = f"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: m{{}}\ndata:\n  text: {text}\n"
    unit(tmp_path, "---\n".join(one.format(number) for number in range(9)))
    parts = (f"{tmp_path}/bad.yaml", "1500000", "one by one")
    refused_apply(platform, tmp_path, *parts, code="IB-1010")
    assert await nothing_is_stored(platform)


def multiplying(levels: int) -> str:
    """Aliases of aliases: nine to the power of `levels` values."""
    lines = [f"  l{n}: &l{n} [{','.join([f'*l{n - 1}'] * 9)}]\n" for n in range(1, levels)]
    return f"{GOOD_OBJECT}data:\n  l0: &l0 [x]\n{''.join(lines)}"


@pytest.mark.parametrize(
    ("name", "text", "line", "said"),
    [
        ("bad.yaml", b"", None, "no object in it"),
        ("bad.yaml", b"# nothing\n---\n", None, "no object in it"),
        ("bad.yaml", b"\x7fELF\x02\x01\x01\x00\x90\x90\xff\xfe", 1, "UTF-8"),
        ("bad.yaml", GOOD_OBJECT.encode() + b"data:\n  k: caf\xe9\n", 6, "UTF-8"),
        ("bad.yaml", b"text: \x00\x01\n", 1, "control character"),
        ("bad.yaml", b"- a\n- b\n", 1, "is a mapping"),
        ("bad.yaml", b"just a text\n", 1, "is a mapping"),
        ("bad.yaml", multiplying(9).encode(), 7, "too large"),
        ("bad.yaml", b"a: &a\n  b: *a\n", 1, "contains itself"),
        ("bad.yaml", b"a: " + b"[" * 150 + b"]" * 150, 1, "nested"),
        ("bad.yaml", b"a: " + b"[" * 20_000 + b"]" * 20_000, 1, "nested"),
        ("bad.json", b'{"apiVersion": "v1",\n "kind" "Pod"}', 2, "column"),
        ("bad.json", b'{"apiVersion": "v1", "kind": "ConfigMap",\n "kind": "Pod"}', 2, "second"),
    ],
    ids=[
        "empty",
        "only a comment",
        "binary",
        "latin-1",
        "control characters",
        "a list",
        "a text",
        "aliases that multiply",
        "an alias of itself",
        "nested",
        "nested very deep",
        "broken JSON",
        "a key twice in JSON",
    ],
)
async def test_a_file_that_holds_no_object_is_refused(
    platform: Platform, tmp_path: Path, name: str, text: bytes, line: int | None, said: str
) -> None:
    file = unit(tmp_path, text, name)
    if line is None:
        # A folder may hold an empty file beside others; a file that is named may not.
        result = platform.inferbus("apply", "-f", str(file), check=False)
        assert str(file) in refusal(result, said, code="IB-1002")
        return
    told = refusals(platform.inferbus("apply", "-f", str(tmp_path), check=False))
    assert told[0].startswith(f"error: {file}:{line}: ")
    assert said in told[0]
    assert await nothing_is_stored(platform)


def test_a_path_that_leads_nowhere_is_told(platform: Platform, tmp_path: Path) -> None:
    file = unit(tmp_path, GOOD_OBJECT)
    for path in (tmp_path / "nothing", tmp_path / "nothing.yaml", file / "below", "x" * 300):
        refused_apply(platform, path, f"{path}: ", "can't be read", code="IB-4008")
    empty = tmp_path / "empty"
    empty.mkdir()
    refused_apply(platform, empty, f"{empty}: ", "no object in it", code="IB-1002")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every file")
def test_a_file_that_may_not_be_read_is_told(platform: Platform, tmp_path: Path) -> None:
    file = unit(tmp_path, GOOD_OBJECT)
    file.chmod(0)
    refused_apply(platform, tmp_path, f"{file}: ", "Permission denied", code="IB-4007")


async def test_a_field_of_another_manager_is_left_to_it(platform: Platform, tmp_path: Path) -> None:
    """The folder is one manager, the command line another."""
    policy = GOOD["AutoscalingPolicy"]
    (platform.directory.manifests / "policy.yaml").write_text(policy)
    key = "AutoscalingPolicy/default/policy"
    await eventually(lambda: stored(platform, key), timeout=30)
    ours = unit(tmp_path, policy.replace("tolerancePercent: 10", "tolerancePercent: 50"))
    parts = (f"{ours}:6", key, "spec.tolerancePercent", "value: 50", "folder", "--force")
    refused_apply(platform, tmp_path, *parts, code="IB-2005")
    assert await nothing_is_stored(platform)
    theirs = await stored(platform, key)
    assert theirs is not None
    assert theirs["spec"]["tolerancePercent"] == 10
    (platform.directory.manifests / "policy.yaml").unlink()
    await eventually(lambda: gone(platform, key), timeout=30)


async def gone(platform: Platform, key: str) -> bool:
    return await stored(platform, key) is None


async def test_a_bad_manifest_in_the_folder_is_refused_whole_and_stands_in_the_log(
    platform: Platform,
) -> None:
    defect = next(one for one in DEFECTS if one.name == "ModelServer-port-out-of-range")
    file = platform.directory.manifests / "server.yaml"
    file.write_text(f"{defect.text}---\n{GOOD_OBJECT}")

    async def told() -> list[SpecRejected]:
        return [one for one in await rejections(platform) if one.manager == "folder"]

    (rejected,) = await eventually(told, timeout=30)
    (problem,) = rejected.problems
    assert problem.field == defect.field
    assert problem.file is not None
    assert problem.file.endswith(f"server.yaml:{defect.line}")
    assert await nothing_is_stored(platform)
    file.unlink()


async def test_a_wrong_request_of_another_service_is_refused_not_feared(
    platform: Platform,
) -> None:
    async with platform.bus(Service.WORKLOAD_RECONCILER) as bus:
        for key in ("", "nothing", "a/b", "ModelServing/default/" + "x" * 5000):
            with pytest.raises(ProblemsError):
                await bus.ask(object_subject(ObjectVerb.GET), GetRequest(key=key), ObjectReply)


def test_without_a_platform_there_is_one_to_be_named(tmp_path: Path) -> None:
    file = unit(tmp_path, GOOD_OBJECT)
    nowhere = Platform(tmp_path / "nowhere")
    refused_apply(
        nowhere, file, str(nowhere.directory.root), "--dir", code="IB-4004", exit_code=NO_PLATFORM
    )
    result = Platform(file).inferbus("apply", "-f", str(file), check=False)
    refusal(result, str(file), "--dir", code="IB-4008", exit_code=BAD_INPUT)
