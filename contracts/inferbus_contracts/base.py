"""The base classes of every typed document.

Invariant: a document that was parsed is immutable, and `to_json` of it is the canonical form: the
same content always gives the same bytes, whoever wrote it.
"""

from typing import Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

from inferbus_contracts.canonical import canonical_json


class Document(BaseModel):
    """A typed JSON document: camelCase on the wire, snake_case in Python, frozen."""

    model_config = ConfigDict(
        frozen=True,
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        serialize_by_alias=True,
        protected_namespaces=(),
        use_attribute_docstrings=True,
    )

    def to_dict(self) -> dict[str, Any]:
        """The JSON data model of the document, without absent (None) fields."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)

    def to_json(self) -> bytes:
        """Canonical JSON of the document (see `canonical_json`)."""
        return canonical_json(self.to_dict())

    @classmethod
    def from_json(cls, data: bytes | str) -> Self:
        """Parse JSON; raises `pydantic.ValidationError` when it doesn't fit the model."""
        return cls.model_validate_json(data)


class EventData(Document):
    """The body of an event.

    Unknown fields are ignored, so that a reader understands what a newer writer adds: a type only
    ever grows optional fields (DESIGN section 5, versions).
    """

    model_config = ConfigDict(extra="ignore")

    event_type: ClassVar[str] = ""
    """`<domain>.<fact>`, the part of the CloudEvents type between `dev.inferbus.` and `.v1`."""


class ResourceData(Document):
    """A part of a resource that people write: an unknown field is an error, never dropped."""

    model_config = ConfigDict(extra="forbid")
