"""Volumes as folders."""

import subprocess
from pathlib import Path
from typing import Any

import pytest
from node_agent_builders import container, pod

from inferbus_contracts.errors import ProblemsError
from inferbus_node_agent.pods import parse_pod
from inferbus_node_agent.policy_environment import SourceKind, SourceName
from inferbus_node_agent.policy_volumes import (
    mounted,
    sources_of_volumes,
    volume_directory,
    volume_files,
)

POD, PLATFORM = Path("/run/uid"), Path("/platform/volumes")
SETTINGS = SourceName(SourceKind.CONFIG_MAP, "settings")


def with_volume(**source: Any) -> Any:
    return parse_pod(pod("a", volumes=[{"name": "data", **source}]))


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ({"emptyDir": {}}, "/run/uid/volumes/data"),
        ({"configMap": {"name": "settings"}}, "/run/uid/volumes/data"),
        ({"secret": {"secretName": "hub"}}, "/run/uid/volumes/data"),
        ({"hostPath": {"path": "/models"}}, "/platform/volumes/host/models"),
        ({"hostPath": {"path": "/../../etc"}}, "/platform/volumes/host/etc"),
        (
            {"persistentVolumeClaim": {"claimName": "weights"}},
            "/platform/volumes/claims/default/weights",
        ),
        (
            {"persistentVolumeClaim": {"claimName": "../../x"}},
            "/platform/volumes/claims/default/x",
        ),
    ],
)
def test_where_volumes_lie(source: dict[str, Any], expected: str) -> None:
    parsed = with_volume(**source)
    found = volume_directory(parsed, parsed.spec.volumes[0], POD, PLATFORM)
    assert str(found) == expected


def test_a_config_map_becomes_files() -> None:
    parsed = with_volume(configMap={"name": "settings"})
    assert sources_of_volumes(parsed) == {SETTINGS}
    content = {SETTINGS: {"a.json": b"{}", "b": b"x"}}
    assert volume_files(parsed, parsed.spec.volumes[0], content) == {"a.json": b"{}", "b": b"x"}


def test_items_choose_and_rename() -> None:
    items = [{"key": "b", "path": "deep/b.txt"}]
    parsed = with_volume(configMap={"name": "settings", "items": items})
    content = {SETTINGS: {"a": b"1", "b": b"2"}}
    assert volume_files(parsed, parsed.spec.volumes[0], content) == {"deep/b.txt": b"2"}


@pytest.mark.parametrize("path", ["../out", "/etc/passwd", "a/../../b"])
def test_no_file_lies_outside(path: str) -> None:
    items = [{"key": "b", "path": path}]
    parsed = with_volume(configMap={"name": "settings", "items": items})
    with pytest.raises(ProblemsError, match="inside it"):
        volume_files(parsed, parsed.spec.volumes[0], {SETTINGS: {"b": b"2"}})


def test_what_is_missing_is_told_unless_optional() -> None:
    parsed = with_volume(configMap={"name": "settings"})
    with pytest.raises(ProblemsError, match="no ConfigMap 'settings'"):
        volume_files(parsed, parsed.spec.volumes[0], {SETTINGS: None})
    optional = with_volume(configMap={"name": "settings", "optional": True})
    assert volume_files(optional, optional.spec.volumes[0], {SETTINGS: None}) == {}


def test_a_program_without_mounts_is_left_alone() -> None:
    main = parse_pod(pod("a", container("x"))).spec.containers[0]
    assert mounted(("run", "it"), main, {}, root=True) == ("run", "it")


def test_shared_memory_is_the_machines() -> None:
    mounts = [{"name": "dshm", "mountPath": "/dev/shm"}]
    main = parse_pod(pod("a", container("x", volumeMounts=mounts))).spec.containers[0]
    assert mounted(("run",), main, {"dshm": Path("/x")}, root=True) == ("run",)


def test_mounts_are_seen_by_the_program_alone(tmp_path: Path) -> None:
    source, target = tmp_path / "a b", tmp_path / "mount point"
    (source / "sub").mkdir(parents=True)
    (source / "sub" / "file").write_text("hello")
    target.mkdir()
    mounts = [{"name": "data", "mountPath": str(target), "subPath": "sub"}]
    main = parse_pod(pod("a", container("x", volumeMounts=mounts))).spec.containers[0]
    argv = mounted(("cat", f"{target}/file"), main, {"data": source}, root=True)
    run = subprocess.run(argv, capture_output=True, check=False)
    if b"not permitted" in run.stderr:
        pytest.skip("this machine doesn't let the tests make a mount namespace")
    assert run.stdout == b"hello"
    assert list(target.iterdir()) == []
