"""Routing tables in files: read whole, or refused with what is wrong where."""

import json
from pathlib import Path

import pytest

from inferbus_contracts.errors import ErrorCode, ProblemsError
from inferbus_router.adapters_static import published, read_table
from inferbus_router.table import RoutingTable
from services.router.tests.builders import endpoint, route, route_key, server, server_key

ENTRIES = {route_key("r"): route(), server_key("ms"): server(endpoint())}
YAML = """
ModelRoute/ns/r: {modelName: m, rules: [{targets: [{server: ModelServer/ns/ms}]}]}
ModelServer/ns/ms:
  target: ModelServing/ns/ms
  endpoints: [{pod: pod-8000, address: 127.0.0.1, port: 8000}]
"""


def problem_in(path: Path, text: str) -> tuple[ErrorCode, str]:
    path.write_text(text)
    with pytest.raises(ProblemsError) as raised:
        read_table(path)
    return raised.value.problems[0].code, str(raised.value)


def test_json_and_yaml_say_the_same(tmp_path: Path) -> None:
    (tmp_path / "t.yaml").write_text(YAML)
    (tmp_path / "t.json").write_text(
        json.dumps({str(key): entry.to_dict() for key, entry in ENTRIES.items()})
    )

    assert read_table(tmp_path / "t.yaml") == ENTRIES
    assert read_table(tmp_path / "t.json") == ENTRIES


def test_what_is_published_is_a_whole_table() -> None:
    assert RoutingTable().with_parts(published(ENTRIES)).is_complete


@pytest.mark.parametrize(
    ("name", "text", "code", "said"),
    [
        ("t.json", "{", ErrorCode.BROKEN_YAML, "t.json:1"),
        ("t.yaml", "a: [", ErrorCode.BROKEN_YAML, "t.yaml:1"),
        ("t.yaml", "- a", ErrorCode.BROKEN_YAML, "one mapping"),
        ("t.yaml", "a: {}\n---\nb: {}", ErrorCode.BROKEN_YAML, "one mapping"),
        ("t.yaml", "nokey: {}", ErrorCode.BAD_NAME, "nokey"),
        ("t.yaml", "Pod/ns/x: {}", ErrorCode.BAD_NAME, "Pod/ns/x"),
        ("t.yaml", "ModelRoute/ns/r: {modelName: m}", ErrorCode.WRONG_TYPE, "rules"),
        (
            "t.yaml",
            "ModelServer/ns/s: {endpoints: [{pod: p, address: a, port: x}]}",
            ErrorCode.WRONG_TYPE,
            "endpoints.0.port",
        ),
    ],
)
def test_what_is_wrong_is_told_with_its_place(
    tmp_path: Path, name: str, text: str, code: ErrorCode, said: str
) -> None:
    found, message = problem_in(tmp_path / name, text)

    assert found is code
    assert said in message


def test_every_problem_is_told(tmp_path: Path) -> None:
    (tmp_path / "t.yaml").write_text("a: {}\nb: {}")
    with pytest.raises(ProblemsError) as raised:
        read_table(tmp_path / "t.yaml")

    assert len(raised.value.problems) == 2


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ProblemsError) as raised:
        read_table(tmp_path / "none.yaml")

    assert "INFERBUS_ROUTER_TABLE_FILE" in str(raised.value)
