"""The base class of everything that people write into a resource.

Invariant: a field that its author left out or set to null takes the schema's default, or stays out
of the normalised form; null never is a value (Kubernetes drops nulls before it fills defaults).
"""

from collections.abc import Mapping
from typing import Any

from pydantic import SerializerFunctionWrapHandler, model_serializer, model_validator

from inferbus_contracts.base import ResourceData


class ResourcePart(ResourceData):
    """A mapping inside a resource: frozen, camelCase, unknown fields are errors."""

    @model_validator(mode="before")
    @classmethod
    def _drop_nulls(cls, value: Any) -> Any:
        if isinstance(value, Mapping):
            return {name: item for name, item in value.items() if item is not None}
        return value

    @model_serializer(mode="wrap")
    def _leave_out_absent_collections(
        self, handler: SerializerFunctionWrapHandler
    ) -> dict[str, Any]:
        data: dict[str, Any] = handler(self)
        for name, field in type(self).model_fields.items():
            if name not in self.model_fields_set and getattr(self, name) in ([], {}):
                data.pop(field.alias or name, None)
        return data
