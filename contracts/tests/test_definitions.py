"""The definitions of kinds: identity, subresources, texts, and what their schemas take and refuse.

What only an API server can judge (rules in CEL, merging, defaults) is in tests/kube.
"""

import json
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft7Validator

from contracts.tests.conftest import build
from contracts.tests.rule_cases import definitions as cases
from contracts.tests.test_admission_properties import drawn
from contracts.tests.test_rules import BROKEN, FINE, ROWS
from inferbus_contracts.admission import admit
from inferbus_contracts.admission.paths import split_path
from inferbus_contracts.admission.rule import Severity
from inferbus_contracts.admission.rules import rules_for
from inferbus_contracts.errors import ProblemsError
from inferbus_contracts.manifests.columns import COLUMNS
from inferbus_contracts.manifests.definitions import DEFINED, definition, object_schema
from inferbus_contracts.manifests.files import CRDS, generated_manifests, schema_faults
from inferbus_contracts.published.files import DEPLOY
from inferbus_contracts.resources.kinds import KINDS, Kind
from inferbus_contracts.resources.statuses import STATUSES

EACH = pytest.mark.parametrize("kind", DEFINED, ids=lambda kind: kind.token)
TOKENS = {kind.token for kind in DEFINED}
SCHEMAS = {kind.token: object_schema(kind) for kind in DEFINED}


def fields(schema: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every field below a place, with its path."""
    for name, child in schema.get("properties", {}).items():
        yield f"{path}.{name}", child
        yield from fields(child, f"{path}.{name}")
    for inside in ("items", "additionalProperties"):
        if inside in schema:
            yield from fields(schema[inside], f"{path}[]")


def refused_at(token: str, document: dict[str, Any]) -> list[tuple[str | int, ...]]:
    """The places where a document doesn't fit; a missing field's own."""
    places = []
    for error in Draft7Validator(SCHEMAS[token]).iter_errors(document):
        place = tuple(error.absolute_path)
        if error.validator == "required":
            missing = [name for name in error.validator_value if name not in error.instance]
            places += [(*place, name) for name in missing]
        else:
            places.append(place)
    return places


@EACH
def test_a_kind_is_defined_as_it_is_registered(kind: Kind) -> None:
    document = definition(kind)
    spec, (version,) = document["spec"], document["spec"]["versions"]
    assert document["metadata"]["name"] == f"{kind.plural}.{kind.group}"
    assert (spec["group"], spec["names"]["plural"]) == (kind.group, kind.plural)
    assert (spec["names"]["kind"], version["name"]) == (kind.kind, kind.version)
    assert spec["names"]["shortNames"] == list(kind.short_names)
    assert spec["scope"] == ("Namespaced" if kind.namespaced else "Cluster")
    assert "status" in version["subresources"]
    assert ("scale" in version["subresources"]) == (kind.scale is not None)


def test_every_kind_has_a_status_and_columns() -> None:
    assert TOKENS == set(STATUSES) == set(COLUMNS)


def test_words_for_kinds_are_said_once() -> None:
    words = [word for kind in DEFINED for word in (*kind.short_names, kind.kind.lower())]
    assert len(set(words)) == len(words)


def test_schemas_are_structural() -> None:
    assert schema_faults() == []


@EACH
def test_every_field_is_explained_in_plain_words(kind: Kind) -> None:
    for path, field in fields(SCHEMAS[kind.token]):
        text = field.get("description", "")
        assert text or path == ".metadata", path
        assert not {"`", "\n"} & set(text), path
        assert not any(word in text for word in ("ruling", "defect", " spec 1")), path


@EACH
def test_rules_use_what_kubernetes_1_27_knows(kind: Kind) -> None:
    schemas = [SCHEMAS[kind.token], *(field for _, field in fields(SCHEMAS[kind.token]))]
    rules = [rule for one in schemas for rule in one.get("x-kubernetes-validations", ())]
    assert all(rule.keys() == {"rule", "message"} for rule in rules)
    words = ("quantity(", "optionalOldSelf", ".?", "format.", "ip(", "cidr(", ".sortBy(")
    assert [rule["rule"] for rule in rules if any(word in rule["rule"] for word in words)] == []


@EACH
def test_columns_show_what_is_there(kind: Kind) -> None:
    known = {path for path, _ in fields(SCHEMAS[kind.token])}
    for column in COLUMNS[kind.token]:
        path = column.path.partition("[")[0]
        assert path in known or path.startswith(".metadata."), column


@pytest.mark.parametrize("path", sorted(generated_manifests()))
def test_a_manifest_is_read_back_as_it_was_made(path: str) -> None:
    texts = (DEPLOY / path).read_text().split("\n---\n")
    assert all(yaml.safe_load(text)["apiVersion"] for text in texts)
    if path.startswith(CRDS):
        made = {f"{CRDS}{kind.plural}.{kind.group}.yaml": definition(kind) for kind in DEFINED}
        assert yaml.safe_load(texts[0]) == made[path]


@pytest.mark.parametrize(("token", "changes", "field"), cases.REFUSED)
def test_what_no_field_can_hold_is_refused(problems, token: str, changes: dict, field: str) -> None:
    assert tuple(split_path(field)) in refused_at(token, build(token, changes))
    assert problems(token, changes), "a definition refuses nothing that admission accepts"


@pytest.mark.parametrize(("token", "changes"), cases.ACCEPTED)
def test_what_a_field_can_hold_fits(problems, token: str, changes: dict) -> None:
    assert refused_at(token, build(token, changes)) == []
    assert problems(token, changes) == ()


@pytest.mark.parametrize(("token", "changes"), [case for case in FINE if case[0] in TOKENS])
def test_what_breaks_no_rule_fits(token: str, changes: dict) -> None:
    assert refused_at(token, build(token, changes)) == []


@pytest.mark.parametrize(
    ("rule", "token", "changes"),
    [
        case[:3]
        for case in BROKEN
        if case[1] in TOKENS and ROWS[case[0]].severity is Severity.WARNING
    ],
)
def test_what_is_merely_doubtful_fits(rule: str, token: str, changes: dict) -> None:
    assert refused_at(token, build(token, changes)) == []


def as_kubernetes_takes_it(document: dict[str, Any]) -> dict[str, Any]:
    """Quantities with decimals as text, and what is null left out."""
    return json.loads(json.dumps(without_nulls(document)), parse_float=str)


def without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: without_nulls(item) for name, item in value.items() if item is not None}
    return [without_nulls(item) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize("token", sorted(TOKENS))
@settings(max_examples=40)
@given(data=st.data())
def test_what_admission_accepts_fits(token: str, data: st.DataObject) -> None:
    document = as_kubernetes_takes_it(drawn(token, data))
    try:
        admit(document)
    except ProblemsError:
        return
    assert refused_at(token, document) == []


def test_what_only_admission_can_say_is_a_rule_of_it() -> None:
    errors = {
        rule.id for token in KINDS for rule in rules_for(token) if rule.severity is Severity.ERROR
    }
    assert set(cases.BY_ADMISSION_ALONE) <= errors
