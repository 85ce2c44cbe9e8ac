"""The schemas say what the code does: what it writes fits them, what it refuses does not."""

import json
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError

from inferbus_contracts.api.console import ConsoleQuery
from inferbus_contracts.api.objects import OBJECT_CALLERS, ObjectVerb
from inferbus_contracts.base import EventData
from inferbus_contracts.catalog import EVENTS
from inferbus_contracts.envelope import Envelope
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.published.calls import CALLS
from inferbus_contracts.published.files import CONTRACTS
from inferbus_contracts.published.schemas import (
    event_path,
    published_schemas,
    resource_path,
)
from inferbus_contracts.resources.kinds import KINDS
from inferbus_contracts.resources.scalars import parse_duration_ms
from inferbus_contracts.services import Service

SCHEMAS = published_schemas()
GOLDEN = sorted(
    path
    for path in (CONTRACTS / "golden").rglob("*.json")
    if not path.name.endswith(".headers.json")
)


def schema_of(folder: str) -> dict[str, Any]:
    if folder in KINDS:
        return SCHEMAS[resource_path(KINDS[folder])]
    return SCHEMAS[f"events/{folder}.json"]


@pytest.mark.parametrize("path", SCHEMAS)
def test_a_schema_is_one(path: str) -> None:
    Draft202012Validator.check_schema(SCHEMAS[path])


@pytest.mark.parametrize("event_type", EVENTS)
def test_an_event_names_its_schema(event_type: str) -> None:
    key = ObjectKey("ModelServing", "default", "chat")
    envelope = Envelope(id="i", type=event_type, source="s/1", time_ms=0, key=key)
    assert SCHEMAS[event_path(event_type)]["$id"] == envelope.headers()["ce-dataschema"]


def test_no_two_schemas_have_one_name() -> None:
    assert len({schema["$id"] for schema in SCHEMAS.values()}) == len(SCHEMAS)


def test_every_kind_that_people_write_has_a_schema() -> None:
    described = {path for path in SCHEMAS if path.startswith("resources/")}
    assert described == {resource_path(kind) for kind in KINDS.values() if not kind.supporting}
    assert len(described) == 11


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_what_was_written_once_fits(path: Any) -> None:
    Draft202012Validator(schema_of(path.parent.name)).validate(json.loads(path.read_bytes()))


@pytest.mark.parametrize("token", [kind.token for kind in KINDS.values() if not kind.supporting])
@pytest.mark.parametrize(
    "change",
    [{"kind": "Other"}, {"apiVersion": "v2"}, {"spce": {}}, {"spec": None}, {"metadata": {}}],
)
def test_a_manifest_that_is_wrong_does_not_fit(token: str, change: dict[str, Any]) -> None:
    document = json.loads((CONTRACTS / f"golden/objects/{token}/minimal.json").read_bytes())
    with pytest.raises(ValidationError):
        Draft202012Validator(schema_of(token)).validate(document | change)


def test_a_manifest_with_a_status_fits() -> None:
    document = json.loads((CONTRACTS / "golden/objects/ModelServing/minimal.json").read_bytes())
    Draft202012Validator(schema_of("ModelServing")).validate(document | {"status": {"replicas": 1}})


@pytest.mark.parametrize(
    "text",
    ["0", "15s", "1m30s", "500ms", "1.5h", ".5s", "+2m", "3µs", "10", "", "1d", "s", "PT15S"],
)
def test_a_duration_fits_when_it_can_be_read(text: str) -> None:
    retry = SCHEMAS["resources/ModelServer.json"]["$defs"]["Retry"]["properties"]["retryInterval"]
    try:
        parse_duration_ms(text)
    except ValueError:
        readable = False
    else:
        readable = True
    assert Draft202012Validator(retry).is_valid(text) is readable


@pytest.mark.parametrize("value", [1, 0.5, "500m"])
def test_a_quantity_fits_however_it_is_written(value: Any) -> None:
    metric = SCHEMAS["resources/AutoscalingPolicy.json"]["$defs"]["PolicyMetric"]
    Draft202012Validator(metric).validate({"metricName": "load", "targetValue": value})


def test_a_pair_has_two_numbers() -> None:
    schema = SCHEMAS["events/metrics.sampled.v1.json"]["$defs"]["MetricAggregate"]
    pairs = Draft202012Validator(schema["properties"]["buckets"])
    assert pairs.is_valid([[0.5, 1], [1, 2.5]])
    assert not pairs.is_valid([[0.5]])
    assert not pairs.is_valid([[0.5, 1, 2]])
    assert not pairs.is_valid([["0.5", 1]])


def test_every_question_to_the_objects_is_described() -> None:
    described = {call.id: call for call in CALLS}
    for verb in ObjectVerb:
        callers = {caller for caller, verbs in OBJECT_CALLERS.items() if verb in verbs}
        assert described[f"objects.{verb.value}"].callers == callers


def test_every_question_to_the_console_is_described() -> None:
    described = {call.id for call in CALLS if call.server is Service.CONSOLE}
    assert described == {f"console.{query.value}" for query in ConsoleQuery}


def test_every_body_of_the_api_is_described() -> None:
    """`Reply` alone is never sent as such: a refusal is one, and fits every reply."""
    described = {model for call in CALLS for model in (call.request, call.reply)}
    bodies = [
        model
        for model in _subclasses(EventData)
        if model.__module__.startswith("inferbus_contracts.api.")
        and model.__name__.endswith(("Request", "Reply"))
        and model.__name__ != "Reply"
    ]
    assert set(bodies) == described


def _subclasses(model: type[EventData]) -> set[type[EventData]]:
    direct = set(model.__subclasses__())
    return direct.union(*(_subclasses(item) for item in direct))
