"""Whatever is wrong with a manifest is told with file, line, field, value and remedy, at once.

Everything here is found before a platform is needed.
"""

import errno
from pathlib import Path
from typing import Any

import pytest

from inferbus_cli import manifest_unit
from inferbus_cli.server_files import write_server_files
from inferbus_contracts.errors import ErrorCode, ProblemsError
from inferbus_contracts.keys import ObjectKey
from inferbus_shared.bus.server import ServerPlan
from inferbus_shared.manifests import read_manifests
from inferbus_shared.objects.unit import check_unit
from services.cli.tests.conftest import Run
from services.cli.tests.manifests import ROUTE


@pytest.mark.parametrize(
    ("find", "put", "line", "field", "value", "code"),
    [
        ("modelName:", "modelNam:", 6, "spec.modelNam", "", "IB-1004"),
        ("modelName: chat", "modelName: [chat]", 6, "spec.modelName", "chat", "IB-1006"),
        (
            "    - modelServerName: chat",
            "    - modelServerName: chat\n      weight: 400",
            10,
            "spec.rules[0].targetModels[0].weight",
            "400",
            "IB-1007",
        ),
        ("kind: ModelRoute", "kind: ModelRoot", 2, "kind", "ModelRoot", "IB-1003"),
        ("  name: chat", "  nam: chat", 3, "metadata.name", "", "IB-1005"),
        ("  name: chat", "  name: Chat_1", 4, "metadata.name", "Chat_1", "IB-1009"),
        ("  rules:", "   rules:", 7, "", "", "IB-1001"),
        ("  modelName: chat", "\tmodelName: chat", 6, "", "", "IB-1001"),
    ],
)
def test_a_fault_is_told_where_it_is(
    run: Run, tmp_path: Path, find: str, put: str, line: int, field: str, value: str, code: str
) -> None:
    file = tmp_path / "route.yaml"
    file.write_text(ROUTE.replace(find, put, 1))
    told = run("apply", "-f", file)
    assert told.code == 2
    first = told.err.splitlines()[0]
    assert f"{file}:{line}" in first
    assert field in first
    assert value in first
    assert f"[{code}]" in first
    assert "; " in first, "there is a remedy"
    assert "Traceback" not in told.err


def test_the_faults_of_all_files_are_told_together(run: Run, tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(ROUTE.replace("modelName", "modelNam"))
    (tmp_path / "b.yaml").write_text(ROUTE.replace("name: chat", "name: Chat", 1))
    told = run("apply", "-f", tmp_path)
    assert "a.yaml:6" in told.err
    assert "b.yaml:4" in told.err


def test_the_same_object_twice_is_refused_across_files(run: Run, tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(ROUTE)
    (tmp_path / "b.yaml").write_text(ROUTE)
    told = run("apply", "-f", tmp_path / "a.yaml", tmp_path / "b.yaml")
    assert told.code == 2
    assert "b.yaml:1" in told.err
    assert "already defined at" in told.err
    assert "[IB-2001]" in told.err


def test_a_broken_rule_is_told_with_its_field(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "route.yaml"
    file.write_text(f"{ROUTE}      externalModelProviderName: cloud\n")
    told = run("apply", "-f", file)
    assert told.code == 2
    assert f"{file}:9: ModelRoute/default/chat: " in told.err
    assert "spec.rules[0].targetModels[0].modelServerName" in told.err
    assert "(value: chat); name the ModelServer" in told.err
    assert "[IB-1008]" in told.err


def test_an_oversized_object_is_refused(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "map.yaml"
    file.write_text(
        f"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: big\ndata:\n  text: {'x' * 300_000}\n"
    )
    told = run("apply", "-f", file)
    assert told.code == 2
    assert f"{file}:1" in told.err
    assert "ConfigMap/default/big" in told.err
    assert "[IB-1010]" in told.err


def test_too_many_objects_are_refused_with_what_to_do(run: Run, tmp_path: Path) -> None:
    one = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: c{}\n"
    file = tmp_path / "many.yaml"
    file.write_text("---\n".join(one.format(number) for number in range(1001)))
    told = run("apply", "-f", file)
    assert told.code == 2
    assert "(value: 1001)" in told.err
    assert "one by one" in told.err


def test_a_unit_that_no_message_can_carry_is_refused() -> None:
    manifest_unit.check_size(["a.yaml"], manifest_unit.MAX_REQUEST_BYTES)
    with pytest.raises(ProblemsError, match=r"a.yaml: .*value: 1500001.*one by one"):
        manifest_unit.check_size(["a.yaml"], manifest_unit.MAX_REQUEST_BYTES + 1)


@pytest.mark.parametrize(
    ("text", "said"),
    [("", "no object in it"), ("- a\n- b\n", "is a mapping"), ("\xff\xfe\x00", "UTF")],
)
def test_what_holds_no_object_is_refused(run: Run, tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "m.yaml"
    file.write_bytes(text.encode("latin-1"))
    told = run("apply", "-f", file)
    assert told.code == 2
    assert str(file) in told.err
    assert said in told.err


def test_a_file_that_isnt_there_is_told(run: Run, tmp_path: Path) -> None:
    told = run("apply", "-f", tmp_path / "none.yaml")
    assert told.code == 2
    assert "none.yaml" in told.err
    assert "No such file" in told.err


def test_a_folder_without_manifests_is_told(run: Run, tmp_path: Path) -> None:
    told = run("apply", "-f", tmp_path)
    assert told.code == 2
    assert "no object in it" in told.err


def secret(value: str) -> str:
    return f"apiVersion: v1\nkind: Secret\nmetadata:\n  name: s\ndata:\n  token: {value}\n"


def test_a_secret_that_isnt_base64_is_told_at_its_line(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "s.yaml"
    file.write_text(secret("'%%%'"))
    told = run("apply", "-f", file)
    assert told.code == 2
    assert f"{file}:6" in told.err
    assert "data.token" in told.err
    assert "%%%" not in told.err, "values of Secrets are never shown"


def full_disk(*_: Any) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def test_a_full_disk_is_told_when_the_servers_files_are_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = ServerPlan(directory=tmp_path, storage_bytes=1, passwords={})
    monkeypatch.setattr("os.open", full_disk)
    with pytest.raises(ProblemsError) as told:
        write_server_files(tmp_path, plan, ["local"])
    assert told.value.problems[0].code is ErrorCode.DISK_FULL
    assert told.value.problems[0].field == "--write-config"


def test_a_valid_unit_holds_no_value_of_a_secret() -> None:
    unit = check_unit(read_manifests(secret("aGVsbG8="), "s.yaml"))
    assert unit.values == {ObjectKey("Secret", "default", "s"): {"token": b"hello"}}
    (sent,) = unit.sendable
    assert "data" not in sent.object
    assert "aGVsbG8" not in str(sent.object)
