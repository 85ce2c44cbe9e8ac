"""What of a Secret may travel, and that nothing else does."""

import json
from pathlib import Path

import pytest

from inferbus_contracts.errors import ErrorCode, ProblemsError
from inferbus_contracts.keys import ObjectKey
from inferbus_shared.objects.secrets import SecretFiles, take_values

HUB = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "hub"}, "type": "Opaque"}


def test_values_are_taken_out_and_their_keys_stay() -> None:
    document = {**HUB, "data": {"a": "aHVzaA=="}, "stringData": {"b": "hush", "a": "plain wins"}}
    bare, values = take_values(document)
    assert values == {"a": b"plain wins", "b": b"hush"}
    assert bare["metadata"]["annotations"] == {"inferbus.dev/secret-keys": "a,b"}
    assert bare["type"] == "Opaque"
    assert "hush" not in json.dumps(bare)


def test_a_misspelt_field_is_refused_without_its_value() -> None:
    with pytest.raises(ProblemsError) as caught:
        take_values({**HUB, "stringDate": {"token": "hush"}})
    (problem,) = caught.value.problems
    assert (problem.code, problem.field) == (ErrorCode.UNKNOWN_FIELD, "stringDate")
    assert "hush" not in problem.model_dump_json()


def test_kubectls_copy_of_the_document_stays_behind() -> None:
    copy = {"kubectl.kubernetes.io/last-applied-configuration": '{"stringData":{"token":"hush"}}'}
    metadata = {"name": "hub", "annotations": {**copy, "team": "x"}}
    bare, _ = take_values({**HUB, "metadata": metadata, "stringData": {"token": "hush"}})
    kept = {"team": "x", "inferbus.dev/secret-keys": "token"}
    assert bare["metadata"]["annotations"] == kept


def test_what_is_no_base64_is_told_without_its_value() -> None:
    with pytest.raises(ProblemsError) as caught:
        take_values({**HUB, "data": {"token": "hush hush"}})
    (problem,) = caught.value.problems
    assert (problem.code, problem.field) == (ErrorCode.WRONG_TYPE, "data.token")
    assert "hush" not in problem.model_dump_json()


def test_values_are_kept_for_their_owner_alone(tmp_path: Path) -> None:
    files = SecretFiles(tmp_path / "secrets")
    hub = ObjectKey("Secret", "default", "hub.x")
    files.keep(hub, {"token": b"\x00hush"})
    (file,) = (tmp_path / "secrets").iterdir()
    assert file.stat().st_mode & 0o777 == 0o600
    assert files.read("default", "hub.x") == {"token": b"\x00hush"}
    files.forget(hub)
    assert files.read("default", "hub.x") is None
