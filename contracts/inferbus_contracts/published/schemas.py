"""JSON Schemas (draft 2020-12) of events, resources and requests, from the typed models.

Invariant: the schema of an event is named by its `$id`, which is the event's `ce-dataschema`. A
schema says what one field may hold; what must hold between fields is said by admission alone.
"""

from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema

from inferbus_contracts.catalog import EVENTS
from inferbus_contracts.envelope import SCHEMA_ROOT
from inferbus_contracts.published.calls import CALLS, WORDS
from inferbus_contracts.resources.kinds import KINDS, Kind

EVENT_VERSION = 1
"""The version of every type in the catalog."""

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_NUMBER = r"([0-9]+\.?[0-9]*|\.[0-9]+)"
DURATION = {"type": "string", "pattern": rf"^\+?(0|({_NUMBER}(ns|us|µs|μs|ms|s|m|h))+)$"}
"""A duration of zero or more, in Go's form."""
_KUBERNETES_QUANTITY = [{"type": "integer"}, {"type": "string"}]
_QUANTITY = [{"type": "number"}, {"type": "string"}]
_STATUS = {
    "type": "object",
    "readOnly": True,
    "description": "What the platform reports; left out of what is applied.",
}

Schema = dict[str, Any]


class UntitledFields(GenerateJsonSchema):
    """Without a title on each field that only repeats its name."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


def published_schemas() -> dict[str, Schema]:
    """Every schema by its path below the folder of schemas."""
    return {
        **{
            event_path(type_): _schema(event_path(type_), row.data) for type_, row in EVENTS.items()
        },
        **{
            resource_path(kind): _resource_schema(kind)
            for kind in KINDS.values()
            if not kind.supporting
        },
        **{path: _schema(path, model) for path, model in _api_models().items()},
    }


def event_path(event_type: str) -> str:
    """Where the schema of an event is."""
    return f"events/{event_type}.v{EVENT_VERSION}.json"


def resource_path(kind: Kind) -> str:
    """Where the schema of a kind is."""
    return f"resources/{kind.token}.json"


def request_path(call_id: str) -> str:
    """Where the schema of a request is."""
    return f"api/{call_id}.request.json"


def reply_path(call_id: str) -> str:
    """Where the schema of a reply is."""
    return f"api/{call_id}.reply.json"


def word_path(word_id: str) -> str:
    """Where the schema of what instances tell each other is."""
    return f"api/{word_id}.json"


def _api_models() -> dict[str, type[BaseModel]]:
    requests: dict[str, type[BaseModel]] = {request_path(call.id): call.request for call in CALLS}
    words = {word_path(word.id): word.body for word in WORDS}
    return requests | {reply_path(call.id): call.reply for call in CALLS} | words


def _schema(path: str, model: type[BaseModel]) -> Schema:
    identity = {"$schema": _DIALECT, "$id": f"{SCHEMA_ROOT}{path.removeprefix('events/')}"}
    body = model.model_json_schema(by_alias=True, schema_generator=UntitledFields)
    translated: Schema = _translated(body)
    return identity | translated


def _resource_schema(kind: Kind) -> Schema:
    schema = _schema(resource_path(kind), kind.model)
    properties = schema["properties"]
    properties["apiVersion"] = {"const": kind.api_version}
    properties["kind"] = {"const": kind.kind}
    properties["status"] = _STATUS
    return schema


def _translated(node: Any) -> Any:
    """Kubernetes' dialect, which the models speak for the sake of CRDs, as plain JSON Schema.

    `format: duration` means ISO 8601 outside Kubernetes, and quantities may be written as decimals.
    A pair becomes a list of two, which readers of older drafts understand too.
    """
    if isinstance(node, list):
        return [_translated(item) for item in node]
    if not isinstance(node, dict):
        return node
    own = {name: value for name, value in node.items() if name != "x-kubernetes-int-or-string"}
    if own.get("format") == "duration":
        own.pop("format")
        own |= DURATION
    if node.get("anyOf") == _KUBERNETES_QUANTITY:
        own["anyOf"] = _QUANTITY
    if "prefixItems" in own:
        first, *others = own.pop("prefixItems")
        assert all(item == first for item in others), "a tuple of unlike items has no plain form"
        own["items"] = first
    return {name: _translated(value) for name, value in own.items()}
