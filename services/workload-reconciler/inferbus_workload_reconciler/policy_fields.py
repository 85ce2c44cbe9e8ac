"""Reading fields of a stored object, and naming the one that is wrong.

Invariant: a value that is returned has the type that was asked for; everything else is a
`ProblemsError` with the field's path, never another exception.
"""

import re
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any, Final, TypeVar

from inferbus_contracts.errors import ErrorCode, Problem, ProblemsError
from inferbus_workload_reconciler.workload import IntOrPercent

_MESSAGES: Final = {
    ErrorCode.MISSING_FIELD: "a required field is missing",
    ErrorCode.WRONG_TYPE: "the field has a wrong type",
    ErrorCode.VALUE_OUT_OF_RANGE: "the field has a value that means nothing here",
}

_COUNT_OR_SHARE: Final = re.compile(r"-?\d+%?\Z")


Parsed = TypeVar("Parsed")


class FieldReader:
    """Reads fields of a document and names the one that is wrong."""

    def __init__(self, document: Mapping[str, Any], path: str, object_key: str = "") -> None:
        self.document = document
        self.path = path
        self.object_key = object_key

    def get(self, field: str, type_: type | tuple[type, ...], default: Any = None) -> Any:
        """A field, or the default where it is absent or null."""
        value = self.document.get(field)
        if value is None:
            return default
        if not isinstance(value, type_) or isinstance(value, bool):
            raise ProblemsError(self._problem(ErrorCode.WRONG_TYPE, field, value))
        return value

    def need(self, field: str, type_: type | tuple[type, ...]) -> Any:
        """A field that must be there."""
        value = self.get(field, type_)
        if value is None:
            raise ProblemsError(self._problem(ErrorCode.MISSING_FIELD, field, None))
        return value

    def part(self, field: str) -> "FieldReader":
        """The object in a field; an empty one where it is absent."""
        return self._at(self.get(field, Mapping, {}), f"{self.path}{field}.")

    def parts(self, field: str, *, at_least_one: bool = False) -> list["FieldReader"]:
        """The objects in a list; none where it is absent."""
        items = self.get(field, list, [])
        if at_least_one and not items:
            raise ProblemsError(self._problem(ErrorCode.MISSING_FIELD, field, None))
        return [self._at(item, f"{self.path}{field}[{index}].") for index, item in enumerate(items)]

    def choice(self, field: str, default: StrEnum) -> str:
        """A field that takes one of the values of the default's enumeration."""
        value: str = self.get(field, str, default)
        if value not in set(type(default)):
            raise ProblemsError(self._problem(ErrorCode.VALUE_OUT_OF_RANGE, field, value))
        return value

    def parsed(self, field: str, parser: Callable[[str], Parsed], default: Parsed) -> Parsed:
        """What a parser, which raises `ValueError`, makes of a text."""
        value = self.get(field, str)
        if value is None:
            return default
        try:
            return parser(value)
        except ValueError:
            raise ProblemsError(self._problem(ErrorCode.VALUE_OUT_OF_RANGE, field, value)) from None

    def count_or_share(self, field: str) -> IntOrPercent | None:
        """A number, or a percentage."""
        value: IntOrPercent | None = self.get(field, (int, str))
        if isinstance(value, str) and not _COUNT_OR_SHARE.match(value):
            raise ProblemsError(self._problem(ErrorCode.VALUE_OUT_OF_RANGE, field, value))
        return value

    def _at(self, document: Any, path: str) -> "FieldReader":
        if not isinstance(document, Mapping):
            reader = FieldReader({}, path, self.object_key)
            raise ProblemsError(reader._problem(ErrorCode.WRONG_TYPE, "", document))
        return FieldReader(document, path, self.object_key)

    def _problem(self, code: ErrorCode, field: str, value: Any) -> Problem:
        return Problem(
            code=code,
            message=_MESSAGES[code],
            remedy="apply the manifest again: admission fills in defaults and says what may stand",
            object=self.object_key or None,
            field=f"{self.path}{field}".rstrip("."),
            value=value,
        )
