"""`inferbus up` with what can't work: told with setting, value and remedy; nothing stays.

Neither a process nor a memory of the bad choice is left, so that the next `up` can be a good one.
"""

import json
import socket
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from inferbus_shared.processes.identity import alive, read_identity
from tests.scenario.bad_input import BAD_INPUT, NO_PLATFORM, refusal, refused_apply
from tests.support.platform import Platform

pytestmark = pytest.mark.slow


@pytest.fixture
def platform(tmp_path: Path) -> Iterator[Platform]:
    """A folder and a port for a platform, which must not run any more in the end."""
    platform = Platform(tmp_path / "platform")
    try:
        yield platform
        assert left_running(platform) == []
    finally:
        platform.inferbus("down", check=False)


def left_running(platform: Platform) -> list[str]:
    files = [*platform.directory.run.glob("*.json"), platform.directory.supervisor_file]
    found = {file.stem: read_identity(file) for file in files if file.exists()}
    return [name for name, identity in found.items() if identity and alive(identity)]


def up(
    platform: Platform, *options: str, environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    port = ("--router-port", str(platform.router_port))
    return platform.inferbus(
        "up", "--detach", *port, *options, check=False, environment=environment
    )


def test_a_port_in_use_is_told_and_the_next_start_takes_another(platform: Platform) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        result = platform.inferbus("up", "--detach", "--router-port", port, check=False)
    parts = ("--router-port", f"value: {port}", "end what listens there", "choose another")
    refusal(result, *parts, code="IB-4001", exit_code=NO_PLATFORM)
    assert not platform.directory.state_file.exists()
    assert up(platform).returncode == 0, "nothing of the failed start is in the way"
    platform.down()
    manifest = platform.directory.root / "map.yaml"
    manifest.write_text("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: m\n")
    root = str(platform.directory.root)
    refused_apply(platform, manifest, root, "inferbus up", code="IB-4004", exit_code=NO_PLATFORM)


@pytest.mark.parametrize(
    ("name", "value", "allowed"),
    [
        ("INFERBUS_ROUTER_GRACE_SECONDS", "-5", "greater than or equal to 0"),
        ("INFERBUS_ROUTER_GRACE_SECONDS", "a while", "valid number"),
        ("INFERBUS_AUTOSCALER_HTTP_PORT", "123456", "less than or equal to 65535"),
    ],
)
def test_a_setting_that_cannot_be_is_told_and_not_remembered(
    platform: Platform, name: str, value: str, allowed: str
) -> None:
    result = up(platform, environment={name: value})
    parts = (name, f"value: {value}", allowed, "unset it")
    refusal(result, *parts, code="IB-4006", exit_code=NO_PLATFORM)
    assert left_running(platform) == []
    assert not platform.directory.state_file.exists()


def test_a_folder_that_cannot_be_made_is_told(platform: Platform, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    for root, code, exit_code in (
        (Path("/proc/platform"), "IB-4007", NO_PLATFORM),
        (file / "below", "IB-4007", NO_PLATFORM),
        (file, "IB-4008", BAD_INPUT),
    ):
        refusal(up(Platform(root)), str(root), "--dir", code=code, exit_code=exit_code)


GOOD_STATE = {"nats_port": 4222, "router_port": 8090}


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ('{"nats_port": ', ("EOF", "value")),
        ("", ("EOF",)),
        ("[]", ("should be an object",)),
        (json.dumps(GOOD_STATE | {"router_port": "web"}), ("router_port", "value: web")),
        (json.dumps(GOOD_STATE | {"nats_port": 0}), ("nats_port", "value: 0")),
        (json.dumps(GOOD_STATE | {"surprise": 1}), ("surprise", "value: 1")),
        (json.dumps(GOOD_STATE | {"engines": "steam"}), ("engines", "value: steam")),
        (json.dumps(GOOD_STATE | {"instances": {"x": 2}}), ("instances.x", "not a valid Service")),
        (json.dumps({"nats_port": 4222}), ("router_port", "required")),
    ],
    ids=["cut", "empty", "list", "type", "range", "unknown", "choice", "service", "missing"],
)
def test_a_broken_record_is_told_and_can_be_removed(
    platform: Platform, text: str, parts: tuple[str, ...]
) -> None:
    platform.directory.root.mkdir()
    record = platform.directory.state_file
    record.write_text(text)
    for command in (("up", "--detach"), ("status",)):
        result = platform.inferbus(*command, check=False)
        refusal(result, str(record), *parts, "inferbus down", code="IB-4003")
    assert record.read_text() == text
    assert platform.inferbus("down").stdout == "nothing was running\n", "the remedy works"
